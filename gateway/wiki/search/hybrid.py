"""Text search by words, by meaning, or by both rankings fused: the same for every kind of wiki."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import apsw

from gateway.base.aio import side_by_side
from gateway.base.errors import HearthError
from gateway.base.ranking import fuse
from gateway.config.settings import SearchMode
from gateway.store.db import Database
from gateway.wiki.search.vectors import Meaning
from gateway.wiki.sketch import SeenTexts
from gateway.wiki.source import Hits, PageRef

ByWords = Callable[[str, int], Awaitable[list[PageRef]]]
Sketch = Callable[[apsw.Connection, str], bytes]


class HybridSearch:
    """``sketch`` is that of a page by its title; ``spare`` pages of each ranking are looked at besides those that are
    wanted, because one that is second in both may be first in all."""

    def __init__(
        self, database: Database, by_words: ByWords, meaning: Meaning, sketch: Sketch, *, spare: int
    ) -> None:
        self._database = database
        self._by_words = by_words
        self._meaning = meaning
        self._sketch = sketch
        self._spare = spare

    async def search(self, term: str, limit: int, mode: SearchMode) -> Hits:
        """The best pages, no copy of one twice.

        By both, a query without a vector in time is searched by words alone, which ``problem`` says. By vectors
        alone that raises HearthError.
        """
        if mode == "text":
            return Hits(await self._by_words(term, limit))
        depth = limit + self._spare
        if mode == "vectors":
            near = await self._meaning.search(term, depth)
            rankings = [near.refs]
        else:
            words, near = await side_by_side([self._words(term, depth), self._near(term, depth)])
            rankings = [words.refs, near.refs]
        fused = fuse([[ref.title for ref in ranking] for ranking in rankings])
        refs = await self._database.read(lambda connection: self._unlike(connection, fused, limit))
        return Hits(refs, near.problem, near.note)

    async def _words(self, term: str, limit: int) -> Hits:
        return Hits(await self._by_words(term, limit))

    async def _near(self, term: str, limit: int) -> Hits:
        try:
            near = await self._meaning.search(term, limit)
        except HearthError as error:
            return Hits([], f"searched by words alone: {error.message}")
        return Hits(near.refs, near.problem and f"searched by words alone: {near.problem}", near.note)

    def _unlike(
        self, connection: apsw.Connection, ranked: list[tuple[str, float]], limit: int
    ) -> list[PageRef]:
        """The best pages, of near-copies the first one."""
        texts = SeenTexts()
        found: list[PageRef] = []
        for title, score in ranked:
            if len(found) == limit:
                break
            if texts.add(self._sketch(connection, title)):
                found.append(PageRef(title, score))
        return found
