"""Summaries of pages that do not fit, made for the question by the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gateway.ask.background.cache import CompactionCache, compaction_key
from gateway.ask.background.draft import PageDraft, passage_line
from gateway.ask.background.fit import How, Summarize
from gateway.ask.background.sections import pick_passages
from gateway.ask.checking.evidence import Evidence, claim, supporting
from gateway.ask.generation import Model
from gateway.ask.journal import Journal
from gateway.ask.text.passages import Passage, TextUnit, group
from gateway.ask.text.sentences import split_units
from gateway.base.errors import HearthError
from gateway.models.prompts import Prompt

_NOTHING = "nothing relevant"
# Room to finish a sentence that runs over; what does not fit is cut afterwards.
_SLACK = 1.25
_LEAST_OUTPUT = 32


class PageSummary(Struct, frozen=True):
    """What takes the page's place, and how it came about. No passages: ``reason`` says why."""

    passages: list[Passage]
    how: How
    reason: str = ""


class PageCompactor:
    """Summarizes pages for one question. ``prompt_limit`` and ``context`` are tokens."""

    def __init__(
        self,
        model: Model,
        journal: Journal,
        prompt: Prompt,
        *,
        prompt_limit: int,
        context: int,
        cache: CompactionCache | None = None,
        fingerprint: str = "",
    ) -> None:
        self._model = model
        self._journal = journal
        self._prompt = prompt
        self._prompt_limit = prompt_limit
        self._context = context
        self._cache = (
            cache if fingerprint else None
        )  # without a name for the weights nothing can be known again
        self._fingerprint = fingerprint

    async def run(self, step: Summarize, query: str, n: int, passage_tokens: int) -> PageSummary:
        """The page's summary, checked against the page and cut to the step's tokens.

        Falls back to the page's best-matching passages when the model fails or says nothing that the page
        supports. ``n`` is the number that the page will have, to count its lines.
        """
        title = step.draft.page.title
        self._journal.stage("compact", title=title, words=step.words)
        try:
            output, finished = await self._summary(step)
        except HearthError as error:
            return self._extract(step, query, f"the summary failed: {error.message}")
        if output.strip().strip(".!").casefold() == _NOTHING:
            return PageSummary([], "summary", "nothing relevant")
        kept = self._supported(step.draft, [unit.body for unit in split_units(output)], finished)
        if not kept:
            return self._extract(step, query, "the summary says nothing that the page supports")
        return await self._fitted(step, query, n, kept, passage_tokens)

    async def _summary(self, step: Summarize) -> tuple[str, bool]:
        """The raw summary and whether the model finished it. Source text over the prompt limit is left out."""
        chosen = list(step.selection.passages)
        while True:
            values = self._values(step, chosen)
            tokens = await self._model.count_prompt(self._prompt.render(**values))
            if tokens <= self._prompt_limit or not chosen:
                break
            excess = tokens - self._prompt_limit
            while excess > 0 and chosen:
                excess -= step.draft.costs[chosen.pop()]
        if not chosen:
            raise HearthError("no passage of the page fits the prompt")
        self._report_left_out(step, len(chosen))
        longest = max(_LEAST_OUTPUT, int((step.tokens - step.draft.head) * _SLACK))
        key = self._key(step, values)
        known = await self._cache.get(key) if self._cache else None
        if known is not None:
            self._journal.stage("compact", title=step.draft.page.title, words=step.words, cached=True)
            self._journal.note("summary_cached", step.draft.page.title)
            return known, True
        generated = await self._model.generate(
            "compact",
            self._prompt,
            values,
            shared=("title", "text"),
            max_tokens=max(1, min(longest, self._context - tokens)),
        )
        if self._cache is not None and not generated.cut and generated.text.strip():
            await self._cache.put(key, generated.text)
        return generated.text, not generated.cut

    def _key(self, step: Summarize, values: Mapping[str, str]) -> bytes:
        """Everything that the summary depends on; blanks and case of the question are not among it."""
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

    def _report_left_out(self, step: Summarize, used: int) -> None:
        left_out = len(step.draft.passages) - used
        if left_out:
            self._journal.note(
                "left_out",
                {"title": step.draft.page.title, "passages": left_out, "of": "the summary's source"},
            )

    def _supported(self, draft: PageDraft, sentences: list[str], finished: bool) -> list[str]:
        """Sentences that the page's own text supports; an unfinished last one is dropped."""
        whole = sentences if finished else sentences[:-1]
        evidence = Evidence.of_page(0, draft.page, draft.passages)
        kept = [each for each in whole if supporting(claim(each, evidence.ordinary), evidence).pages]
        dropped = [each for each in sentences if each not in kept]
        if dropped:
            self._journal.note("summary_dropped", {"title": draft.page.title, "sentences": dropped})
        return kept

    async def _fitted(
        self, step: Summarize, query: str, n: int, kept: list[str], passage_tokens: int
    ) -> PageSummary:
        """As many sentences of the summary as the step's tokens hold."""
        counts = await self._model.count([f" {sentence}" for sentence in kept])
        space = step.tokens - step.draft.head
        fitting = len(kept)
        while fitting:
            if sum(counts[:fitting]) <= space:
                units = [(TextUnit(kept[i], False), counts[i]) for i in range(fitting)]
                # A section's heading is for its own text; a summary stands for several sections.
                shown = [Passage(0, p.text, False, False) for p in group(0, units, passage_tokens)]
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
    """The chosen passages as plain text with ``== Heading ==`` lines."""
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
