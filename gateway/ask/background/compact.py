"""Summaries of pages that do not fit, made by the model for the question and cached."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from gateway.ask.background.draft import PageDraft, passage_line
from gateway.ask.background.fit import How, Summarize
from gateway.ask.background.sections import pick_passages
from gateway.ask.budget import QuestionClock
from gateway.ask.checking.evidence import Evidence, claim, supporting
from gateway.ask.generation import Model
from gateway.ask.journal import Journal
from gateway.ask.limits import Limits
from gateway.ask.text.passages import Passage, TextUnit, group
from gateway.ask.text.sentences import split_units
from gateway.base.errors import HearthError
from gateway.models.prompts import Prompt
from gateway.store.compactions import get_compaction, put_compaction, touch_compaction
from gateway.store.db import Database

_NOTHING = "nothing relevant"
# Room to finish the last sentence; sentences that do not fit are cut afterwards.
_SLACK = 1.25
_LEAST_OUTPUT = 32


class CompactionCache:
    """Summaries by key, in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, key: bytes) -> str | None:
        now = time.time()
        found = await self._database.read(lambda c: get_compaction(c, key, now))
        if found is None:
            return None
        text, stale = found
        if stale:
            await self._database.write(lambda c: touch_compaction(c, key, now))
        return text

    async def put(self, key: bytes, text: str) -> None:
        await self._database.write(lambda c: put_compaction(c, key, text, time.time()))


