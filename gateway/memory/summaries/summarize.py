"""The summarizer: write and check the summary of one planned compaction.

The instruction follows the conversation's own prompt, to reuse its KV cache. A source that is not in that prompt, or
too large for it, is read in prompts of its own. A summary is accepted only if the model ended it by itself, it fits,
and it keeps what its source says (:mod:`gateway.memory.summaries.keep`).

:meth:`Summarizer.extract` needs no model: sentences of the source stand in for a summary that the model cannot write,
or not in time. So no message leaves the prompt without a summary.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import MutableMapping, Sequence
from functools import partial

import msgspec
import structlog
from msgspec import Struct

from gateway.memory.compose import HEADINGS, Composition, readable, summary_text
from gateway.memory.context import MemoryParts
from gateway.memory.model import Filled
from gateway.memory.summaries.dialogue import dialogue, nothing_happened, split_dialogue
from gateway.memory.summaries.extract import EXTRACT_VERSION, extract
from gateway.memory.summaries.keep import check, cut_at_sentence, supported
from gateway.memory.summaries.variables import CodeSummary, decoded, without_code
from gateway.memory.types import Compaction, ContextBudget
from gateway.models.prompts import Prompt, PromptSet
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import EXTRACT, Summary, SummaryLevel
from model_host.protocol import Message

log = structlog.get_logger(__name__)

ATTEMPTS = 2
# A smaller source is not worth a model call.
_NOTHING_TOKENS = 24
# The text's share of a summary's tokens; the rest is for pins.
_TEXT_SHARE = 0.7
# English words have about five letters and a space.
_LETTERS_A_WORD = 6.0
# A summary must keep or pin this share of what an extract of its size keeps.
_LEAST_KEPT = 0.9
# Tokens for the instruction itself in a prompt.
_INSTRUCTION_TOKENS = 128
# Longer texts would take too long; sentences are picked from them first.
_MOST_PARTS = 16
# The costs of sentences are estimates; the first extraction shows by how much they are wrong.
_EXTRACTIONS = 2
# Minimum length of a part's summary, in words.
_LEAST_WORDS = 24
_PROMPTS: dict[SummaryLevel, str] = {"now": "summary_now", "reflection": "reflection"}


class SummaryRejectedError(Exception):
    """The model's summaries did not pass the check."""


class SummarySource(Struct, frozen=True, kw_only=True):
    """The source of a summary. ``code``: the summary lists variables. ``earlier`` precedes it in prompts."""

    messages: list[StoredMessage]
    folds: list[Summary]
    code: bool = False
    earlier: str = ""

    @property
    def spoken(self) -> list[StoredMessage]:
        return [message for message in self.messages if not message.failed]

    @property
    def text(self) -> str:
        folds = [self.fold_text(fold, variables=not self.code) for fold in self.folds]
        return "\n".join([*folds, self.dialogue]).strip()

    @property
    def dialogue(self) -> str:
        """The messages as a dialogue, without code where variables stand for it."""
        spoken = self.spoken
        if self.code:
            spoken = [msgspec.structs.replace(each, text=without_code(each.text)) for each in spoken]
        return dialogue(spoken)

    @property
    def said(self) -> list[str]:
        """The texts whose names and numbers a summary may join: sentences of summaries, lines, in code messages."""
        folded = [line for fold in self.folds for line in re.split(r"\n|(?<=[.!?…])\s", self.fold_text(fold))]
        return folded + [
            f"{message.speaker or message.role.capitalize()}: {line}"
            for message in self.spoken
            for line in ([message.text] if self.code else message.text.split("\n"))
        ]

    @property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.spoken) + sum(fold.tokens for fold in self.folds)

    @property
    def speakers(self) -> set[str]:
        """The names that lines of :attr:`text` begin with."""
        return {message.speaker for message in self.spoken} | {"User", "Assistant"}

    @property
    def ours(self) -> set[str]:
        """The names of the assistant's lines."""
        return {message.speaker for message in self.spoken if message.role == "assistant"} | {"Assistant"}

    def cost(self, text: str) -> int:
        """Estimated tokens of a text in this conversation."""
        return _cost(text, _letters(self))

    @staticmethod
    def fold_text(fold: Summary, variables: bool = True) -> str:
        """A summary without its heading, and without the variables where they pass on by themselves."""
        told = None if variables else decoded(fold.text)
        return "\n".join([told.ConversationSummary if told else readable(fold.text), *fold.pins]).strip()


