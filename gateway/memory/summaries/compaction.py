"""Compaction: plan, summarize, store, and plan again until no plan is left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from gateway.base.aio import side_by_side
from gateway.base.errors import HearthError, NotFoundError
from gateway.memory.context import Context, ContextBuilder, MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.planning.planner import plan
from gateway.memory.planning.situation import MIN_TARGET_TOKENS
from gateway.memory.summaries.summarize import (
    REJECTED_SECONDS,
    Summarizer,
    SummaryRejectedError,
    SummarySource,
    spans,
)
from gateway.memory.types import Compaction
from gateway.models.prompts import PromptSet
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import StoredMessage, messages_between
from gateway.store.memory.summaries import NewSummary, Summary, add_summary

# Plans in a row for one conversation: usually two or three, but an imported log takes one per context's worth of text.
_MAX_PLANS = 1000


class HistoryCompactor:
    def __init__(self, parts: MemoryParts, builder: ContextBuilder, hub: Hub) -> None:
        self._parts = parts
        self._builder = builder
        self._hub = hub
        self.running: set[str] = set()  # conversations whose summaries are being written
        self._open: set[str] = set()  # conversations with a compaction, also between its plans
        self._paused: dict[str, float] = {}  # monotonic time of the next attempt, by conversation

    def seconds_left(self, conversation: str) -> float | None:
        """Estimated seconds until the current summaries are done; None when unknown, or when none is written."""
        return self._parts.pace.seconds_left(conversation) if conversation in self._open else None

    async def run(
        self, conversation: Conversation, *, force: bool = False, tell: Callable[..., None] | None = None
    ) -> int:
        """Compact until the planner has no plan; returns the number of summaries.

        ``tell`` gets ``levels`` and ``tokens`` of each plan as keywords. Raises SummaryRejectedError and what the
        inference raises; the summaries made so far stay. The outcome is published to the conversation's listeners.
        """
        pause = 0.0 if force else self._paused.get(conversation.id, 0.0) - time.monotonic()
        self._open.add(conversation.id)
        try:
            made = await self._run(conversation, force, pause, tell)
        except HearthError as error:
            if pause <= 0:  # otherwise nothing was tried, and the previous failure has been published
                if isinstance(error, SummaryRejectedError):
                    self._paused[conversation.id] = time.monotonic() + REJECTED_SECONDS
                self._hub.publish(
                    conversation.id, "compaction_failed", code=error.code, message=error.message
                )
            raise
        except asyncio.CancelledError:
            self._hub.publish(conversation.id, "compaction_stopped")
            raise
        finally:
            self._open.discard(conversation.id)
        self._paused.pop(conversation.id, None)
        return made

    async def _run(
        self, conversation: Conversation, force: bool, pause: float, tell: Callable[..., None] | None
    ) -> int:
        """``pause``: seconds until a summary may be tried again. Stand-ins never wait, because replies need them."""
        made = 0
        for _ in range(_MAX_PLANS):
            context = await self._builder.build(conversation, compacting=True, force=force)
            planned = plan(context.situation)
            if not planned:
                break
            if pause > 0 and any(each.level != "message" for each in planned):
                raise SummaryRejectedError("its summaries were rejected a moment ago", retry_after=pause)
            state: dict[str, Any] = {
                "levels": [each.level for each in planned],
                "tokens": context.situation.total,
            }
            self._hub.publish(conversation.id, "compacting", **state)
            if tell is not None:
                tell(**state)
            self.running.add(conversation.id)
            try:
                await side_by_side(self._make(context, each) for each in planned)
            finally:
                self.running.discard(conversation.id)
            made += len(planned)
        if made:
            self._hub.publish(conversation.id, "compacted", summaries=made)
        return made

    async def close_off(self, conversation: Conversation) -> NewSummary | None:
        """One summary of a whole conversation, for the one that continues it; None if it is empty.

        It is not stored. Raises as :meth:`run`.
        """
        context = await self._builder.build(conversation, compacting=True)
        situation = context.situation
        if not situation.messages and not situation.chain:
            return None
        seqs = [message.seq for message in situation.messages]
        everything = Compaction(
            level="conversation",
            first=seqs[0] if seqs else None,
            last=seqs[-1] if seqs else None,
            folds=tuple(summary.seq for summary in situation.chain),
            target_tokens=context.budget.floor // 2,
        )
        return await self._summary(context, everything)

    async def convert(self, conversation: Conversation, version: int | None) -> int:
        """Rewrite the live summaries that another version of their prompts wrote than ``version`` or the current one.

        Each is written from the messages of its span, and supersedes the old row. Returns their number. Raises as
        :meth:`run`, and InvalidRequestError when a prompt does not have that version.
        """
        context = await self._builder.build(conversation, compacting=True)
        prompts = self._parts.prompts
        wanted = prompts if version is None else prompts.with_version(version)
        outdated = []
        for summary in context.situation.summaries:
            name = summary.prompt_name
            if (
                name in prompts.names()
            ):  # otherwise its prompt is gone, or no model wrote it: it stays as it is
                prompt = prompts.get(name) if version is None else prompts.version(name, version, "to")
                if summary.prompt_version != prompt.version:
                    outdated.append(summary)
        for summary in outdated:
            messages = await self._parts.database.read(
                partial(
                    messages_between, conversation=conversation.id, first=summary.first, last=summary.last
                )
            )
            again = Compaction(
                level=summary.level,
                first=messages[0].seq if messages else None,
                last=messages[-1].seq if messages else None,
                folds=() if messages else (summary.seq,),
                target_tokens=max(MIN_TARGET_TOKENS, summary.tokens),
            )
            made = msgspec.structs.replace(
                await self._summary(context, again, wanted), first=summary.first, last=summary.last
            )
            await self._parts.database.write(partial(add_summary, summary=made, folds=(summary.seq,)))
        return len(outdated)

    async def _make(self, context: Context, compaction: Compaction) -> None:
        summary = await self._summary(context, compaction)
        await self._parts.database.write(partial(add_summary, summary=summary, folds=compaction.folds))

    async def _summary(
        self, context: Context, compaction: Compaction, prompts: PromptSet | None = None
    ) -> NewSummary:
        """``prompts`` replace the current versions."""
        conversation, parts = context.conversation, self._parts
        messages = await self._messages(context, compaction)
        if compaction.level != "message":
            messages = [_as_read(message, context.situation.summaries) for message in messages]
        source = SummarySource(
            messages=messages,
            folds=[summary for summary in context.situation.summaries if summary.seq in compaction.folds],
            named=conversation.kind == "channel",
            code=conversation.kind == "code",
        )
        summarizer = Summarizer(
            parts.model(conversation),
            prompts or parts.prompts,
            context=context.budget.context,
            part=parts.defaults.summary_prompt_tokens or parts.defaults.prompt_tokens or context.budget.limit,
            apart=parts.defaults.summaries_apart,
        )
        draft = await summarizer.summarize(compaction, source, context.composition)
        first, last, from_time, to_time = spans(messages, source.folds)
        return NewSummary(
            conversation=conversation.id,
            level=compaction.level,
            first=first,
            last=last,
            from_time=from_time,
            to_time=to_time,
            text=draft.text,
            pins=draft.pins,
            tokens=draft.tokens,
            prompt_name=draft.prompt_name,
            prompt_version=draft.prompt_version,
            model=parts.model_name if draft.prompt_name else "",
            created_at=self._parts.clock(),
        )

    async def _messages(self, context: Context, compaction: Compaction) -> list[StoredMessage]:
        if compaction.first is None or compaction.last is None:
            return []
        first, last = compaction.first, compaction.last
        found = await self._parts.database.read(
            lambda c: messages_between(c, context.conversation.id, first, last)
        )
        if not found:
            raise NotFoundError("the conversation was erased while it was compacted")
        return found


def _as_read(message: StoredMessage, summaries: Sequence[Summary]) -> StoredMessage:
    """The message, or its stand-in if it has one: then it is too large to be read again."""
    for summary in summaries:
        if summary.level == "message" and summary.first == message.seq:
            text = "\n".join([summary.text, *summary.pins])
            return msgspec.structs.replace(message, text=text, tokens=summary.tokens)
    return message