def compaction_key(parts: Sequence[str]) -> bytes:
    """Hash everything that a summary depends on."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=24).digest()


class PageSummary(Struct, frozen=True):
    """The passages shown instead of the page, and how they were made; ``reason`` says why there are none."""

    passages: list[Passage]
    how: How
    reason: str = ""


class _NoTimeError(HearthError):
    """A summary was not begun because it would not end in time."""


class PageCompactor:
    """Summarizes pages for one question. ``fingerprint`` identifies the model's weights."""

    def __init__(
        self,
        model: Model,
        journal: Journal,
        prompt: Prompt,
        limits: Limits,
        cache: CompactionCache | None,
        fingerprint: str,
        clock: QuestionClock,
    ) -> None:
        self._model = model
        self._clock = clock
        self._refused = False  # a summary, for lack of time
        self._journal = journal
        self._prompt = prompt
        self._limits = limits
        self._cache = cache if fingerprint else None  # another model's summaries must not be found
        self._fingerprint = fingerprint

    async def run(self, step: Summarize, query: str, n: int) -> PageSummary:
        """Summarize the page, check the summary against the page, and cut it to the step's tokens.

        Falls back to the passages that match ``query`` best if the model fails or writes nothing that the page
        supports. ``n`` is the page's number in the background, needed to count its lines.
        """
        try:
            output, finished = await self._summary(step)
        except _NoTimeError as error:
            return self._extract(step, query, error.message)
        except HearthError as error:
            return self._extract(step, query, f"the summary failed: {error.message}")
        if output.strip().strip(".!").casefold() == _NOTHING:
            return PageSummary([], "summary", "nothing relevant")
        kept = self._supported(step.draft, [unit.body for unit in split_units(output)], finished)
        if not kept:
            return self._extract(step, query, "the summary says nothing that the page supports")
        return await self._fitted(step, query, n, kept)

    async def _summary(self, step: Summarize) -> tuple[str, bool]:
        """Return the raw summary and whether the model finished it.

        Passages over the prompt limit are left out of its source, which the journal notes.
        """
        chosen = list(step.selection.passages)
        while True:
            values = self._values(step, chosen)
            tokens = await self._model.count_prompt(self._prompt.render(**values))
            if tokens <= self._limits.prompt or not chosen:
                break
            excess = tokens - self._limits.prompt
            while excess > 0 and chosen:
                excess -= step.draft.costs[chosen.pop()]
        if not chosen:
            raise HearthError("no passage of the page fits the prompt")
        if left_out := len(step.draft.passages) - len(chosen):
            remark = {"title": step.draft.page.title, "passages": left_out, "of": "the summary's source"}
            self._journal.note("left_out", remark)
        longest = max(_LEAST_OUTPUT, int((step.tokens - step.draft.head) * _SLACK))
        key = self._key(step, values)
        known = await self._cache.get(key) if self._cache else None
        if known is not None:
            self._journal.stage("compact", title=step.draft.page.title, words=step.words, cached=True)
            self._journal.note("summary_cached", step.draft.page.title)
            return known, True
        if late := self._clock.refusal(tokens, longest):
            if not self._refused:
                self._refused = True
                self._journal.skip("page summaries", f"{late}: passages are used instead")
            raise _NoTimeError(f"no time for a summary: {late}")
        self._journal.stage("compact", title=step.draft.page.title, words=step.words)
        generated = await self._model.generate(
            "compact",
            self._prompt,
            values,
            shared=("title", "text"),
            max_tokens=max(1, min(longest, self._limits.context - tokens)),
        )
        if self._cache is not None and not generated.cut and generated.text.strip():
            await self._cache.put(key, generated.text)
        return generated.text, not generated.cut

    def _key(self, step: Summarize, values: Mapping[str, str]) -> bytes:
        """Key the summary by all that it depends on; white space and case of the question do not matter.

        It depends on the question's exact words. The owner is part of the key, so that no owner learns from an
        answer's speed what another one has asked.
        """
        question = " ".join(values["question"].split()).casefold()
        page, prompt, asked = step.draft.page, self._prompt, self._journal.call
        return compaction_key(
            [
                asked.owner,
                question,
                page.title,
                str(page.revision),
                values["text"],
                values["words"],
                prompt.name,
                str(prompt.version),
                "\0".join(prompt.pieces),
                self._fingerprint,
            ]
        )

    def _values(self, step: Summarize, chosen: Sequence[int]) -> dict[str, str]:
        return {
            "question": self._journal.call.question,
            "words": str(step.words),
            "title": step.draft.page.title,
            "text": article_text(step.draft, chosen),
        }

    def _supported(self, draft: PageDraft, sentences: list[str], finished: bool) -> list[str]:
        """Keep the sentences that the page's own text supports, and drop an unfinished last one."""
        complete = sentences if finished else sentences[:-1]
        evidence = Evidence.of([(0, draft.page, draft.passages)])
        kept = [each for each in complete if supporting(claim(each, evidence.ordinary), evidence).pages]
        dropped = [each for each in sentences if each not in kept]
        if dropped:
            self._journal.note("summary_dropped", {"title": draft.page.title, "sentences": dropped})
        return kept

    async def _fitted(self, step: Summarize, query: str, n: int, kept: list[str]) -> PageSummary:
        """Show as many sentences of the summary as the step's tokens hold."""
        counts = await self._model.count([f" {sentence}" for sentence in kept])
        space = step.tokens - step.draft.head
        fitting = len(kept)
        while fitting:
            if sum(counts[:fitting]) <= space:
                units = [(TextUnit(kept[i], False), counts[i]) for i in range(fitting)]
                # A heading names one section, but a summary covers several, so none is shown.
                shown = [Passage(0, p.text, False, False) for p in group(0, units, self._limits.passage)]
                lines = await self._model.count([passage_line(n, "", passage) + "\n" for passage in shown])
                if sum(lines) <= space:
                    break
            fitting -= 1
        if not fitting:
            return self._extract(step, query, "the summary is longer than the space left")
        if fitting < len(kept):
            left_out = {"title": step.draft.page.title, "sentences": kept[fitting:]}
            self._journal.note("summary_cut", left_out)
        return PageSummary(shown, "summary")

    def _extract(self, step: Summarize, query: str, reason: str) -> PageSummary:
        picked = pick_passages(step.draft, query, step.tokens)
        self._journal.note("summary_replaced", {"title": step.draft.page.title, "reason": reason})
        chosen = [step.draft.passages[index] for index in picked.passages]
        if not chosen:
            return PageSummary([], "passages", f"{reason}, and no passage fits the space left")
        return PageSummary(chosen, "passages")


def article_text(draft: PageDraft, chosen: Sequence[int]) -> str:
    """Render the chosen passages as plain text with ``== Heading ==`` lines."""
    blocks: list[str] = []
    section = -1
    for index in chosen:
        passage = draft.passages[index]
        heading = draft.page.sections[passage.section].heading
        if passage.section != section and heading:
            blocks.append(f"== {heading} ==")
        section = passage.section
        blocks.append(passage.text)
    return "\n\n".join(blocks)
