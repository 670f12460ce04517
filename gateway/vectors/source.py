"""What the indexer sees of those who want vectors: documents that wait, and where their vectors go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import apsw
from msgspec import Struct

_HALF_WORD = 20


class EmbeddedText(Struct, frozen=True):
    """A text that gets one vector. ``mark`` is the source's own, such as the section it is from."""

    text: str
    title: str = ""
    mark: int = 0

    def halves(self) -> Iterator[EmbeddedText]:
        """The text in two parts, cut at a space near its middle; itself when it is too short for that."""
        middle = len(self.text) // 2
        space = self.text.find(" ", middle, middle + _HALF_WORD)
        cut = space if space > 0 else middle
        for text in (self.text[:cut].strip(), self.text[cut:].strip()):
            if text:
                yield EmbeddedText(text, self.title, self.mark)


class Document(Struct, frozen=True):
    """Something with vectors. ``number`` orders documents; ``row`` is the source's own."""

    number: int
    parts: list[EmbeddedText]
    row: Any


class Vectors(Struct, frozen=True):
    """What became of a document: a mark for each vector, or why there are none."""

    marks: list[int]
    vectors: list[bytes]
    problem: str | None = None


class Count(Struct, frozen=True):
    """Documents that are done, those of them that have no vectors because of a problem, and all."""

    done: int
    failed: int
    total: int


class DocumentSource(Protocol):
    """A kind of documents. The functions run in the database's threads."""

    name: str

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        """The next documents behind number ``after`` that have no vectors yet."""
        ...

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        """Store vectors; those of a document that has changed or gone meanwhile are dropped."""
        ...

    def count(self, connection: apsw.Connection) -> Count:
        """How far it is."""
        ...

    def tidy(self, connection: apsw.Connection) -> bool:
        """A step of cleaning up; False when there is nothing more to do."""
        ...
