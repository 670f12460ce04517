"""Conversations: accept a message, answer it from memory, and queue the jobs that it causes.

A message and its jobs are stored in one transaction before the message is acknowledged. The jobs wait until it has its
reply. A job stops at its conversation's next message, except a compaction that should end within
``memory.patience_seconds``.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Literal
from uuid import uuid4

import apsw
import msgspec
import structlog

from gateway.base.aio import finish
from gateway.base.errors import NotFoundError, OverloadedError
from gateway.base.redact import redact, take_secrets_aside
from gateway.base.supervised import Supervision
from gateway.inference.interface import LoadProgress
from gateway.memory.answers.stored import StoredAnswers
from gateway.memory.character import Reflector, character
from gateway.memory.compose import line_text
from gateway.memory.context import BlockSource, Context, ContextBuilder, MemoryParts, no_blocks
from gateway.memory.edits import Edits
from gateway.memory.events import BudgetKnown, Done, MessageAccepted, PostCall, PostEvent
from gateway.memory.history import History
from gateway.memory.hub import Hub, News
from gateway.memory.learning.facts import Facts
from gateway.memory.learning.tasks import TaskKeeper
from gateway.memory.model import Filled
from gateway.memory.planning.planner import plan
from gateway.memory.secrets import Secrets, Withheld, disclose, without_told
from gateway.memory.summaries.compaction import HistoryCompactor
from gateway.memory.summaries.fresh import FreshSummaries
from gateway.memory.summaries.recalled import recalled_summaries
from gateway.memory.worker import Handler, Worker
from gateway.store.memory.assistants import assistant_of, unsettled
from gateway.store.memory.conversations import (
    Conversation,
    add_conversation,
    any_conversation,
    continuation,
    get_conversation,
    save_conversation,
)
from gateway.store.memory.jobs import Job, JobKind, add_job, finish_job
from gateway.store.memory.messages import (
    NewMessage,
    StoredMessage,
    add_message,
    find_message,
    line_before,
    reply_to,
)
from gateway.store.memory.summaries import add_summary
from model_host.protocol import Delta, Finished, Prefill, Queued

log = structlog.get_logger(__name__)

# Messages and changes of one conversation that are processed or wait.
_MAX_HELD = 16
# Poll interval of the estimate while a message waits for a compaction.
_POLL_SECONDS = 0.05


class Conversations:
    """The memory's interface to the API."""

    def __init__(self, parts: MemoryParts, project: BlockSource = no_blocks) -> None:
        self._parts = parts
        self._hub = Hub(parts.database.peers, "news")
        facts, tasks = Facts(parts, self._hub), TaskKeeper(parts, self._hub)
        self._notes = {"facts": facts.note, "tasks": tasks.note}
        self.history = History(parts.database, parts.inference, parts.settings, parts.queries)
        answers = StoredAnswers(parts)
        recalled = partial(recalled_summaries, parts)
        sources: list[BlockSource] = [tasks.offer, answers.offer, facts.offer, recalled]
        self._builder = ContextBuilder(parts, character, sources, self.history, project)
        self._compactor = HistoryCompactor(parts, self._builder, self._hub)
        self._reflector = Reflector(parts, self._builder, self._compactor.places)
        self._secrets = Secrets(parts.settings.keep_seconds)
        self.edits = Edits(parts, self._compactor, self._hub, self._secrets, self._alone)
        self._handlers: dict[JobKind, Handler] = {}
        if parts.settings.facts:
            self._handlers["facts"] = facts.run
        if parts.settings.tasks:
            self._handlers["tasks"] = tasks.run
        if parts.settings.fresh_share:
            fresh = FreshSummaries(parts, self._compactor)
            self._handlers["fresh"] = partial(self._do, (fresh.run,))
        compact = (self._compactor.run, self._compactor.replace_extracts, self._reflector.run)
        self._worker = Worker(parts.database, {"compact": partial(self._do, compact), **self._handlers})
        self.turns = parts.database.peers.locks("turn")  # by conversation: one message or change at a time

    async def start(self, supervision: Supervision) -> None:
        await self._worker.start(supervision)

    async def close(self) -> None:
        """Interrupt jobs; they stay queued in the database."""
        await self._worker.close()

    async def post(self, call: PostCall) -> AsyncGenerator[PostEvent, None]:
        """Accept a message and answer it; the last event is ``Done``. Closing the generator cancels the reply.

        Raises OverloadedError when too many messages wait, and what the inference raises. An incomplete reply stays in
        the log, marked as failed.
        """
        name = call.conversation.id
        if self.turns.users(name) >= _MAX_HELD:
            raise OverloadedError(f"{_MAX_HELD} messages wait in this conversation already", retry_after=5.0)
        if self.turns.users(name):
            yield News("held", {"reason": "reply"})
        elif call.reply and name in self._compactor.running:
            yield News("held", {"reason": "compaction"})
        async with self.turns.hold(name), self._room_for(call):
            # The conversation may have changed while the message waited.
            call = msgspec.structs.replace(call, conversation=await self._current(call.conversation))
            async with aclosing(self._answer(call)) as events:
                async for event in events:
                    yield event

    @asynccontextmanager
    async def _room_for(self, call: PostCall) -> AsyncIterator[None]:
        """Keep jobs from running while the block runs, unless the message gets no reply."""
        if not call.reply:  # otherwise a lively channel would never be compacted
            yield
            return
        await self._let_finish(call.conversation.id)
        async with self._worker.holding(call.conversation.id):
            yield

    @asynccontextmanager
    async def _alone(self, conversation: Conversation) -> AsyncIterator[Conversation]:
        """The conversation's current row, locked against messages and jobs. Raises NotFoundError."""
        async with self.turns.hold(conversation.id), self._worker.holding(conversation.id):
            yield await self._current(conversation)

    async def _current(self, conversation: Conversation) -> Conversation:
        return await self._parts.database.read(
            lambda c: get_conversation(c, conversation.id, conversation.owner)
        )

    async def _let_finish(self, name: str) -> None:
        """Wait for a compaction that should end soon: stopping it would waste what it has written."""
        until = time.monotonic() + self._parts.settings.patience_seconds
        while (left := self._compactor.seconds_left(name)) is not None and time.monotonic() + left < until:
            if await self._worker.ended(name, _POLL_SECONDS):
                return

    async def context(self, conversation: Conversation) -> Context:
        """The prompt of the next message, without that message."""
        return await self._builder.build(conversation)

    async def compact(self, conversation: Conversation) -> int:
        """Compact now, even if none is due; returns the number of summaries."""
        async with self._alone(conversation) as current:
            made = await self._compactor.run(current, force=True)
            await self._reflector.run(current)
            return made

    async def convert(self, conversation: Conversation, version: int | None) -> tuple[int, int]:
        """Rewrite summaries of other prompt versions; return how many were rewritten and rejected."""
        async with self._alone(conversation) as current:
            return await self._compactor.convert(current, version)

    async def rollover(self, conversation: Conversation) -> Conversation:
        """Archive a conversation and return a new one that continues it from a summary.

        If that was done already and nothing was said since, its continuation is returned.
        """
        async with self._alone(conversation) as current:
            if current.archived_at is not None and current.updated_at <= current.archived_at:
                known = await self._parts.database.read(lambda c: continuation(c, current))
                if known is not None:
                    return known
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

    async def news(self, conversation: Conversation) -> AsyncGenerator[News, None]:
        """News of the conversation from now on; the first is its ``state``, the last ``erased``."""
        async with self._hub.listen(conversation.id) as listener:
            yield News("state", {"compacting": conversation.id in self._compactor.running})
            try:
                await self._current(conversation)
            except NotFoundError:  # erased before the subscription
                yield News("erased")
                return
            while True:
                news = await listener.next()
                yield news
                if news.kind == "erased":
                    return

    async def _answer(self, call: PostCall) -> AsyncGenerator[PostEvent, None]:
        conversation, parts = call.conversation, self._parts
        message, repeated, withheld = await self._accept(call)
        yield MessageAccepted(message, withheld.removed if withheld is not None else ())
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
        generate, ending = self._builder.reply_call(context, call)
        disclosed = None
        if withheld is not None and self._builder.can_disclose(context):
            room = context.budget.limit - context.composition.total
            disclosed = await disclose(parts.inference, generate, withheld, room)
        pieces: list[str] = []
        end: Finished | None = None
        try:
            model = parts.model(conversation)
            stream = model.stream(generate, filled, context.quoted, disclosed, ending)
            if context.answer:
                stream = model.recite(generate, context.answer)
            async with aclosing(stream) as events:
                async for event in events:
                    if isinstance(event, Delta) and event.text:
                        pieces.append(event.text)
                        yield News("delta", {"text": event.text})
                    elif isinstance(event, LoadProgress):
                        yield News("loading", {"fraction": event.fraction})
                    elif isinstance(event, Queued):
                        queued = {"position": event.position, "wait_seconds": event.wait_seconds}
                        yield News("queued", queued)
                    elif isinstance(event, Prefill):
                        left = parts.inference.health().reading_seconds(event)
                        reading = {"done": event.done, "total": event.total, "seconds_left": left}
                        yield News("reading", reading)
                    elif isinstance(event, Finished):
                        if context.after:
                            pieces.append(f"\n\n{context.after}" if pieces else context.after)
                            yield News("delta", {"text": pieces[-1]})
                        end = event
        finally:
            if end is None and pieces:
                await finish(self._keep_reply(context, message, pieces, withheld, failed=True))
        assert end is not None, "a stream ends with its result or an error"
        reply = await finish(self._keep_reply(context, message, pieces, withheld, failed=False))
        cut = end.reason == "length"
        yield Done(reply, context.report(end.cached_tokens), await self._after(conversation), cut=cut)

    async def _accept(self, call: PostCall) -> tuple[StoredMessage, StoredMessage | None, Withheld | None]:
        """Store the message and hold its secrets for a while; one that is stored already is returned with its reply.

        Raises DuplicateMessageError when another message has its id, UnansweredMessageError when it got no reply and
        the conversation has continued.
        """
        parts, conversation = self._parts, call.conversation
        name = call.message_id or str(uuid4())
        asked = await parts.database.read(lambda c: line_before(c, name, conversation.id))
        text, removed = await take_secrets_aside(call.text, asked)
        speaker, more = redact(call.speaker)
        [tokens] = await parts.inference.count([line_text(call.role, speaker, text)])
        new = NewMessage(
            id=name,
            conversation=conversation.id,
            role=call.role,
            speaker=speaker,
            text=text,
            tokens=tokens,
            redactions=len(removed) + more,
            created_at=self._parts.clock(),
            failed=call.failed,
        )
        noted: dict[str, list[str]] = {}

        def store(connection: apsw.Connection) -> tuple[StoredMessage, StoredMessage | None]:
            get_conversation(connection, conversation.id, conversation.owner)  # raises if it was erased
            known = find_message(connection, new.id, conversation.id)
            if known is not None and (known.role, known.text) == (new.role, new.text):
                return known, reply_to(connection, known) if call.reply else None
            self._queue(connection, conversation)  # the jobs run once this message has its reply
            ended = self._parts.clock() - self._parts.settings.episode_gap_seconds
            for name in unsettled(connection, conversation, ended):
                add_job(connection, "compact", name, now=self._parts.clock())
            named = new
            if new.role == "assistant" and not speaker and (own := assistant_of(connection, conversation)):
                named = msgspec.structs.replace(new, speaker=own.name)
            added = add_message(connection, named)
            noted.update({kind: note(connection, conversation, added) for kind, note in self._notes.items()})
            return added, None

        stored, repeated = await finish(parts.database.write(store))
        for kind, changed in noted.items():
            if changed:
                self._hub.publish(conversation.id, kind, changed=changed)
                parts.requests.wake()
        return stored, repeated, self._secrets.hold(stored, call.text, removed)

    async def _fit(self, conversation: Conversation) -> AsyncGenerator[PostEvent, None]:
        """Make the prompt fit the context without the model, which would keep the message waiting.

        Extracts stand in for the summaries; the model replaces them when it is idle.
        """
        context = await self._builder.build(conversation, compacting=True)
        if context.composition.total > context.budget.limit:
            levels = [each.level for each in plan(context.situation)]
            yield News("compacting", {"levels": levels, "tokens": context.composition.total})
            await self._compactor.run(conversation, at_once=True)

    async def _keep_reply(
        self,
        context: Context,
        message: StoredMessage,
        pieces: Sequence[str],
        withheld: Withheld | None,
        *,
        failed: bool,
    ) -> StoredMessage:
        """Store a reply with its jobs: those of its message may have run already."""
        conversation = context.conversation
        clean, redactions = await without_told("".join(pieces).strip(), withheld)
        # Prompts leave failed lines out, and the model that would count the tokens may have just died.
        [tokens] = [0] if failed else await self._parts.inference.count([clean])
        reply = NewMessage(
            id=str(uuid4()),
            conversation=conversation.id,
            role="assistant",
            speaker=context.speaker,
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
        """Queue an exchange's jobs; a compaction job checks itself whether one is due."""
        kinds: list[JobKind] = ["compact", *self._handlers]
        for kind in kinds:
            add_job(connection, kind, conversation.id, now=self._parts.clock())

    async def _after(self, conversation: Conversation) -> Literal["none", "queued"]:
        """Wake the worker; return whether a compaction is due."""
        context = await self._builder.build(conversation, compacting=True)
        self._worker.wake()
        return "queued" if plan(context.situation) else "none"

    async def _do(self, steps: Sequence[Callable[[Conversation], Awaitable[object]]], job: Job) -> None:
        conversation = await self._parts.database.read(lambda c: any_conversation(c, job.subject))
        for step in steps:
            await step(conversation)
        await self._parts.database.write(lambda c: finish_job(c, job))
