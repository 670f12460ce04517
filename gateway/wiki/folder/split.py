"""A long file as several pages, cut at its headings: a manual in one file is found like one in many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count

from msgspec import Struct

from gateway.wiki.folder.files import PageFile
from gateway.wiki.source import Section

_LONG = 60_000  # characters of a file that is split
_SHARE = 0.1  # of the folder's bytes that it has at least
_PAGE = 12_000  # characters of a page that is not split further
_LEAST = 1_000  # shorter sections stay on the page above them


class FilePart(Struct, frozen=True):
    """The sections of a page, its heading, and the one above it; "" for the file's own page."""

    heading: str
    above: str
    sections: list[Section]


def is_long(text: str, size: int, folder: int) -> bool:
    """Whether a file of ``size`` bytes is split, in a folder of that many bytes.

    Pieces of one page among hundreds compete with each other, and are found less often than the page.
    """
    return len(text) > _LONG and size >= _SHARE * folder


class Titles:
    """Gives pages their titles, each one once."""

    def __init__(self, files: Sequence[PageFile]) -> None:
        self._alone = len(files) == 1
        self._taken = {file.title for file in files}

    def of(self, file: PageFile, part: FilePart) -> str:
        """The title of a page of a split file: its heading, behind it the file's title or the heading above."""
        if not part.heading:
            return file.title
        place = part.above if self._alone else file.title
        ways = [part.heading] if self._alone else []
        ways += [
            f"{part.heading} ({each})" for each in dict.fromkeys((place, part.above, file.title)) if each
        ]
        numbered = (f"{ways[-1]} ({number})" for number in count(2))
        title = next(way for way in chain(ways, numbered) if way not in self._taken)
        self._taken.add(title)
        return title

    @property
    def given(self) -> set[str]:
        return self._taken


def parts(sections: Sequence[Section]) -> list[FilePart]:
    """The pages of a file, in its order; the first has the file's lead."""
    return [part for part in _split(sections, "") if any(each.text for each in part.sections)]


def _split(sections: Sequence[Section], above: str) -> Iterator[FilePart]:
    """The page of the first section, with the short ones below it, then those of the others."""
    first, kept, later = sections[0], list[Section](), list[Sequence[Section]]()
    below = list(_below(sections))
    if _size(sections) <= _PAGE:
        below, kept = [], list(sections[1:])
    least = _LEAST if sum(_size(each) for each in below if _size(each) < _LEAST) <= _PAGE else 0
    for each in below:
        if _size(each) < least:
            kept += each
        else:
            later.append(each)
    lead = Section("", first.anchor, 1, first.text)
    yield FilePart(first.heading, above, [lead, *kept])
    for each in later:
        yield from _split(each, first.heading)


def _below(sections: Sequence[Section]) -> Iterator[Sequence[Section]]:
    """The sections below the first one, each with its own."""
    start = 1
    for end in range(2, len(sections) + 1):
        if end == len(sections) or sections[end].level <= sections[start].level:
            yield sections[start:end]
            start = end


def _size(sections: Sequence[Section]) -> int:
    return sum(len(each.text) + len(each.heading) for each in sections)
