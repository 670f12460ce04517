"""The background of an answer prompt: the best passages of the found pages that fit the token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from gateway.ask.background.compact import PageCompactor
from gateway.ask.background.draft import PageDraft, render_page
from gateway.ask.background.fit import How, best_lines, by_page, choose, overflowing, whole_page
from gateway.ask.background.rank import Ranked, rank
from gateway.ask.background.rerank import rerank
from gateway.ask.checking.evidence import Evidence
from gateway.ask.checking.quotation import Quotations
from gateway.ask.checking.relevance import Relevance
from gateway.ask.generation import Model
from gateway.ask.journal import Journal
from gateway.ask.limits import Limits
from gateway.ask.text.passages import Passage, estimated_tokens
from gateway.inference.embedding import Reranker
from gateway.models.prompts import Prompt
from gateway.store.request_log import PageRecord
from gateway.wiki.source import Page

_COMPARED = 60  # passages that are compared with the question


class UsedPage(Struct, frozen=True):
    """A page in the background: the passages ``shown`` there, and all of the page's ``own`` passages."""

    page: Page
    term: str
    how: How
    shown: list[Passage]
    own: list[Passage]


@dataclass(frozen=True)
class Compared:
    """The passages of the found pages, best first; the ``nearest`` are compared with question and ``terms``."""

    drafts: Sequence[PageDraft]
    ranked: list[Ranked]
    nearest: list[Ranked]
    relevance: Quotations
    terms: list[str]


def compare(drafts: Sequence[PageDraft], question: str, terms: list[str]) -> Compared:
    ranked = rank(drafts, question, terms)
    nearest = sorted(ranked[:_COMPARED], key=lambda each: (each.draft, each.passage))
    relevance = Quotations(question, _evidence(drafts, nearest), terms)
    return Compared(drafts, ranked, nearest, relevance, terms)


class Background(Struct, frozen=True):
    """The finished background. ``prompt_tokens`` count the whole answer prompt, ``tokens`` the pages alone."""

    pages: list[UsedPage]
    text: str
    prompt_tokens: int
    tokens: int
    doubtful: bool  # as in Relevance
    relevance: Relevance | None  # of all passages that were compared

    def evidence(self) -> Evidence:
        """Evidence from the passages shown; for a summary, from the page's own text."""
        return Evidence.of(
            (n, used.page, used.own if used.how == "summary" else used.shown)
            for n, used in enumerate(self.pages, 1)
        )


