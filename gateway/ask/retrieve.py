"""From the question and its search terms to pages, with concurrent searches and fetches in a fixed order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import structlog

from gateway.ask.background.draft import RetrievedPage
from gateway.ask.journal import Journal
from gateway.ask.text.regional import other_expressions
from gateway.ask.text.synonyms import other_words
from gateway.ask.text.words import content_words, tokens
from gateway.base.aio import side_by_side, stop
from gateway.base.errors import HearthError
from gateway.base.patterns import any_case
from gateway.base.ranking import K_SEARCH, fuse
from gateway.wiki.sketch import alike, sketch
from gateway.wiki.source import Hits, Page, PageRef, WikiSource

_FETCHES_AT_ONCE = 4
# Of each search. Fewer pages are fetched: those that several searches place well.
_HITS = 20
# How much the rankings count beside each text search with the whole question, by words and by meaning: these are the
# best ones, and models write bad terms.
_TITLES, _TERMS = 0.9, 0.6
# A title with a smaller share of the question's words counts less: "love" does not name people who love tricks.
_NAMING_SHARE = 1 / 3
# The same for a text search with other words that say about the same: a person asks about vacation, a page about leave.
_OTHER_WORDS = 0.6
# A term that is a piece of the sentence: "I need".
_PIECE = any_case(r"(?:i|we|you|my|our|your)\s+\S+")
_LEAST_TITLES = 3  # that share a word, for one that tells no page from another

log = structlog.get_logger(__name__)

Search = Callable[[str, int], Awaitable[list[PageRef] | Hits]]


class _Searched(NamedTuple):
    """The results of a term's searches, and their errors, by kind of search."""

    hits: dict[str, Hits]
    failed: dict[str, Exception]


class Found(NamedTuple):
    """The pages for a question, best first, and the terms that helped to find them."""

    pages: list[RetrievedPage]
    terms: list[str]


