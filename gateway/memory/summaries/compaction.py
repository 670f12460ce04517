"""Compaction: plan, summarize, store, and plan again until no plan is left."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import msgspec
import structlog
from msgspec import Struct

from gateway.base.aio import side_by_side
from gateway.base.errors import HearthError, NotFoundError
from gateway.memory.compose import readable
from gateway.memory.context import Context, ContextBuilder, MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.planning.planner import plan
from gateway.memory.planning.situation import MIN_TARGET_TOKENS
from gateway.memory.summaries.extract import EXTRACT_VERSION
from gateway.memory.summaries.summarize import Summarizer, SummaryDraft, SummaryRejectedError, SummarySource
from gateway.memory.summaries.variables import with_variables
from gateway.memory.types import Compaction
from gateway.models.prompts import PromptSet
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import StoredMessage, messages_between
from gateway.store.memory.summaries import (
    EXTRACT,
    NewSummary,
    Summary,
    add_summary,
    current_summary,
    save_current_summary,
)

log = structlog.get_logger(__name__)

# Plans in a row for one conversation: usually two or three, but an imported log takes one per context's worth of text.
_MAX_PLANS = 1000
# Summaries that the model writes at once, over all conversations.
_AT_ONCE = 4
# Of a summary of the whole conversation, before the model's speeds are known.
_UNKNOWN_SECONDS = 1.0


class _Whole(Struct, frozen=True):
    """Sources of the summary of a whole conversation: ``folds``, then the messages of ``due``.

    ``due`` is None if ``current`` is up to date, or if there is nothing to summarize.
    """

    context: Context
    current: NewSummary | None
    folds: list[Summary]
    due: Compaction | None


class HistoryCompactor:
    def __init__(self, parts: MemoryParts, builder: ContextBuilder, hub: Hub) -> None:
        self._parts = parts
        self._builder = builder
        self._hub = hub
        self.running: set[str] = set()  # conversations whose summaries are being written
        self._open: set[str] = set()  # conversations with a compaction, also between its plans
        self.places = asyncio.Semaphore(_AT_ONCE)
        # Summaries of parts of unfinished compactions, by conversation.
        self._finished: defaultdict[str, dict[tuple[object, ...], str]] = defaultdict(dict)
        # Models, and extracts that they could not replace (``seq``).
        self._refused: set[tuple[str, int]] = set()

    def seconds_left(self, conversation: str) -> float | None:
        """Estimated seconds until the current summaries are done; None when unknown, or when none is written."""
        return self._parts.pace.seconds_left(conversation) if conversation in self._open else None

    def forget(self, conversation: str) -> None:
        """Drop what is kept of the conversation's text."""
        self._finished.pop(conversation, None)

    async def run(self, conversation: Conversation, *, force: bool = False, at_once: bool = False) -> int:
        """Compact until the planner has no plan; return the number of summaries.

        The model writes them. Extracts stand in for rejected ones, and ``at_once`` for all. Raises what the inference
        raises; the summaries made so far stay. The outcome is published to the conversation's listeners.
        """
        try:
            made = await self._run(conversation, force, at_once)
        except HearthError as error:
            self._hub.publish(conversation.id, "compaction_failed", code=error.code, message=error.message)
            raise
        except asyncio.CancelledError:
            if conversation.id in self._open:
                self._hub.publish(conversation.id, "compaction_stopped")
            raise
        finally:
            self._open.discard(conversation.id)
        self.forget(conversation.id)
        return made

    async def _run(self, conversation: Conversation, force: bool, at_once: bool) -> int:
        made = 0
        for _ in range(_MAX_PLANS):
            context = await self._builder.build(conversation, compacting=True, force=force)
            planned = plan(context.situation)
            if not planned:
                break
            levels = [each.level for each in planned]
            self._open.add(conversation.id)
            self._hub.publish(conversation.id, "compacting", levels=levels, tokens=context.situation.total)
            self.running.add(conversation.id)
            try:
                await side_by_side(self._make(context, each, at_once) for each in planned)
            finally:
                self.running.discard(conversation.id)
            made += len(planned)
        if made:
            self._hub.publish(conversation.id, "compacted", summaries=made)
        return made

    async def replace_extracts(self, conversation: Conversation) -> int:
        """Have the model write the summaries that extracts stand in for; return how many it wrote.

        Each is tried once per run of the program. Raises what the inference raises.
        """
        context = await self._builder.build(conversation, compacting=True)
        written = 0
        for summary in context.situation.summaries:
            if summary.seq in context.situation.reflected:
                continue
            attempt = (self._parts.model_name, summary.seq)
            if summary.prompt_name == EXTRACT and attempt not in self._refused:
                try:
                    await self._rewrite(context, summary, self._parts.prompts)
                    written += 1
                except SummaryRejectedError:
                    self._refused.add(attempt)
        self.forget(conversation.id)
        if written:
            self._hub.publish(conversation.id, "compacted", summaries=written)
        return written

    async def close_off(self, conversation: Conversation) -> NewSummary | None:
        """One summary of a whole conversation, for the one that continues it; None if it is empty.

        It is not stored. An extract, if the model cannot write it. Raises what the inference raises.
        """
        whole = await self._whole(conversation)
        if whole.due is None:
            return whole.current
        return await self._written(whole.context, whole.due, folds=whole.folds)

    async def freshen(self, conversation: Conversation) -> None:
        """Bring the summary of the whole conversation up to date. Raises what the inference raises."""
        if (made := await self.close_off(conversation)) is not None:
            await self._parts.database.write(partial(save_current_summary, summary=made))
        self.forget(conversation.id)

    async def freshening_seconds(self, conversation: Conversation) -> float:
        """Estimate of the time that :meth:`freshen` takes."""
        whole = await self._whole(conversation)
        if whole.due is None or not self._parts.defaults.memory_summaries:
            return 0.0
        pace, situation = self._parts.pace, whole.context.situation
        read = situation.prompt_tokens(situation.messages) + sum(each.tokens for each in whole.folds)
        written = pace.expected("history_summary", whole.due.target_tokens)
        if pace.reading.value is None or pace.writing.value is None:
            return _UNKNOWN_SECONDS
        return read / pace.reading.value + written / pace.writing.value

    async def _whole(self, conversation: Conversation) -> _Whole:
        context = await self._builder.build(conversation, compacting=True)
        current = await self._parts.database.read(lambda c: current_summary(c, conversation.id))
        situation = context.situation
        folds = situation.chain
        seqs = [message.seq for message in situation.messages if not message.failed]
        first = min(seqs, default=None)
        last = max([*seqs, *(summary.last for summary in situation.chain)], default=0)
        # The model gets the source of an extract again.
        if current is not None and current.prompt_name != EXTRACT:
            folds = [Summary(**msgspec.structs.asdict(current), seq=0, superseded_by=None)]
            first = current.last + 1
        if last <= (current.last if current is not None else 0):
            return _Whole(context, current, folds, None)
        tokens = situation.prompt_tokens(situation.messages) // 2 + sum(each.tokens for each in folds)
        due = Compaction(
            level="conversation",
            first=first,
            last=last if first is not None else None,
            folds=tuple(each.seq for each in folds),
            target_tokens=max(MIN_TARGET_TOKENS, min(context.budget.floor // 2, tokens)),
        )
        return _Whole(context, current, folds, due)

    async def convert(self, conversation: Conversation, version: int | None) -> tuple[int, int]:
        """Rewrite the live summaries that another version of their prompts wrote than ``version`` or the current one.

        Each is written from the messages of its span, and supersedes the old row; one that is rejected stays as it is.
        Extracts by other rules than the present ones are made again too, unless a ``version`` is asked for.
        Returns how many were rewritten and rejected. Raises what the inference raises, and InvalidRequestError when a
        prompt does not have that version.
        """
        context = await self._builder.build(conversation, compacting=True)
        prompts = self._parts.prompts
        wanted = prompts if version is None else prompts.with_version(version)
        outdated = []
        for summary in context.situation.summaries:
            name = summary.prompt_name
            # Otherwise its prompt is gone, or somebody wrote it: it stays as it is.
            if name == EXTRACT and version is None and summary.prompt_version != EXTRACT_VERSION:
                outdated.append(summary)
            elif name in prompts.names():
                prompt = prompts.get(name) if version is None else prompts.version(name, version, "to")
                if summary.prompt_version != prompt.version:
                    outdated.append(summary)
        rejected = 0
        for summary in outdated:
            try:
                await self._rewrite(context, summary, wanted, extracts=True)
            except SummaryRejectedError as error:
                rejected += 1
                log.warning("a summary was not converted", conversation=conversation.id, problem=str(error))
        self.forget(conversation.id)  # a rejected one is not to be rejected for the same words again
        return len(outdated) - rejected, rejected

    async def _rewrite(
        self, context: Context, summary: Summary, prompts: PromptSet, *, extracts: bool = False
    ) -> None:
        """Write a summary again from the messages of its span; ``extracts`` stay such.

        Raises SummaryRejectedError.
        """
        messages = await self._parts.database.read(
            partial(
                messages_between,
                conversation=context.conversation.id,
                first=summary.first,
                last=summary.last,
            )
        )
        again = Compaction(
            level=summary.level,
            first=messages[0].seq if messages else None,
            last=messages[-1].seq if messages else None,
            folds=() if messages else (summary.seq,),
            target_tokens=max(MIN_TARGET_TOKENS, summary.tokens),
        )
        summarizer, source = await self._source(context, again, prompts)
        if extracts and summary.prompt_name == EXTRACT:
            draft = await summarizer.extract(again, source)
        else:
            async with self.places:
                draft = await summarizer.summarize(again, source, context.composition)
        made = msgspec.structs.replace(
            await self._summary(context, again, source, draft), first=summary.first, last=summary.last
        )
        await self._parts.database.write(partial(add_summary, summary=made, folds=(summary.seq,)))

    async def _make(self, context: Context, compaction: Compaction, at_once: bool) -> None:
        summary = await self._written(context, compaction, at_once)
        seq = await self._parts.database.write(partial(add_summary, summary=summary, folds=compaction.folds))
        if summary.prompt_name == EXTRACT and not at_once:
            self._refused.add((self._parts.model_name, seq))

    async def _written(
        self,
        context: Context,
        compaction: Compaction,
        at_once: bool = False,
        folds: Sequence[Summary] | None = None,
    ) -> NewSummary:
        summarizer, source = await self._source(context, compaction, self._parts.prompts, folds)
        if at_once:
            draft = await summarizer.extract(compaction, source)
        else:
            draft = await summarizer.written(compaction, source, context.composition, self.places)
        return await self._summary(context, compaction, source, draft)

    async def _source(
        self,
        context: Context,
        compaction: Compaction,
        prompts: PromptSet,
        folds: Sequence[Summary] | None = None,
    ) -> tuple[Summarizer, SummarySource]:
        """``folds`` default to the live summaries that the compaction names."""
        conversation = context.conversation
        if folds is None:
            folds = [each for each in context.situation.summaries if each.seq in compaction.folds]
        messages = await self._messages(context, compaction)
        if compaction.level != "message":
            messages = [_as_read(message, context.situation.summaries) for message in messages]
        before = [each for each in context.situation.chain if each.last < (compaction.first or 0)]
        source = SummarySource(
            messages=messages,
            folds=list(folds),
            code=conversation.kind == "code" and compaction.level != "message",
            earlier="\n".join(SummarySource.fold_text(each) for each in before if each not in folds),
        )
        finished = self._finished[conversation.id]
        return Summarizer(self._parts, conversation, context.budget, prompts, finished), source

    async def _summary(
        self, context: Context, compaction: Compaction, source: SummarySource, draft: SummaryDraft
    ) -> NewSummary:
        if source.code:
            draft = await self._with_variables(compaction, source, draft, context.budget.floor)
        first, last, from_time, to_time = _spans(source.messages, source.folds)
        return NewSummary(
            conversation=context.conversation.id,
            level=compaction.level,
            first=first,
            last=last,
            from_time=from_time,
            to_time=to_time,
            **msgspec.structs.asdict(draft),
            model=self._parts.model_name if draft.prompt_name not in ("", EXTRACT) else "",
            created_at=self._parts.clock(),
        )

    async def _with_variables(
        self, compaction: Compaction, source: SummarySource, draft: SummaryDraft, floor: int
    ) -> SummaryDraft:
        text = await asyncio.to_thread(
            with_variables,
            draft.text,
            source.spoken,
            [fold.text for fold in source.folds],
            room=max(compaction.target_tokens, floor // 4),
            cost=source.cost,
        )
        shown = "\n".join([readable(text), *(f"- {pin}" for pin in draft.pins)])
        [tokens] = await self._parts.inference.count([shown])
        return msgspec.structs.replace(draft, text=text, tokens=tokens)

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


def _spans(messages: Sequence[StoredMessage], folds: Sequence[Summary]) -> tuple[int, int, float, float]:
    """First and last ``seq`` of both, and their times."""
    firsts = [(m.seq, m.created_at) for m in messages] + [(f.first, f.from_time) for f in folds]
    lasts = [(m.seq, m.created_at) for m in messages] + [(f.last, f.to_time) for f in folds]
    first, last = min(firsts), max(lasts)
    return first[0], last[0], first[1], last[1]