class SummaryDraft(Struct, frozen=True, kw_only=True):
    """An accepted summary, or an extract. ``tokens`` counts the text and the pins."""

    text: str = ""
    pins: list[str] = []
    tokens: int = 0
    prompt_name: str = ""
    prompt_version: int = 0


class Summarizer:
    """Writes one summary of a conversation with the model.

    ``finished`` keeps the summaries of parts, for the next run after an interruption.
    """

    def __init__(
        self,
        parts: MemoryParts,
        conversation: Conversation,
        budget: ContextBudget,
        prompts: PromptSet,
        finished: MutableMapping[tuple[object, ...], str],
    ) -> None:
        defaults = parts.defaults
        self._model = parts.model(conversation)
        self._prompts = prompts
        self._context = budget.context
        # Tokens of the source text in a prompt of its own; some models always need one.
        self._part = defaults.summary_prompt_tokens or defaults.prompt_tokens or budget.limit
        self._apart = defaults.summaries_apart
        self._attempts = ATTEMPTS if defaults.memory_summaries else 0
        self._finished = finished
        self._source_parts: list[str] | None = None  # when it is read in prompts of its own

    async def written(
        self,
        compaction: Compaction,
        source: SummarySource,
        composition: Composition,
        places: asyncio.Semaphore,
    ) -> SummaryDraft:
        """The summary, in one of the ``places``, or an extract where the model does not write one."""
        try:
            async with places:
                return await self.summarize(compaction, source, composition)
        except SummaryRejectedError as error:
            log.info("an extract stands in for a summary", level=compaction.level, problem=str(error))
            return await self.extract(compaction, source)

    async def summarize(
        self, compaction: Compaction, source: SummarySource, composition: Composition
    ) -> SummaryDraft:
        """The summary of ``source``. Raises SummaryRejectedError, and what the inference raises."""
        small = self._small(compaction, source)
        if small is not None:
            return small
        letters = _letters(source)
        problem = "this model writes none (memory_summaries in the catalog)"
        for attempt in range(self._attempts):
            most = int(compaction.target_tokens * _TEXT_SHARE)
            words = max(12, int(most * letters / _LETTERS_A_WORD * (0.8 if attempt else 1.0)))
            prompt, written, stopped = await self._write(compaction, source, composition, words, attempt)
            if not stopped:
                problem = "the model did not come to an end"
                continue
            draft = await self._checked(compaction, source, prompt, written, letters)
            if isinstance(draft, SummaryDraft):
                return draft
            problem = draft
        raise SummaryRejectedError(f"no summary after {self._attempts} attempts: {problem}")

    async def extract(self, compaction: Compaction, source: SummarySource) -> SummaryDraft:
        """Sentences of ``source`` in place of a summary; the model only counts their tokens."""
        small = self._small(compaction, source)
        if small is not None:
            return small
        alone = compaction.level == "message"
        text, told = (source.spoken[0].text, None) if alone else (source.text, source)
        most, tokens, picked = compaction.target_tokens, 0, ""
        for _ in range(_EXTRACTIONS):
            found = await _picked(text, most, _letters(source), told)
            [size] = await self._model.count([found])
            if tokens < size <= compaction.target_tokens or not picked:
                picked, tokens = found, size
            most = int(most * compaction.target_tokens / max(1, size) * 0.95)
        return SummaryDraft(text=picked, tokens=tokens, prompt_name=EXTRACT, prompt_version=EXTRACT_VERSION)

    @staticmethod
    def _small(compaction: Compaction, source: SummarySource) -> SummaryDraft | None:
        """The whole source, if it is too small to be summarized; nothing, if nothing happened in it."""
        if compaction.level == "conversation" and not source.folds and nothing_happened(source.messages):
            return SummaryDraft()
        if source.tokens >= _NOTHING_TOKENS or compaction.level == "message":
            return None
        return SummaryDraft(pins=[source.text] if source.text else [], tokens=source.tokens)

    async def _write(
        self,
        compaction: Compaction,
        source: SummarySource,
        composition: Composition,
        words: int,
        attempt: int,
    ) -> tuple[Prompt, str, bool]:
        """One attempt: the prompt, the output, and whether the model ended it by itself."""
        prompt = self._prompt(compaction, source)
        room = compaction.target_tokens + compaction.target_tokens // 4 + 32
        filled = _filled(prompt, source, words)
        in_place = None if self._apart else self._in_place(compaction, source, composition, filled)
        if in_place is not None and await self._model.count_prompt(in_place) + room <= self._context:
            text, stopped = await self._model.write(filled, messages=in_place, max_tokens=room, again=attempt)
            return prompt, text.strip(), stopped
        text, stopped = await self._write_apart(source, words, room, attempt)
        return self._prompts.get("history_summary"), text, stopped

    def _prompt(self, compaction: Compaction, source: SummarySource) -> Prompt:
        if compaction.level == "round":
            return self._prompts.get("summary_code" if source.code else "summary_rounds")
        default = "summary_now" if source.messages and not source.folds else "summary_fold"
        return self._prompts.get(_PROMPTS.get(compaction.level, default))

    def _in_place(
        self, compaction: Compaction, source: SummarySource, composition: Composition, filled: Filled
    ) -> list[Message] | None:
        """The conversation's prompt followed by the instruction; None when that prompt is not the source."""
        if compaction.level == "message":
            return None
        last = 0  # a source of summaries alone: they precede the first message
        if source.spoken:
            last = source.spoken[-1].seq
            spoken = [turn for turn in composition.turns if turn.first]
            begins = bool(spoken) and spoken[0].first == source.spoken[0].seq
            ends = any(turn.last == last for turn in spoken)
            if not (begins and ends) or (source.folds and compaction.level != "round"):
                return None
        return composition.instruction_after(last, filled.text)

    async def _write_apart(
        self, source: SummarySource, words: int, room: int, attempt: int
    ) -> tuple[str, bool]:
        """Summarize the source in parts that fit a prompt, then the summaries of the parts until one is left."""
        size = max(64, min(self._part, self._context - room) - _INSTRUCTION_TOKENS)
        if self._source_parts is None:
            self._source_parts = await self._split(source, size)
        parts = self._source_parts
        while True:
            written, stopped = await self._write_parts(parts, words, room, attempt)
            if not stopped:
                return "", False
            [tokens] = await self._model.count([written])
            if len(parts) == 1 or tokens <= room:
                return written, True
            if len(written) >= sum(map(len, parts)):  # it would never get short enough
                return "", False
            parts = await split_dialogue(written, size, self._model.count)

    async def _split(self, source: SummarySource, size: int) -> list[str]:
        """The source in at most _MOST_PARTS parts of at most ``size`` tokens."""
        parts = await split_dialogue(source.text, size, self._model.count)
        if len(parts) <= _MOST_PARTS:
            return parts
        letters = len(source.text) / (len(parts) * size)
        most = _MOST_PARTS * size * 3 // 4
        picked = await _picked(source.text, most, letters, source)
        log.warning("only sentences picked from a long text are summarized", parts=len(parts), tokens=most)
        return await split_dialogue(picked, size, self._model.count)

    async def _write_parts(self, parts: list[str], words: int, room: int, attempt: int) -> tuple[str, bool]:
        """The summaries of all parts, and whether the model ended most of them by itself.

        An extract stands in for a part that it did not end.
        """
        prompt = self._prompts.get("history_summary")
        share = words if len(parts) == 1 else max(_LEAST_WORDS, words // len(parts))
        # Twice the requested words: a summary may be longer, but must end.
        most = room if len(parts) == 1 else min(room, 64 + 4 * share)
        written: list[str] = []
        unfinished = 0
        for number, part in enumerate(parts, 1):
            key = (prompt.version, attempt, share, most, part)
            text = self._finished.get(key)
            if text is None:
                filled = Filled(prompt, {"words": str(share), "dialogue": part})
                reply, stopped = await self._model.write(
                    filled, max_tokens=most, again=attempt, following=len(parts) - number
                )
                text = self._finished[key] = reply.strip() if stopped else ""
            if not text:
                unfinished += 1
                if unfinished * 2 >= len(parts):
                    return "", False
                text = await _picked(part, share, _LETTERS_A_WORD)
            written.append(text)
        return "\n".join(written), True

    async def _checked(
        self, compaction: Compaction, source: SummarySource, prompt: Prompt, written: str, letters: float
    ) -> SummaryDraft | str:
        """The draft, or why it is rejected."""
        if not written.strip():
            return "it is empty"
        cost, text = partial(_cost, letters=letters), written
        if prompt.schema is None:
            text = cut_at_sentence(written, compaction.target_tokens, cost)
        elif decoded(written) is None:
            return "it is not the JSON that was asked for"
        elif cost(written) > compaction.target_tokens * 2:
            return "it is too long"
        if not text:
            return "not one sentence of it fits"
        if any(heading in text for heading in HEADINGS.values()):
            return "it repeats a heading of the prompt"
        text = await asyncio.to_thread(_supported, source.said, text)
        if not readable(text):
            return "it has names, numbers or identifiers that its source does not have, or joins them wrongly"
        speakers = sorted({message.speaker for message in source.spoken if message.speaker})
        room = max(compaction.target_tokens - cost(text), compaction.target_tokens // 4)
        wanted = None
        if compaction.level != "message":
            wanted = await _picked(source.text, compaction.target_tokens, letters, source)
        # In a thread, because a message may have megabytes.
        kept = await asyncio.to_thread(
            check, source.text, readable(text), speakers=speakers, wanted=wanted, room=room, cost=cost
        )
        if kept.vapid:
            return "it says next to nothing of its source"
        if wanted is not None and kept.share < _LEAST_KEPT:
            return f"it lost {len(kept.lost)} names, numbers or tasks that an extract keeps, too many to pin"
        [tokens] = await self._model.count(["\n".join([text, *(f"- {pin}" for pin in kept.pins)])])
        return SummaryDraft(
            text=text,
            pins=kept.pins,
            tokens=tokens,
            prompt_name=prompt.name,
            prompt_version=prompt.version,
        )


def _supported(lines: Sequence[str], text: str) -> str:
    """The sentences of a summary, and the descriptions of its variables, that its source supports."""
    written = decoded(text)
    if written is None:
        return supported(lines, text)
    variables = [
        msgspec.structs.replace(each, description=supported(lines, each.description))
        for each in written.Variables
    ]
    made = CodeSummary(supported(lines, written.ConversationSummary), variables)
    return msgspec.json.encode(made).decode() if made.ConversationSummary else ""


def _filled(prompt: Prompt, source: SummarySource, words: int) -> Filled:
    """The instruction that follows a conversation's own prompt."""
    values = {
        "words": str(words),
        "parts": "\n\n".join(summary_text(fold) for fold in source.folds),
        "previous": "\n\n".join(SummarySource.fold_text(fold) for fold in source.folds) or "(none yet)",
    }
    return Filled(prompt, {name: values[name] for name in prompt.variables}, "last")


async def _picked(text: str, most: int, letters: float, source: SummarySource | None = None) -> str:
    """Picked sentences, in a thread, because a message may have megabytes. ``source``: its speakers are in the text."""
    told = (source.speakers, source.ours, source.earlier) if source else ()
    return await asyncio.to_thread(extract, text, most, lambda piece: _cost(piece, letters), *told)


def _letters(source: SummarySource) -> float:
    """Characters per token in this conversation."""
    texts = [message.text for message in source.spoken] + [
        SummarySource.fold_text(fold) for fold in source.folds
    ]
    return max(1.0, sum(map(len, texts)) / max(1, source.tokens))


def _cost(text: str, letters: float) -> int:
    """Estimated tokens of a text; counting each line with the model would be slow."""
    return int(len(text) / letters) + 2