class Retrieval:
    """Finds the pages for one question, at most ``pages``. ``timeout`` is in seconds, for each search and each page.

    It may run again with other terms: nothing is searched, fetched or reported twice.
    """

    def __init__(self, wiki: WikiSource, journal: Journal, pages: int, timeout: float) -> None:
        self._wiki = wiki
        self._journal = journal
        self._limit = pages
        self._timeout = timeout
        self._kinds: dict[str, Search] = {"title": wiki.search_titles, "text": wiki.search_text}
        self._slots = asyncio.Semaphore(_FETCHES_AT_ONCE)
        self._searches: dict[str, _Searched] = {}
        self._others: list[str] | None = None  # what the search with other words found
        self._pages: dict[str, Page | str] = {}
        self._reported: set[str] = set()  # terms, and problems that all searches may share
        self._skipped: set[tuple[str, str]] = set()

    async def run(self, question: str, terms: Sequence[str] = ()) -> Found:
        """Search with the question and the terms, and fetch the best pages.

        A term that shares no word with the question or with a title that it finds is dropped. A page or search that
        fails is reported in ``skipped``. Raises HearthError if every search failed.
        """
        own = asyncio.create_task(self._search(question))
        wider = asyncio.create_task(self._wider(question))
        fetches: dict[str, asyncio.Task[Page | str]] = {}
        searches = [asyncio.create_task(self._search(term)) for term in terms]
        try:
            with self._journal.timed("search"):
                results = [await task for task in (own, *searches)]
            kept = self._related(question, terms, results[1:])
            if all(len(each.failed) == len(self._kinds) for each in [results[0], *kept.values()]):
                raise _unreachable(next(iter(results[0].failed.values())))
            for term, searched in {question: results[0], **kept}.items():
                self._report(term, searched)
            finders = _ranked(question, results[0], kept, await wider)
            sections = {ref.title: ref.section for ref in results[0].hits["text"].refs}
            asked = _telling(question)
            redirects = {
                ref.title: ref.redirect
                for ref in results[0].hits["title"].refs
                if set() < _telling(ref.redirect) <= asked and not _telling(ref.title) <= asked
            }
            with self._journal.timed("fetch"):
                for title in list(finders)[: self._limit]:
                    fetches[title] = asyncio.create_task(self._fetch(title))
                fetched = [(title, finders[title], await task) for title, task in fetches.items()]
            return Found(
                self._usable(fetched, sections, redirects, distinct_titles(list(finders))), list(kept)
            )
        finally:
            await stop([own, wider, *searches, *fetches.values()])

    def _related(
        self, question: str, terms: Sequence[str], results: Sequence[_Searched]
    ) -> dict[str, _Searched]:
        """Keep the terms that have something to do with the question, with their results."""
        asked = _telling(question)
        kept: dict[str, _Searched] = {}
        dropped: list[str] = []
        for term, searched in zip(terms, results, strict=True):
            words = _telling(term)
            titles = (_telling(ref.title) for ref in searched.hits["title"].refs)
            if not _PIECE.fullmatch(term) and (words & asked or any(words & title for title in titles)):
                kept[term] = searched
            else:
                dropped.append(term)
        self._journal.stage("terms", terms=list(kept), **({"dropped": dropped} if dropped else {}))
        self._journal.details["search"] = {"terms": list(kept), "dropped": dropped}
        return kept

    def _report(self, term: str, searched: _Searched) -> None:
        """Report what was found and what failed, each problem once."""
        if term in self._reported:
            return
        self._reported.add(term)
        text = searched.hits["text"]
        remarks = {"without": text.problem, "note": text.note}
        titles = [ref.title for found in searched.hits.values() for ref in found.refs]
        self._journal.stage(
            "search",
            term=term,
            pages=list(dict.fromkeys(titles))[: self._limit],
            **{name: remark for name, remark in remarks.items() if remark},
        )
        for kind, error in searched.failed.items():
            self._skip(term, f"the {kind} search failed: {self._reason(error, term)}")
        if text.problem is not None and text.problem not in self._reported:
            self._reported.add(text.problem)
            self._journal.skip(term, text.problem)

    def _usable(
        self,
        fetched: list[tuple[str, str, Page | str]],
        sections: Mapping[str, int | None],
        redirects: Mapping[str, str],
        distinct: Mapping[str, str],
    ) -> list[RetrievedPage]:
        usable: dict[str, RetrievedPage] = {}
        sketches: dict[str, bytes] = {}
        for title, finder, page in fetched:
            if isinstance(page, str):
                self._skip(title, page)
            elif not any(section.text.strip() for section in page.sections):
                self._skip(page.title, "the page is empty")
            elif page.title not in usable:  # a redirect leads to the same page
                found = sketch("\n\n".join(section.text for section in page.sections))
                twin = next((other for other, known in sketches.items() if alike(found, known)), None)
                if twin is not None:
                    self._skip(page.title, f"it says nearly the same as `{twin}`")
                    continue
                sketches[page.title] = found
                usable[page.title] = RetrievedPage(
                    msgspec.structs.replace(
                        page, asked_as=redirects.get(title, ""), told_by=distinct.get(page.title, "")
                    ),
                    finder,
                    sections.get(title),
                )
        return list(usable.values())

    async def _wider(self, question: str) -> list[str]:
        """Titles of pages with other words that say about the same; none where that search fails."""
        if self._others is None:
            others = other_words(_telling(question)) + other_expressions(question)
            query = " ".join([question, *others])
            found = await self._searched(self._wiki.search_text, query) if others else Hits([])
            self._others = [ref.title for ref in found.refs] if isinstance(found, Hits) else []
        return self._others

    def _skip(self, title: str, reason: str) -> None:
        if (title, reason) not in self._skipped:
            self._skipped.add((title, reason))
            self._journal.skip(title, reason)

    async def _search(self, term: str) -> _Searched:
        if term not in self._searches:
            self._searches[term] = await self._both_searches(term)
        return self._searches[term]

    async def _both_searches(self, term: str) -> _Searched:
        if not content_words(term):  # "What is it?" would find the pages with the most common words
            return _Searched({kind: Hits([]) for kind in self._kinds}, {})
        results = await side_by_side(self._searched(search, term) for search in self._kinds.values())
        named = dict(zip(self._kinds, results, strict=True))
        failed = {kind: result for kind, result in named.items() if isinstance(result, Exception)}
        hits = {kind: result if isinstance(result, Hits) else Hits([]) for kind, result in named.items()}
        return _Searched(hits, failed)

    async def _searched(self, search: Search, term: str) -> Hits | Exception:
        try:
            async with asyncio.timeout(self._timeout):
                found = await search(term, _HITS)
                return found if isinstance(found, Hits) else Hits(found)
        except Exception as error:
            return error

    async def _fetch(self, title: str) -> Page | str:
        """Return the page, or the reason why it cannot be used."""
        async with self._slots:
            if title not in self._pages:
                self._journal.stage("fetch", title=title)
                try:
                    async with asyncio.timeout(self._timeout):
                        self._pages[title] = await self._wiki.fetch(title)
                except Exception as error:
                    self._pages[title] = self._reason(error, title)
            return self._pages[title]

    def _reason(self, error: Exception, what: str) -> str:
        """Describe an error for the client; unexpected ones go to the log with their trace."""
        if isinstance(error, TimeoutError):
            return f"no reply within {self._timeout:g} seconds"
        if isinstance(error, HearthError):
            return error.message
        log.error("the wiki failed unexpectedly", what=what, exc_info=error)
        return "an internal error; the server's log has it"


