"""The summarizer: one planned compaction becomes a summary that is checked before it counts.

The instruction follows the conversation's own prompt, so that the model goes on from what it has in its cache. A
source that is not in that prompt, or is too large for it, is read apart, in parts if need be. A summary counts only
when the model ended it by itself, when it fits, and when it keeps what its source says (:mod:`gateway.memory.keep`).
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from msgspec import Struct

from gateway.errors import HearthError
from gateway.memory.compose import HEADINGS, Composition, readable, summary_text
from gateway.memory.dialogue import dialogue, split_dialogue
from gateway.memory.keep import check, cut_at_sentence
from gateway.memory.model import MemoryModel
from gateway.memory.types import Compaction
from gateway.prompts import Prompt, PromptSet
from gateway.store.messages import StoredMessage
from gateway.store.summaries import Summary, SummaryLevel
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
_PROMPTS: dict[SummaryLevel, str] = {"now": "summary_now", "reflection": "reflection"}


class SummaryRejectedError(HearthError):
    """The model's summaries did not pass the check; the old state stays and counts."""

    status = 502
    code = "summary_rejected"


class Source(Struct, frozen=True, kw_only=True):
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


class Draft(Struct, frozen=True, kw_only=True):
    """A summary that passed. ``tokens`` are those of the text and the pins; ``lost`` is what found no room."""

    text: str
    pins: list[str]
    tokens: int
    prompt_name: str
    prompt_version: int
    lost: list[str] = []


class Summarizer:
    """Makes summaries with the model. ``limit`` is the most a prompt of its own may have, in tokens.

    ``apart`` asks for prompts of their own always, for models that do better with those.
    """

    def __init__(self, model: MemoryModel, prompts: PromptSet, *, limit: int, apart: bool) -> None:
        self._model = model
        self._prompts = prompts
        self._limit = limit
        self._apart = apart

    async def summarize(
        self, compaction: Compaction, source: Source, composition: Composition | None
    ) -> Draft:
        """The summary of ``source``. Raises SummaryRejectedError, and what the inference raises."""
        text = source.text
        tokens = sum(m.tokens for m in source.spoken) + sum(fold.tokens for fold in source.folds)
        if tokens < _NOTHING_TOKENS and compaction.level != "message":
            return Draft(
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
            if isinstance(draft, Draft):
                return draft
            problem = draft
        raise SummaryRejectedError(
            f"a summary was rejected {ATTEMPTS} times: {problem}", retry_after=REJECTED_SECONDS
        )

    async def _write(
        self,
        compaction: Compaction,
        source: Source,
        composition: Composition | None,
        words: int,
        attempt: int,
    ) -> tuple[Prompt, str, bool]:
        """One try: the prompt, what the model wrote, and whether it ended by itself."""
        prompt = self._prompt(compaction, source)
        room = compaction.target_tokens + compaction.target_tokens // 4 + 32
        in_place = None if self._apart else self._in_place(compaction, source, composition, prompt, words)
        if in_place is not None:
            text, stopped = await self._model.write(prompt, in_place, max_tokens=room, again=attempt)
            return prompt, text.strip(), stopped
        text, stopped = await self._write_apart(source, words, room, attempt)
        return self._prompts.get("history_summary"), text, stopped

    def _prompt(self, compaction: Compaction, source: Source) -> Prompt:
        if compaction.level == "round":
            return self._prompts.get("summary_code" if source.code else "summary_rounds")
        default = "summary_now" if source.messages and not source.folds else "summary_fold"
        return self._prompts.get(_PROMPTS.get(compaction.level, default))

    def _in_place(
        self,
        compaction: Compaction,
        source: Source,
        composition: Composition | None,
        prompt: Prompt,
        words: int,
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
        values = {
            "words": str(words),
            "parts": "\n\n".join(summary_text(fold) for fold in source.folds),
            "previous": "\n\n".join(Source.fold_text(fold) for fold in source.folds) or "(none yet)",
        }
        rendered = prompt.render(**{name: values[name] for name in prompt.variables})
        return composition.instruction_after(last, text_of(rendered))

    async def _write_apart(self, source: Source, words: int, room: int, attempt: int) -> tuple[str, bool]:
        """Read the source in a prompt of its own, in parts that fit; several parts are summarized once more."""
        prompt = self._prompts.get("history_summary")
        text = "\n".join(
            [
                *(f"{HEADINGS[fold.level]} {Source.fold_text(fold)}" for fold in source.folds),
                dialogue(source.spoken),
            ]
        )
        while True:
            parts = await split_dialogue(text.strip(), max(64, self._limit - room - 64), self._model.count)
            written: list[str] = []
            for part in parts:
                messages = prompt.render(words=str(max(12, words // len(parts))), dialogue=part)
                most = room if len(parts) == 1 else max(48, 2 * room // len(parts))
                reply, stopped = await self._model.write(prompt, messages, max_tokens=most, again=attempt)
                if not stopped:
                    return "", False
                written.append(reply.strip())
            joined = "\n".join(written)
            [tokens] = await self._model.count([joined])
            if len(parts) == 1 or tokens <= room:
                return joined, True
            if len(joined) >= len(text):  # it would never become short enough
                return "", False
            text = joined

    async def _checked(
        self, compaction: Compaction, source: Source, prompt: Prompt, written: str, letters: float
    ) -> Draft | str:
        """The draft, or what is wrong with it."""
        if not written.strip():
            return "it is empty"

        def cost(text: str) -> int:
            return int(len(text) / letters) + 2

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
        kept = check(source.text, text, speakers=speakers, room=room, cost=cost)
        lost_share = len(kept.lost) / max(1, len(kept.lost) + len(kept.pins)) * (1.0 - kept.share)
        if lost_share > 1.0 - _LEAST_KEPT:
            return f"it lost {len(kept.lost)} names, numbers or identifiers, too many to pin"
        if kept.lost:
            log.warning(
                "a summary lost items that found no room", count=len(kept.lost), level=compaction.level
            )
        [tokens] = await self._model.count(["\n".join([text, *(f"- {pin}" for pin in kept.pins)])])
        return Draft(
            text=text,
            pins=kept.pins,
            tokens=tokens,
            prompt_name=prompt.name,
            prompt_version=prompt.version,
            lost=kept.lost,
        )


def text_of(messages: Sequence[Message]) -> str:
    """All text of messages, one after the other."""
    return "".join(
        part if isinstance(part, str) else part.text for message in messages for part in message.content
    )


def spans(messages: Sequence[StoredMessage], folds: Sequence[Summary]) -> tuple[int, int, float, float]:
    """First and last ``seq`` and the times that a summary of both stands for."""
    firsts = [(m.seq, m.created_at) for m in messages] + [(f.first, f.from_time) for f in folds]
    lasts = [(m.seq, m.created_at) for m in messages] + [(f.last, f.to_time) for f in folds]
    first, last = min(firsts), max(lasts)
    return first[0], last[0], first[1], last[1]
