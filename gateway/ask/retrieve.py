"""From search terms to pages, with concurrent searches and fetches whose results keep a fixed order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from gateway.ask.background.draft import RetrievedPage
from gateway.ask.journal import Journal
from gateway.base.aio import side_by_side, stop
from gateway.base.errors import HearthError
from gateway.wiki.sketch import alike, sketch
from gateway.wiki.source import Hits, Page, PageRef, WikiSource

_FETCHES_AT_ONCE = 4

log = structlog.get_logger(__name__)

Search = Callable[[str, int], Awaitable[list[PageRef] | Hits]]


class _Searched(NamedTuple):
    """The result of a term's searches; ``failed`` holds the errors by kind of search."""

    refs: list[PageRef]
    failed: dict[str, Exception]
    problem: str | None
    note: str | None


class Retrieval:
    """Finds the pages for one question. ``timeout`` is in seconds, for each search and each page."""

    def __init__(self, wiki: WikiSource, journal: Journal, pages_per_term: int, timeout: float) -> None:
        self._wiki = wiki
        self._journal = journal
        self._limit = pages_per_term
        self._timeout = timeout
        self._kinds: dict[str, Search] = {"title": wiki.search_titles, "text": wiki.search_text}
        self._slots = asyncio.Semaphore(_FETCHES_AT_ONCE)
        self._reported: set[str] = set()  # problems that all terms may share

    async def run(self, terms: list[str]) -> list[RetrievedPage]:
        """Return distinct pages by term, then by rank. A fetch starts as soon as its term's search has ended.

        A page or search that fails is reported in ``skipped``. Raises HearthError if every search failed.
        """
        searches = [asyncio.create_task(self._search(term)) for term in terms]
        fetches: dict[str, tuple[int, asyncio.Task[Page | str]]] = {}
        problems: list[Exception] = []
        try:
            with self._journal.timed("search"):
                for index, search in enumerate(searches):
                    searched = await search
                    problems += self._report(terms[index], searched)
                    for ref in searched.refs:
                        if ref.title not in fetches:
                            fetches[ref.title] = index, asyncio.create_task(self._fetch(ref.title))
            if terms and len(problems) == len(self._kinds) * len(terms):
                raise _unreachable(problems[0])
            with self._journal.timed("fetch"):
                return self._usable([(title, term, await task) for title, (term, task) in fetches.items()])
        finally:
            await stop([*searches, *(task for _, task in fetches.values())])

    def _report(self, term: str, searched: _Searched) -> list[Exception]:
        """Report what was found and what failed, each problem once, and return the errors."""
        remarks = {"without": searched.problem, "note": searched.note}
        self._journal.stage(
            "search",
            term=term,
            pages=[ref.title for ref in searched.refs],
            **{name: text for name, text in remarks.items() if text},
        )
        for kind, error in searched.failed.items():
            self._journal.skip(term, f"the {kind} search failed: {self._reason(error, term)}")
        if searched.problem is not None and searched.problem not in self._reported:
            self._reported.add(searched.problem)
            self._journal.skip(term, searched.problem)
        return list(searched.failed.values())

    def _usable(self, fetched: list[tuple[str, int, Page | str]]) -> list[RetrievedPage]:
        usable: dict[str, RetrievedPage] = {}
        sketches: dict[str, bytes] = {}
        for title, term, page in fetched:
            if isinstance(page, str):
                self._journal.skip(title, page)
            elif not any(section.text.strip() for section in page.sections):
                self._journal.skip(page.title, "the page is empty")
            elif page.title not in usable:  # a redirect leads to the same page
                found = sketch("\n\n".join(section.text for section in page.sections))
                twin = next((other for other, known in sketches.items() if alike(found, known)), None)
                if twin is not None:
                    self._journal.skip(page.title, f"it says nearly the same as `{twin}`")
                    continue
                sketches[page.title] = found
                usable[page.title] = RetrievedPage(page, term)
        return list(usable.values())

    async def _search(self, term: str) -> _Searched:
        """Find the best pages by title; the last place goes to the best further page by text, if any."""
        results = await side_by_side(self._searched(search, term) for search in self._kinds.values())
        named = dict(zip(self._kinds, results, strict=True))
        failed = {kind: result for kind, result in named.items() if isinstance(result, Exception)}
        by_title, by_text = (result if isinstance(result, Hits) else Hits([]) for result in results)
        titles = list({ref.title: ref for ref in by_title.refs}.values())
        known = {ref.title for ref in titles}
        texts = list({ref.title: ref for ref in by_text.refs if ref.title not in known}.values())
        places = self._limit - 1 if texts and self._limit > 1 else self._limit
        refs = [*titles[:places], *texts][: self._limit]
        return _Searched(refs, failed, by_text.problem, by_text.note)

    async def _searched(self, search: Search, term: str) -> Hits | Exception:
        try:
            async with asyncio.timeout(self._timeout):
                found = await search(term, self._limit)
                return found if isinstance(found, Hits) else Hits(found)
        except Exception as error:
            return error

    async def _fetch(self, title: str) -> Page | str:
        """Return the page, or the reason why it cannot be used."""
        async with self._slots:
            self._journal.stage("fetch", title=title)
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._wiki.fetch(title)
            except Exception as error:
                return self._reason(error, title)

    def _reason(self, error: Exception, what: str) -> str:
        """Describe an error for the client; unexpected ones go to the log with their trace."""
        if isinstance(error, TimeoutError):
            return f"no reply within {self._timeout:g} seconds"
        if isinstance(error, HearthError):
            return error.message
        log.error("the wiki failed unexpectedly", what=what, exc_info=error)
        return "an internal error; the server's log has it"


def _unreachable(error: Exception) -> HearthError:
    message = error.message if isinstance(error, HearthError) else "no usable reply"
    return HearthError(
        f"the wiki could not be searched: {message}", code="wiki_unavailable", status=503, retry_after=10.0
    )
