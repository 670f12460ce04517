"""The interface between the indexer and what has documents to embed, such as the wiki and the facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import apsw
from msgspec import Struct

_HALF_WORD = 20


class EmbeddedText(Struct, frozen=True):
    """A text that gets one vector. ``mark`` belongs to the source, such as the index of the text's section."""

    text: str
    title: str = ""
    mark: int = 0

    def halves(self) -> Iterator[EmbeddedText]:
        """Split the text at a space near its middle; a text of one character yields itself."""
        middle = len(self.text) // 2
        space = self.text.find(" ", middle, middle + _HALF_WORD)
        cut = space if space > 0 else middle
        for text in (self.text[:cut].strip(), self.text[cut:].strip()):
            if text:
                yield EmbeddedText(text, self.title, self.mark)


class Document(Struct, frozen=True):
    """``number`` orders documents; ``row`` belongs to the source."""

    number: int
    parts: list[EmbeddedText]
    row: Any


class Vectors(Struct, frozen=True):
    """A document's vectors and the mark of each, or ``problem``: why it has none."""

    marks: list[int]
    vectors: list[bytes]
    problem: str | None = None


class Count(Struct, frozen=True):
    """Numbers of documents. ``done`` includes ``failed``, those that got no vectors because of a problem."""

    done: int
    failed: int
    total: int


class DocumentSource(Protocol):
    """A kind of documents. The methods run in the database's threads."""

    name: str

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        """The next documents without vectors whose number is greater than ``after``."""
        ...

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        """Store vectors, except those of documents that were changed or deleted meanwhile."""
        ...

    def count(self, connection: apsw.Connection) -> Count: ...

    def tidy(self, connection: apsw.Connection) -> bool:
        """Do one step of cleaning up; return whether another is needed. By itself, vectors go with their documents."""
        return False