@dataclass(frozen=True)
class BackgroundBuilder:
    """Fits pages into the answer prompt of one question.

    With ``whole_pages`` the best page is shown from its beginning to its end, if it fits: it then begins the prompts
    of all questions about it, and only the first of them prefills it.
    """

    model: Model
    journal: Journal
    prompt: Prompt
    limits: Limits
    compactor: PageCompactor
    reranker: Reranker
    target_seconds: float
    whole_pages: bool

    async def build(self, compared: Compared) -> Background:
        """Choose passages, summarize where too many match, and count. The prompt never exceeds its limit."""
        drafts, ranked, relevance = compared.drafts, compared.ranked, compared.relevance
        if relevance.hopeless:
            for draft in drafts:
                self.journal.skip(draft.page.title, relevance.hopeless)
            drafts, ranked = [], []
        if not relevance.question.native and relevance.doubtful:
            self.journal.skip("the question", "the pages hardly have its words; ask in the wiki's language")
        ranked = await rerank(self.reranker, self.journal, drafts, ranked, self.target_seconds)
        quoted = [compared.nearest[quote.passage] for quote in relevance.quotes()]
        ranked = _first(quoted, ranked)
        space = self.limits.prompt - await self._count([])
        likely = self.whole_pages and ranked and whole_page(drafts, ranked[0], space, estimated_tokens)
        lines = best_lines(drafts, [*(likely or []), *ranked], space)
        costs = dict(zip(lines, await self.model.count(lines), strict=True))
        whole = whole_page(drafts, ranked[0], space, costs.__getitem__) if likely else []
        enough = bool(whole) and relevance.certain and {each.draft for each in quoted} == {whole[0].draft}
        chosen = choose(drafts, [] if enough else ranked, costs, space, whole)
        summary: list[Passage] = []
        task = overflowing(drafts, ranked, chosen, space, self.limits)
        if task is not None:
            with self.journal.timed("compact"):
                summary = await self.compactor.run(task)
            if summary:
                chosen = choose(drafts, ranked, costs, space - task.tokens)
        while True:
            pages = self._pages(drafts, chosen, summary, task.draft if task else None, whole)
            tokens = await self._count(pages)
            if tokens <= self.limits.prompt or not pages:
                break
            # Costs are counted line by line, which can be slightly too low.
            chosen = chosen[:-1]
            summary = summary if chosen else []
        full = "no space left in the prompt for passages that match less well"
        why = "another page clearly answers" if enough else full
        self._report_left_out(drafts, pages, why)
        return await self._finished(pages, tokens, relevance)

    def _pages(
        self,
        drafts: Sequence[PageDraft],
        chosen: Sequence[Ranked],
        summary: Sequence[Passage],
        summarized: PageDraft | None,
        whole: Sequence[Ranked],
    ) -> list[UsedPage]:
        found = []
        for number, indices in by_page(chosen, whole[0].draft if whole else 0):
            draft = drafts[number]
            how: How = "whole" if len(indices) == len(draft.passages) else "passages"
            shown = [draft.passages[index] for index in indices]
            if summary and draft is summarized:
                shown, how = [*shown, *summary], "summary"
            found.append(UsedPage(draft.page, draft.term, how, shown, draft.passages))
        return found

    def _report_left_out(self, drafts: Sequence[PageDraft], pages: Sequence[UsedPage], why: str) -> None:
        used = {page.page.title: page for page in pages}
        for draft in drafts:
            title = draft.page.title
            if title not in used:
                self.journal.skip(title, why)
            elif used[title].how != "whole":
                left_out = len(draft.passages) - sum(p in draft.passages for p in used[title].shown)
                self.journal.note("left_out", {"title": title, "passages": left_out})

    async def _finished(self, pages: list[UsedPage], tokens: int, relevance: Quotations) -> Background:
        blocks = _blocks(pages)
        counts = await self.model.count(blocks)
        for used, count in zip(pages, counts, strict=True):
            record = PageRecord(
                title=used.page.title,
                revision=used.page.revision,
                term=used.term,
                how=used.how,
                tokens=count,
            )
            self.journal.pages.append(record)
        return Background(pages, "\n\n".join(blocks), tokens, sum(counts), relevance.doubtful, relevance)

    async def _count(self, pages: Sequence[UsedPage]) -> int:
        """Count the tokens of the answer prompt with these pages."""
        values = {"background": "\n\n".join(_blocks(pages)), "question": self.journal.question}
        return await self.model.count_prompt(self.prompt.render(shared=("background",), **values))


def _evidence(drafts: Sequence[PageDraft], passages: Sequence[Ranked]) -> Evidence:
    """Evidence of passages in the order of their drafts, which are numbered from 0."""
    chosen: dict[int, list[Passage]] = {}
    for each in passages:
        chosen.setdefault(each.draft, []).append(drafts[each.draft].passages[each.passage])
    return Evidence.of((number, drafts[number].page, parts) for number, parts in chosen.items())


def _first(quoted: Sequence[Ranked], ranked: Sequence[Ranked]) -> list[Ranked]:
    """Put the passages with the best sentences first, and the others in the order that they have."""
    best = [Ranked(each.draft, each.passage, ranked[0].score) for each in quoted] if ranked else []
    return [*best, *(each for each in ranked if each not in quoted)]


def _blocks(pages: Sequence[UsedPage]) -> list[str]:
    return [render_page(n, used.page, used.shown) for n, used in enumerate(pages, 1)]
