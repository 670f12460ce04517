"""Sections cut into passages to be embedded: what one vector can stand for. Every word is in exactly one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gateway.wiki.source import Section

# Changes when passages do: pages that were cut by another version get new vectors.
VERSION = 1
# A passage: about 250 tokens of English, well within what embedding models take.
MOST_CHARACTERS = 1000


class EmbeddingPassage(Struct, frozen=True):
    """A passage; ``section`` is its index in the page."""

    section: int
    heading: str
    text: str


def pieces(sections: Sequence[Section]) -> list[EmbeddingPassage]:
    """The passages of a page in order; a section without text has none."""
    return [
        EmbeddingPassage(index, section.heading, text)
        for index, section in enumerate(sections)
        for text in _packed(section.text)
    ]


def _packed(text: str) -> Iterator[str]:
    """Whole paragraphs together as long as they fit, longer ones in parts."""
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
    """Parts of at most ``size`` characters, cut behind the last line, sentence or word of their second half."""
    rest = text
    while len(rest) > size:
        ends = (rest.rfind(mark, size // 2, size) + len(mark) for mark in ("\n", ". ", " "))
        end = next((end for end in ends if end > size // 2), size)
        yield from _unless_blank(rest[:end])
        rest = rest[end:]
    yield from _unless_blank(rest)


def _unless_blank(text: str) -> Iterator[str]:
    if stripped := text.strip():
        yield stripped
