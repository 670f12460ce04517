"""Text search by words, by meaning, or by both rankings fused, for every kind of wiki."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import apsw

from gateway.base.aio import side_by_side
from gateway.base.errors import HearthError
from gateway.base.ranking import K_SEARCH, fuse
from gateway.config.settings import SearchMode
from gateway.wiki.search.vectors import Meaning
from gateway.wiki.sketch import distinct
from gateway.wiki.source import Hits, PageRef, WikiSource

_EACH = 20  # hits of each search that is fused


async def search_by_both(wiki: WikiSource, query: str) -> tuple[list[str], str | None]:
    """Titles of pages by name and by text, best first, and the problem of the search by text."""
    named = await wiki.search_titles(query, _EACH)
    hits = await wiki.search_text(query, _EACH)
    fused = fuse([[ref.title for ref in refs] for refs in (named, hits.refs)], K_SEARCH)
    return [title for title, _ in fused], hits.problem


@dataclass(frozen=True)
class HybridSearch:
    """Searches as ``mode`` says; without ``meaning`` by words.

    ``sketch_of`` reads a page's sketch by its title. Each ranking yields ``spare`` more pages than wanted: the second
    of both may be the first of the fused ranking.
    """

    by_words: Callable[[str, int], Awaitable[list[PageRef]]]
    meaning: Meaning | None
    sketch_of: Callable[[apsw.Connection, str], bytes]
    mode: SearchMode
    spare: int

    async def search(self, term: str, limit: int) -> Hits:
        """The best pages without near-copies.

        Without the term's vector, mode ``both`` searches by words and reports that in ``problem``; mode ``vectors``
        raises HearthError.
        """
        if self.meaning is None or self.mode == "text":
            return Hits(await self.by_words(term, limit))
        depth = limit + self.spare
        if self.mode == "vectors":
            near = await self.meaning.search(term, depth)
            rankings = [near.refs]
        else:
            words, near = await side_by_side(
                [self._words(term, depth), self._near(self.meaning, term, depth)]
            )
            rankings = [words.refs, near.refs]
        fused = fuse([[ref.title for ref in ranking] for ranking in rankings], K_SEARCH)
        refs = await self.meaning.database.read(
            lambda c: distinct(((title, score, self.sketch_of(c, title)) for title, score in fused), limit)
        )
        sections = {ref.title: ref.section for ref in near.refs}
        refs = [PageRef(ref.title, ref.score, sections.get(ref.title)) for ref in refs]
        return Hits(refs, near.problem, near.note, sum(map(bool, rankings)))

    async def _words(self, term: str, limit: int) -> Hits:
        return Hits(await self.by_words(term, limit))

    @staticmethod
    async def _near(meaning: Meaning, term: str, limit: int) -> Hits:
        try:
            near = await meaning.search(term, limit)
        except HearthError as error:
            return Hits([], f"searched by words alone: {error.message}")
        return Hits(near.refs, near.problem and f"searched by words alone: {near.problem}", near.note)
