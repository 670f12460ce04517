"""Split sections into passages to be embedded. Every word is in exactly one passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gateway.wiki.source import Section

# Increment when the passages change: pages that another version split get new vectors.
VERSION = 1
# Of a passage: about 250 tokens of English, well within the context of embedding models.
MOST_CHARACTERS = 1000


class EmbeddingPassage(Struct, frozen=True):
    """``section`` is its index in the page."""

    section: int
    heading: str
    text: str


def pieces(sections: Sequence[Section]) -> list[EmbeddingPassage]:
    """The passages of a page in order."""
    return [
        EmbeddingPassage(index, section.heading, text)
        for index, section in enumerate(sections)
        for text in _packed(section.text)
    ]


def _packed(text: str) -> Iterator[str]:
    """Join paragraphs up to the limit and split longer ones."""
    current: list[str] = []
    size = 0
    for paragraph in text.split("\n\n"):
        for part in cut(paragraph.strip("\n"), MOST_CHARACTERS):
            if current and size + len(part) > MOST_CHARACTERS:
                yield "\n\n".join(current)
                current, size = [], 0
            current.append(part)
            size += len(part) + 2
    if current:
        yield "\n\n".join(current)


def cut(text: str, size: int) -> Iterator[str]:
    """Parts of at most ``size`` characters, each ending at a line, sentence or word, in this order, if its second half
    has one."""
    rest = text
    while len(rest) > size:
        ends = (rest.rfind(mark, size // 2, size) + len(mark) for mark in ("\n", ". ", " "))
        end = next((end for end in ends if end > size // 2), size)
        if part := rest[:end].strip():
            yield part
        rest = rest[end:]
    if part := rest.strip():
        yield part
