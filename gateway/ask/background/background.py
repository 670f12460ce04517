"""The background of an answer prompt: pages fitted into the space there is, summarized where needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct

from gateway.ask.background.compact import PageCompactor, PageSummary
from gateway.ask.background.draft import CountTexts, PageDraft, render_page
from gateway.ask.background.fit import How, Room, Show, Summarize, plan
from gateway.ask.checking.evidence import Evidence
from gateway.ask.journal import Journal
from gateway.ask.limits import Limits
from gateway.ask.text.passages import Passage
from gateway.base.aio import side_by_side
from gateway.store.request_log import PageRecord
from gateway.wiki.source import Page

# Tokens of the answer prompt with this background.
CountBackground = Callable[[str], Awaitable[int]]


class UsedPage(Struct, frozen=True):
    """A page in the background. ``shown`` is its text there, ``own`` all passages of the page itself."""

    page: Page
    term: int
    how: How
    shown: list[Passage]
    own: list[Passage]


class Background(Struct, frozen=True):
    """The finished background, the tokens of the answer prompt with it, and its own."""

    pages: list[UsedPage]
    text: str
    prompt_tokens: int
    tokens: int

    def evidence(self) -> Evidence:
        """What answers are checked against: the pages' own text, also where a summary is shown."""
        return Evidence.together(Evidence.of_page(n, u.page, u.own) for n, u in enumerate(self.pages, 1))


class BackgroundBuilder:
    """Fits pages into the prompt for one question."""

    def __init__(
        self,
        journal: Journal,
        limits: Limits,
        compactor: PageCompactor,
        count_texts: CountTexts,
        count_background: CountBackground,
    ) -> None:
        self._journal = journal
        self._limits = limits
        self._compactor = compactor
        self._count_texts = count_texts
        self._count = count_background
        self._used: list[UsedPage] = []

    async def build(self, drafts: list[PageDraft], terms: list[str]) -> Background:
        """Plan, summarize and count, until no page or no space is left. Never over the prompt limit."""
        question = self._journal.call.question
        queries = [f"{question} {term}" for term in terms]
        base = await self._count("")
        used, waiting = base, drafts
        while waiting:
            room = self._room(base, used)
            planned = plan(waiting, queries, room)
            if not planned.steps:
                break
            await self._take(planned.steps, queries)
            used = await self._shrink()
            waiting = planned.waiting
        for draft in waiting:
            self._journal.skip(draft.page.title, "no space left in the prompt")
        return Background(self._used, self._text(), used, await self._report(terms))

    def _room(self, base: int, used: int) -> Room:
        return Room(
            empty=max(0, self._limits.prompt - base),
            left=max(0, self._limits.prompt - used),
            min_space=self._limits.min_space,
            most_words=self._limits.compaction_words,
            most_summary=self._limits.answer,
        )

    async def _take(self, steps: Sequence[Show | Summarize], queries: Sequence[str]) -> None:
        """Carry out a plan, all summaries side by side."""
        first = len(self._used) + 1
        summaries = [(n, step) for n, step in enumerate(steps, first) if isinstance(step, Summarize)]
        compacted: dict[int, PageSummary] = {}
        if summaries:
            with self._journal.timed("compact"):
                done = await side_by_side(
                    self._compactor.run(step, queries[step.draft.term], n, self._limits.passage)
                    for n, step in summaries
                )
            compacted = dict(zip([n for n, _ in summaries], done, strict=True))
        for n, step in enumerate(steps, first):
            self._add(step, compacted.get(n))

    def _add(self, step: Show | Summarize, compacted: PageSummary | None) -> None:
        draft = step.draft
        if compacted is None:
            shown, how = [draft.passages[index] for index in step.selection.passages], _how(step)
        else:
            shown, how = compacted.passages, compacted.how
            if not shown:
                self._journal.skip(draft.page.title, compacted.reason)
                return
        if isinstance(step, Show) and step.selection.left_out:
            left_out = {"title": draft.page.title, "sections": list(step.selection.left_out)}
            self._journal.note("left_out", left_out | {"cut": step.selection.cut})
        self._used.append(UsedPage(draft.page, draft.term, how, shown, draft.passages))

    async def _shrink(self) -> int:
        """Drop passages from the end while the prompt is over its limit, which estimates may miss by little."""
        tokens = await self._count(self._text())
        while tokens > self._limits.prompt and self._used:
            last = self._used[-1]
            self._journal.note("left_out", {"title": last.page.title, "passages": 1})
            if len(last.shown) > 1:
                self._used[-1] = msgspec.structs.replace(last, shown=last.shown[:-1], how="truncated")
            else:
                self._used.pop()
                self._journal.skip(last.page.title, "no space left in the prompt")
            tokens = await self._count(self._text())
        return tokens

    def _text(self) -> str:
        return "\n\n".join(render_page(n, used.page, used.shown) for n, used in enumerate(self._used, 1))

    async def _report(self, terms: Sequence[str]) -> int:
        """Record the pages used; returns their tokens together."""
        tokens = await self._count_texts(
            [render_page(n, u.page, u.shown) for n, u in enumerate(self._used, 1)]
        )
        for used, count in zip(self._used, tokens, strict=True):
            page = used.page
            self._journal.pages.append(
                PageRecord(
                    title=page.title,
                    revision=page.revision,
                    term=terms[used.term],
                    how=used.how,
                    tokens=count,
                )
            )
        return sum(tokens)


def _how(step: Show | Summarize) -> How:
    return step.how if isinstance(step, Show) else "summary"
