"""The background of an answer prompt: pages fitted into the token budget, summarized where needed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import msgspec
from msgspec import Struct

from gateway.ask.background.compact import PageCompactor
from gateway.ask.background.draft import PageDraft, render_page
from gateway.ask.background.fit import How, Room, Show, Summarize, plan
from gateway.ask.checking.evidence import Evidence
from gateway.ask.generation import Model
from gateway.ask.journal import Journal
from gateway.ask.limits import Limits
from gateway.ask.text.passages import Passage
from gateway.base.aio import side_by_side
from gateway.models.prompts import Prompt
from gateway.store.request_log import PageRecord
from gateway.wiki.source import Page


class UsedPage(Struct, frozen=True):
    """A page in the background: the passages ``shown`` there, and all of the page's ``own`` passages."""

    page: Page
    term: int
    how: How
    shown: list[Passage]
    own: list[Passage]


class Background(Struct, frozen=True):
    """The finished background. ``prompt_tokens`` count the whole answer prompt, ``tokens`` the pages alone."""

    pages: list[UsedPage]
    text: str
    prompt_tokens: int
    tokens: int

    def evidence(self) -> Evidence:
        """Evidence from the pages' own text, even where a summary is shown."""
        return Evidence.of((n, used.page, used.own) for n, used in enumerate(self.pages, 1))


class BackgroundBuilder:
    """Fits pages into the answer prompt of one question."""

    def __init__(
        self, model: Model, journal: Journal, prompt: Prompt, limits: Limits, compactor: PageCompactor
    ) -> None:
        self._model = model
        self._journal = journal
        self._prompt = prompt
        self._limits = limits
        self._compactor = compactor
        self._used: list[UsedPage] = []

    async def build(self, drafts: list[PageDraft], terms: list[str]) -> Background:
        """Plan, summarize and count until no page or no space is left. The prompt never exceeds its limit."""
        question = self._journal.call.question
        queries = [f"{question} {term}" for term in terms]
        base = await self._count()
        used, waiting = base, drafts
        while waiting:
            room = Room(
                empty=max(0, self._limits.prompt - base),
                left=max(0, self._limits.prompt - used),
                min_space=self._limits.min_space,
                most_words=self._limits.compaction_words,
                most_summary=self._limits.answer,
            )
            planned = plan(waiting, queries, room)
            if not planned.steps:
                break
            await self._take(planned.steps, queries)
            used = await self._shrink()
            waiting = planned.waiting
        for draft in waiting:
            self._journal.skip(draft.page.title, "no space left in the prompt")
        tokens = await self._model.count(self._blocks())
        for page, count in zip(self._used, tokens, strict=True):
            record = PageRecord(
                title=page.page.title,
                revision=page.page.revision,
                term=terms[page.term],
                how=page.how,
                tokens=count,
            )
            self._journal.pages.append(record)
        return Background(self._used, "\n\n".join(self._blocks()), used, sum(tokens))

    async def _take(self, steps: Sequence[Show | Summarize], queries: Sequence[str]) -> None:
        """Carry out a plan, with all summaries made concurrently."""
        first = len(self._used) + 1
        long = {n: step for n, step in enumerate(steps, first) if isinstance(step, Summarize)}
        with self._journal.timed("compact") if long else nullcontext():
            done = await side_by_side(
                self._compactor.run(step, queries[step.draft.term], n) for n, step in long.items()
            )
        summaries = dict(zip(long, done, strict=True))
        for n, step in enumerate(steps, first):
            draft = step.draft
            if isinstance(step, Summarize):
                shown, how = summaries[n].passages, summaries[n].how
                if not shown:
                    self._journal.skip(draft.page.title, summaries[n].reason)
                    continue
            else:
                shown, how = [draft.passages[index] for index in step.selection.passages], step.how
                if left_out := list(step.selection.left_out):
                    remark = {"title": draft.page.title, "sections": left_out, "cut": step.selection.cut}
                    self._journal.note("left_out", remark)
            self._used.append(UsedPage(draft.page, draft.term, how, shown, draft.passages))

    async def _shrink(self) -> int:
        """Drop passages from the end while the prompt exceeds its limit: estimates can be slightly too low."""
        tokens = await self._count()
        while tokens > self._limits.prompt and self._used:
            last = self._used[-1]
            self._journal.note("left_out", {"title": last.page.title, "passages": 1})
            if len(last.shown) > 1:
                self._used[-1] = msgspec.structs.replace(last, shown=last.shown[:-1], how="truncated")
            else:
                self._used.pop()
                self._journal.skip(last.page.title, "no space left in the prompt")
            tokens = await self._count()
        return tokens

    async def _count(self) -> int:
        """Count the tokens of the answer prompt with the pages used so far."""
        values = {"background": "\n\n".join(self._blocks()), "question": self._journal.call.question}
        return await self._model.count_prompt(self._prompt.render(shared=("background",), **values))

    def _blocks(self) -> list[str]:
        return [render_page(n, used.page, used.shown) for n, used in enumerate(self._used, 1)]