def _ranked(
    question: str, own: _Searched, by_term: Mapping[str, _Searched], wider: Sequence[str]
) -> dict[str, str]:
    """Fuse all rankings to titles, best first, each with the search that found it first."""
    finders: dict[str, str] = {}
    for finder, searched in {question: own, **by_term}.items():
        for kind in ("text", "title"):
            for ref in searched.hits[kind].refs:
                finders.setdefault(ref.title, finder)
    for title in wider:
        finders.setdefault(title, question)
    proposed = fuse(
        [
            [ref.title for ref in searched.hits[kind].refs]
            for searched in by_term.values()
            for kind in ("text", "title")
        ]
    )
    text = own.hits["text"]
    weights = (text.searches, _TERMS, _OTHER_WORDS)
    rankings = [[ref.title for ref in text.refs], [title for title, _ in proposed], wider]
    scores = dict(fuse(rankings, K_SEARCH, weights))
    asked = _telling(question)
    for rank, ref in enumerate(own.hits["title"].refs, 1):
        naming = asked & (_telling(ref.title) | _telling(ref.redirect))
        # A title without any of the words was found by a search for misspelt ones.
        share = min(1.0, len(naming) / (_NAMING_SHARE * len(asked))) if naming else 1.0
        scores[ref.title] = scores.get(ref.title, 0.0) + share * _TITLES / (K_SEARCH + rank)
    return {title: finders[title] for title in sorted(scores, key=scores.__getitem__, reverse=True)}


def distinct_titles(titles: Sequence[str]) -> dict[str, str]:
    """Titles without the words that all of them have, where these are at least three and have others."""
    shared = set.intersection(*map(_telling, titles)) if len(titles) >= _LEAST_TITLES else set()
    if not shared or any(_telling(title) == shared for title in titles):
        return {}
    return {
        title: " ".join(word for word in tokens(title) if not shared & set(content_words(word)))
        for title in titles
    }


def _telling(text: str) -> set[str]:
    """The stems that tell what a text is about: no stop words and no numbers."""
    return {word for word in content_words(text) if not word.isdigit()}


def _unreachable(error: Exception) -> HearthError:
    message = error.message if isinstance(error, HearthError) else "no usable reply"
    return HearthError(
        f"the wiki could not be searched: {message}", code="wiki_unavailable", status=503, retry_after=10.0
    )
