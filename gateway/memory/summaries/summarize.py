"""The summarizer: one planned compaction becomes a summary that is checked before it counts.

The instruction follows the conversation's own prompt, so that the model goes on from what it has in its cache. A
source that is not in that prompt, or is too large for it, is read apart, in parts if need be. A summary counts only
when the model ended it by itself, when it fits, and when it keeps what its source says
(:mod:`gateway.memory.summaries.keep`).

A message that is too large for any prompt gets a stand-in whatever the model writes: without one it could not be
answered, and neither could what follows it. If its summaries are rejected, sentences are picked from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.memory.compose import HEADINGS, Composition, readable, summary_text
from gateway.memory.model import Filled, MemoryModel
from gateway.memory.summaries.dialogue import dialogue, split_dialogue
from gateway.memory.summaries.extract import extract
from gateway.memory.summaries.keep import SourceCheck, check, cut_at_sentence
from gateway.memory.types import Compaction
from gateway.models.prompts import Prompt, PromptSet
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary, SummaryLevel
from model_host.protocol import Message

log = structlog.get_logger(__name__)

ATTEMPTS = 2
# After that many rejections in a row the old state stays for so long before the next try.
REJECTED_SECONDS = 60.0
# A source smaller than this says nothing worth a call of the model.
_NOTHING_TOKENS = 24
# Of a summary's tokens: its own text; the rest is for pins.
_TEXT_SHARE = 0.7
# English words have about five letters and a blank.
_LETTERS_A_WORD = 6.0
# Of what the source's items are: less kept and pinned is no summary.
_LEAST_KEPT = 0.5
# What an instruction may need in a prompt besides what it is about, in tokens.
_INSTRUCTION_TOKENS = 128
# A text is read in that many parts at most; of a longer one, which would keep its writer waiting for very long,
# sentences are picked before.
_MOST_PARTS = 16
# Words that the summary of a part may always have.
_LEAST_WORDS = 24
_PROMPTS: dict[SummaryLevel, str] = {"now": "summary_now", "reflection": "reflection"}


class SummaryRejectedError(HearthError):
    """The model's summaries did not pass the check; the old state stays and counts."""

    status = 502
    code = "summary_rejected"


class SummarySource(Struct, frozen=True, kw_only=True):
    """What one compaction reads. ``named``: lines carry speakers' names; ``code``: variables are wanted."""

    messages: list[StoredMessage]
    folds: list[Summary]
    named: bool
    code: bool = False

    @property
    def spoken(self) -> list[StoredMessage]:
        """The lines that count."""
        return [message for message in self.messages if not message.failed]

    @property
    def text(self) -> str:
        """Everything to be kept, as text."""
        return "\n".join([*(self.fold_text(fold) for fold in self.folds), dialogue(self.spoken)]).strip()

    @staticmethod
    def fold_text(fold: Summary) -> str:
        """A summary without its heading."""
        return "\n".join([readable(fold.text), *fold.pins]).strip()


class SummaryDraft(Struct, frozen=True, kw_only=True):
    """A summary that passed. ``tokens`` are those of the text and the pins; ``lost`` is what found no room."""

    text: str
    pins: list[str]
    tokens: int
    prompt_name: str
    prompt_version: int
    lost: list[str] = []


