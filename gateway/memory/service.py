"""Conversations: take a message in, answer it from what is remembered, and queue what it causes.

A message and the jobs that it causes are one transaction, on disk before anybody hears that it was accepted. The jobs
wait until the message has its reply. Work on a conversation yields to its next message at once, but for a compaction
that ends within ``memory.patience_seconds``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Literal
from uuid import uuid4

import apsw
import msgspec
import structlog

from gateway.base.aio import KeyedLocks, finish, stop
from gateway.base.errors import HearthError, NotFoundError, OverloadedError
from gateway.base.redact import redact, redact_aside
from gateway.base.supervised import Supervision
from gateway.inference.interface import GenerateCall, LoadProgress
from gateway.memory.context import Context, ContextBuilder, MemoryParts
from gateway.memory.events import (
    BudgetKnown,
    Compacting,
    Done,
    Held,
    Loading,
    MessageAccepted,
    PostCall,
    PostEvent,
    TextDelta,
    Waiting,
)
from gateway.memory.hub import Hub, News
from gateway.memory.learning.facts import Facts
from gateway.memory.learning.tasks import TaskKeeper
from gateway.memory.model import Filled
from gateway.memory.summaries.compaction import HistoryCompactor
from gateway.memory.worker import Handler, Worker
from gateway.store.memory.conversations import (
    Conversation,
    add_conversation,
    any_conversation,
    erase_conversation,
    get_conversation,
    save_conversation,
)
from gateway.store.memory.forget import forget_speaker
from gateway.store.memory.jobs import Job, JobKind, add_job, finish_job
from gateway.store.memory.messages import (
    NewMessage,
    StoredMessage,
    add_message,
    find_message,
    reply_to,
)
from gateway.store.memory.summaries import add_summary
from model_host.protocol import Delta, Finished, Queued

log = structlog.get_logger(__name__)

# Messages and changes of one conversation that may have or await their turn.
_MAX_HELD = 16
# While a message waits for a compaction, so often its end is estimated anew.
_LOOK_AGAIN_SECONDS = 0.05


class Conversations:
    """The memory's way in."""

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts
        self._hub = Hub()
        facts = Facts(parts, self._hub)
        tasks = TaskKeeper(parts, self._hub)
        self._builder = ContextBuilder(parts, [tasks, facts])
        self._compactor = HistoryCompactor(parts, self._builder, self._hub)
        self._handlers: dict[JobKind, Handler] = {}
        if parts.settings.facts:
            self._handlers["facts"] = facts.run
        if parts.settings.tasks:
            self._handlers["tasks"] = tasks.run
        self._worker = Worker(parts.database, {"compact": self._compact_job, **self._handlers})
        self.turns = KeyedLocks()  # by conversation: one message or change of the whole at a time

    async def start(self, supervision: Supervision) -> None:
        """Take up the jobs that wait."""
        await self._worker.start(supervision)

    async def close(self) -> None:
        """Interrupt jobs; they wait in the database."""
        await self._worker.close()

    async def post(self, call: PostCall) -> AsyncGenerator[PostEvent, None]:
        """Accept a message and answer it; the last event is ``Done``. Closing the iterator stops the reply.

        Raises OverloadedError (too many messages wait already) and what the inference raises. A reply that was
        broken off stays in the log, marked as failed.
        """
        name = call.conversation.id
        if self.turns.users(name) >= _MAX_HELD:
            raise OverloadedError(f"{_MAX_HELD} messages wait in this conversation already", retry_after=5.0)
        if self.turns.users(name):
            yield Held("reply")
        elif call.reply and name in self._compactor.running:
            yield Held("compaction")
        async with self.turns.hold(name), self._room_for(call), aclosing(self._answer(call)) as events:
            async for event in events:
                yield event

    @asynccontextmanager
    async def _room_for(self, call: PostCall) -> AsyncIterator[None]:
        """No job runs inside the block, but for a line that is only kept: summaries are of what was said before it."""
        if not call.reply:  # else a lively channel would never be compacted
            yield
            return
        await self._let_finish(call.conversation.id)
        async with self._worker.holding(call.conversation.id):
            yield

    @asynccontextmanager
    async def _alone(self, conversation: Conversation) -> AsyncIterator[Conversation]:
        """The conversation as it is now. No message and no job of it runs inside the block. Raises NotFoundError."""
        async with self.turns.hold(conversation.id), self._worker.holding(conversation.id):
            yield await self._current(conversation)

    async def _current(self, conversation: Conversation) -> Conversation:
        return await self._parts.database.read(
            lambda c: get_conversation(c, conversation.id, conversation.owner)
        )

    async def _let_finish(self, name: str) -> None:
        """Wait for a compaction that ends soon: stopping it then would cost more than it saves."""
        until = time.monotonic() + self._parts.settings.patience_seconds
        while (left := self._compactor.seconds_left(name)) is not None and time.monotonic() + left < until:
            if await self._worker.ended(name, _LOOK_AGAIN_SECONDS):
                return

    async def context(self, conversation: Conversation) -> Context:
        """The prompt that the next message would get, as far as it is known without that message."""
        return await self._builder.build(conversation)

    async def compact(self, conversation: Conversation) -> int:
        """Compact now, even before its time; returns how many summaries were made."""
        async with self._alone(conversation) as current:
            return await self._compactor.run(current, force=True)

    async def convert(self, conversation: Conversation, version: int | None) -> int:
        """Make summaries of other prompt versions again; returns how many."""
        async with self._alone(conversation) as current:
            return await self._compactor.convert(current, version)

    async def rollover(self, conversation: Conversation) -> Conversation:
        """Archive a conversation and begin another one that continues it from its summaries; returns the new one."""
        async with self._alone(conversation) as current:
            summary = await self._compactor.close_off(current)
            now = self._parts.clock()
            archived = msgspec.structs.replace(current, archived_at=now)
            new = msgspec.structs.replace(
                current,
                id=str(uuid4()),
                previous=current.id,
                model=self._parts.model_name,
                created_at=now,
                updated_at=now,
                archived_at=None,
            )

            def store(connection: apsw.Connection) -> None:
                save_conversation(connection, archived)
                add_conversation(connection, new)
                if summary is not None:
                    add_summary(connection, msgspec.structs.replace(summary, conversation=new.id))

            await self._parts.database.write(store)
            return new

    async def erase(self, conversation: Conversation) -> None:
        """Erase a conversation with everything that came from it, on disk as well."""
        async with self._alone(conversation):
            await self._parts.database.write(
                lambda c: erase_conversation(c, conversation.id, conversation.owner)
            )
            self._hub.publish(conversation.id, "erased")
        await self._parts.database.truncate_log()
        await self._parts.inference.forget(conversation.owner)

    async def forget(self, conversation: Conversation, speaker: str) -> int:
        """Erase what one speaker said and what came from it, on disk as well; returns how many messages went."""

        def forget(connection: apsw.Connection) -> int:
            current = get_conversation(connection, conversation.id, conversation.owner)
            gone = forget_speaker(connection, current, redact(speaker)[0])
            add_job(connection, "compact", conversation.id, now=self._parts.clock())
            return gone

        async with self._alone(conversation):
            gone = await self._parts.database.write(forget)
        await self._parts.database.truncate_log()
        await self._parts.inference.forget(conversation.owner)
        return gone

    async def news(self, conversation: Conversation) -> AsyncGenerator[News, None]:
        """What happens in the conversation from now on; first its ``state``, last that it was ``erased``."""
        async with self._hub.listen(conversation.id) as listener:
            yield News("state", {"compacting": conversation.id in self._compactor.running})
            try:
                await self._current(conversation)
            except NotFoundError:  # erased before anybody listened
                yield News("erased")
                return
            while True:
                news = await listener.next()
                yield news
                if news.kind == "erased":
                    return

    async def _answer(self, call: PostCall) -> AsyncGenerator[PostEvent, None]:
        conversation, parts = call.conversation, self._parts
        message, repeated = await self._accept(call)
        yield MessageAccepted(message)
        if repeated is not None:
            yield Done(repeated, None, "none")
            return
        if not call.reply:
            yield Done(None, None, await self._after(conversation))
            return
        async with aclosing(self._fit(conversation)) as states:
            async for state in states:
                yield state
        context = await self._builder.build(conversation)
        yield BudgetKnown(context.report())
        filled = Filled(self._builder.core_prompt(), {"instructions": conversation.instructions}, "first")
        generate = GenerateCall(
            id=call.id,
            messages=context.composition.messages,
            max_tokens=min(call.max_tokens or context.budget.answer, context.budget.answer),
            sampling=self._builder.reply_sampling(),
            lane=call.lane,
            owner=conversation.owner,
        )
        pieces: list[str] = []
        end: Finished | None = None
        try:
            async with aclosing(parts.model(conversation).stream(generate, filled)) as events:
                async for event in events:
                    if isinstance(event, Delta) and event.text:
                        pieces.append(event.text)
                        yield TextDelta(event.text)
                    elif isinstance(event, LoadProgress):
                        yield Loading(event.fraction)
                    elif isinstance(event, Queued):
                        yield Waiting(event.position, event.wait_seconds)
                    elif isinstance(event, Finished):
                        end = event
        finally:
            if end is None and pieces:
                await finish(self._keep_reply(conversation, message, "".join(pieces), failed=True))
        assert end is not None, "a stream ends with its result or an error"
        reply = await finish(self._keep_reply(conversation, message, "".join(pieces), failed=False))
        yield Done(reply, context.report(end.cached_tokens), await self._after(conversation))

    async def _accept(self, call: PostCall) -> tuple[StoredMessage, StoredMessage | None]:
        """Store the message. One that was stored before comes back with its reply, if it has one.

        Raises DuplicateMessageError when its id is another message's, UnansweredMessageError when its turn is over.
        """
        parts, conversation = self._parts, call.conversation
        text, redactions = await redact_aside(call.text)
        speaker, more = redact(call.speaker)
        [tokens] = await parts.inference.count([_shown(call, speaker, text)])
        new = NewMessage(
            id=call.message_id or str(uuid4()),
            conversation=conversation.id,
            role=call.role,
            speaker=speaker,
            text=text,
            tokens=tokens,
            redactions=redactions + more,
            created_at=self._parts.clock(),
        )

        def store(connection: apsw.Connection) -> tuple[StoredMessage, StoredMessage | None]:
            get_conversation(
                connection, conversation.id, conversation.owner
            )  # it may have been erased meanwhile
            known = find_message(connection, new.id, conversation.id)
            if known is not None and (known.role, known.text) == (new.role, new.text):
                return known, reply_to(connection, known) if call.reply else None
            self._queue(connection, conversation)  # they wait until this message has its reply
            return add_message(connection, new), None

        return await finish(parts.database.write(store))

    async def _fit(self, conversation: Conversation) -> AsyncGenerator[PostEvent, None]:
        """Compact first when the prompt would not fit the context; ordinarily nothing."""
        context = await self._builder.build(conversation, compacting=True)
        if context.composition.total <= context.budget.limit:
            return
        states: asyncio.Queue[PostEvent | None] = asyncio.Queue()

        def tell(levels: list[str], tokens: int) -> None:
            states.put_nowait(Compacting(levels, tokens))

        task = asyncio.create_task(self._compactor.run(conversation, tell=tell))
        task.add_done_callback(lambda _: states.put_nowait(None))
        try:
            while (state := await states.get()) is not None:
                yield state
            try:
                await task
            except HearthError as error:  # what does not fit is left out then, and said to be
                log.warning(
                    "the history could not be compacted", problem=error.message, conversation=conversation.id
                )
        finally:
            await stop([task])

    async def _keep_reply(
        self, conversation: Conversation, message: StoredMessage, text: str, *, failed: bool
    ) -> StoredMessage:
        """Store a reply, and with it the jobs that it causes: its message's may have run while another one waited."""
        clean, redactions = await redact_aside(text.strip())
        # A failed line is in no prompt, and the model that could count it may be the one that has just died.
        [tokens] = [0] if failed else await self._parts.inference.count([clean])
        reply = NewMessage(
            id=str(uuid4()),
            conversation=conversation.id,
            role="assistant",
            speaker="",
            text=clean,
            tokens=tokens,
            redactions=redactions,
            created_at=self._parts.clock(),
            failed=failed,
            answers=message.seq,
        )

        def store(connection: apsw.Connection) -> StoredMessage:
            stored = add_message(connection, reply)
            if not failed:
                self._queue(connection, conversation)
            return stored

        return await self._parts.database.write(store)

    def _queue(self, connection: apsw.Connection, conversation: Conversation) -> None:
        """The jobs that an exchange causes; a compaction looks itself whether it is due."""
        kinds: list[JobKind] = [*self._handlers, "compact"]
        for kind in kinds:
            add_job(connection, kind, conversation.id, now=self._parts.clock())

    async def _after(self, conversation: Conversation) -> Literal["none", "queued"]:
        """Set the worker going; whether the planner wants something now."""
        context = await self._builder.build(conversation, compacting=True)
        self._worker.wake()
        return "queued" if self._compactor.due(context) else "none"

    async def _compact_job(self, job: Job) -> None:
        conversation = await self._parts.database.read(lambda c: any_conversation(c, job.conversation))
        await self._compactor.run(conversation)
        await self._parts.database.write(lambda c: finish_job(c, job))


def _shown(call: PostCall, speaker: str, text: str) -> str:
    """The line as it stands in prompts, for its token count."""
    named = call.conversation.kind == "channel" and speaker and call.role == "user"
    return f"{speaker}: {text}" if named else text