class Summarizer:
    """Makes one summary with the model.

    ``context`` is what a prompt and its reply may have, ``part`` the most that is read in a prompt of its own, both in
    tokens. ``apart`` asks for prompts of their own always, for models that do better with those.
    """

    def __init__(
        self, model: MemoryModel, prompts: PromptSet, *, context: int, part: int, apart: bool
    ) -> None:
        self._model = model
        self._prompts = prompts
        self._context = context
        self._part = part
        self._apart = apart
        self._source_parts: list[str] | None = None  # when it is read apart

    async def summarize(
        self, compaction: Compaction, source: SummarySource, composition: Composition | None
    ) -> SummaryDraft:
        """The summary of ``source``. Raises SummaryRejectedError, and what the inference raises."""
        text = source.text
        tokens = sum(m.tokens for m in source.spoken) + sum(fold.tokens for fold in source.folds)
        if tokens < _NOTHING_TOKENS and compaction.level != "message":
            return SummaryDraft(
                text="", pins=[text] if text else [], tokens=tokens, prompt_name="", prompt_version=0
            )
        letters = max(1.0, len(text) / max(1, tokens))  # characters a token, as this conversation has them
        problem = ""
        for attempt in range(ATTEMPTS):
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
        if compaction.level == "message":
            log.warning("sentences were picked instead of a summary", problem=problem, tokens=tokens)
            return await self._picked(source.spoken[0].text, compaction.target_tokens, letters)
        raise SummaryRejectedError(
            f"a summary was rejected {ATTEMPTS} times: {problem}", retry_after=REJECTED_SECONDS
        )

    async def _picked(self, text: str, most: int, letters: float) -> SummaryDraft:
        """A stand-in that no model wrote."""
        picked = await asyncio.to_thread(extract, text, most, lambda piece: _cost(piece, letters))
        [tokens] = await self._model.count([picked])
        return SummaryDraft(text=picked, pins=[], tokens=tokens, prompt_name="", prompt_version=0)

    async def _write(
        self,
        compaction: Compaction,
        source: SummarySource,
        composition: Composition | None,
        words: int,
        attempt: int,
    ) -> tuple[Prompt, str, bool]:
        """One try: the prompt, what the model wrote, and whether it ended by itself."""
        prompt = self._prompt(compaction, source)
        room = compaction.target_tokens + compaction.target_tokens // 4 + 32
        filled = _filled(prompt, source, words)
        in_place = None if self._apart else self._in_place(compaction, source, composition, filled)
        if in_place is not None and await self._fits(in_place, room):
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
        self,
        compaction: Compaction,
        source: SummarySource,
        composition: Composition | None,
        filled: Filled,
    ) -> list[Message] | None:
        """The conversation's prompt with the instruction behind it; None when that prompt is not the source."""
        if composition is None or compaction.level == "message":
            return None
        last = 0  # only summaries are read: they stand before the first message
        if source.spoken:
            last = source.spoken[-1].seq
            spoken = [turn for turn in composition.turns if turn.first]
            begins = bool(spoken) and spoken[0].first == source.spoken[0].seq
            ends = any(turn.last == last for turn in spoken)
            if not (begins and ends) or (source.folds and compaction.level != "round"):
                return None
        return composition.instruction_after(last, filled.text)

    async def _fits(self, messages: list[Message], room: int) -> bool:
        """Whether the context holds the prompt and a reply of ``room`` tokens."""
        return await self._model.count_prompt(messages) + room <= self._context

    async def _write_apart(
        self, source: SummarySource, words: int, room: int, attempt: int
    ) -> tuple[str, bool]:
        """Read the source in a prompt of its own, in parts that fit; several parts are summarized once more."""
        size = max(64, min(self._part, self._context - room) - _INSTRUCTION_TOKENS)
        if self._source_parts is None:
            self._source_parts = await self._split(source, size)
        parts = self._source_parts
        while True:
            written = await self._write_parts(parts, words, room, attempt)
            if written is None:
                return "", False
            [tokens] = await self._model.count([written])
            if len(parts) == 1 or tokens <= room:
                return written, True
            if len(written) >= sum(map(len, parts)):  # it would never become short enough
                return "", False
            parts = await split_dialogue(written, size, self._model.count)

    async def _split(self, source: SummarySource, size: int) -> list[str]:
        """The source in parts of at most ``size`` tokens, not more of them than one summary is made from."""
        text = "\n".join(
            [
                *(f"{HEADINGS[fold.level]} {SummarySource.fold_text(fold)}" for fold in source.folds),
                dialogue(source.spoken),
            ]
        ).strip()
        parts = await split_dialogue(text, size, self._model.count)
        if len(parts) <= _MOST_PARTS:
            return parts
        letters = len(text) / (len(parts) * size)
        most = _MOST_PARTS * size * 3 // 4
        picked = await asyncio.to_thread(extract, text, most, lambda piece: _cost(piece, letters))
        log.warning("only sentences picked from a long text are summarized", parts=len(parts), tokens=most)
        return await split_dialogue(picked, size, self._model.count)

    async def _write_parts(self, parts: list[str], words: int, room: int, attempt: int) -> str | None:
        """The summaries of all parts; None when one of them did not come to an end."""
        prompt = self._prompts.get("history_summary")
        share = words if len(parts) == 1 else max(_LEAST_WORDS, words // len(parts))
        # Twice the words that are asked for: a summary may be longer, but must come to an end.
        most = room if len(parts) == 1 else min(room, 64 + 4 * share)
        written: list[str] = []
        for number, part in enumerate(parts, 1):
            filled = Filled(prompt, {"words": str(share), "dialogue": part})
            reply, stopped = await self._model.write(
                filled, max_tokens=most, again=attempt, following=len(parts) - number
            )
            if not stopped:
                return None
            written.append(reply.strip())
        return "\n".join(written)

    async def _checked(
        self, compaction: Compaction, source: SummarySource, prompt: Prompt, written: str, letters: float
    ) -> SummaryDraft | str:
        """The draft, or what is wrong with it."""
        if not written.strip():
            return "it is empty"

        def cost(text: str) -> int:
            return _cost(text, letters)

        text = written
        if prompt.schema is None:
            text = cut_at_sentence(written, compaction.target_tokens, cost)
        elif cost(written) > compaction.target_tokens * 2:
            return "it is too long"
        if not text:
            return "not one sentence of it fits"
        speakers = (
            sorted({message.speaker for message in source.spoken if message.speaker}) if source.named else []
        )
        room = max(compaction.target_tokens - cost(text), compaction.target_tokens // 4)
        # In a thread: a message may have megabytes, and others are being answered.
        kept = await asyncio.to_thread(check, source.text, text, speakers=speakers, room=room, cost=cost)
        if compaction.level != "message" and _lost_share(kept) > 1.0 - _LEAST_KEPT:
            return f"it lost {len(kept.lost)} names, numbers or identifiers, too many to pin"
        if kept.lost:
            log.warning(
                "a summary lost items that found no room", count=len(kept.lost), level=compaction.level
            )
        [tokens] = await self._model.count(["\n".join([text, *(f"- {pin}" for pin in kept.pins)])])
        return SummaryDraft(
            text=text,
            pins=kept.pins,
            tokens=tokens,
            prompt_name=prompt.name,
            prompt_version=prompt.version,
            lost=kept.lost,
        )


def _filled(prompt: Prompt, source: SummarySource, words: int) -> Filled:
    """The instruction behind a conversation's own prompt."""
    values = {
        "words": str(words),
        "parts": "\n\n".join(summary_text(fold) for fold in source.folds),
        "previous": "\n\n".join(SummarySource.fold_text(fold) for fold in source.folds) or "(none yet)",
    }
    return Filled(prompt, {name: values[name] for name in prompt.variables}, "last")


def _cost(text: str, letters: float) -> int:
    """Tokens of a text, by the characters a token has here; counting each line with the model would take long."""
    return int(len(text) / letters) + 2


def _lost_share(kept: SourceCheck) -> float:
    """The share of the source's items that are neither in the summary nor pinned to it."""
    return len(kept.lost) / max(1, len(kept.lost) + len(kept.pins)) * (1.0 - kept.share)


def spans(messages: Sequence[StoredMessage], folds: Sequence[Summary]) -> tuple[int, int, float, float]:
    """First and last ``seq`` and the times that a summary of both stands for."""
    firsts = [(m.seq, m.created_at) for m in messages] + [(f.first, f.from_time) for f in folds]
    lasts = [(m.seq, m.created_at) for m in messages] + [(f.last, f.to_time) for f in folds]
    first, last = min(firsts), max(lasts)
    return first[0], last[0], first[1], last[1]
