"""What a site writes around the text of each page: its name, the way to other pages, a copyright."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import dropwhile

from msgspec.structs import replace

from gateway.wiki.source import Section

SAMPLE = 40  # pages in which repeated lines are looked for
_LEAST = 8  # pages; fewer do not tell what is repeated
_SHARE = 0.6  # of the pages that have the line
_EDGE = 6  # lines at the beginning and at the end
_LONGEST = 300  # characters of such a line
# "Manual > Part > Chapter", in the lead.
_WAY = re.compile(r"[^>»›→|]{1,60}(?:\s(?:>|»|›|→)\s[^>»›→|]{1,60}){2,}")


def frame_lines(pages: Sequence[Sequence[Section]]) -> frozenset[str]:
    """The lines that most of these pages begin or end with."""
    if len(pages) < _LEAST:
        return frozenset()
    found = Counter(line for sections in pages for line in _edges(sections))
    return frozenset(line for line, count in found.items() if count >= _SHARE * len(pages))


def without_frame(sections: list[Section], frame: frozenset[str]) -> list[Section]:
    """Sections without these lines at the page's beginning and end, and without the way to the page."""
    first = dropwhile(lambda line: _is_frame(line, frame), sections[0].text.split("\n"))
    sections = [replace(sections[0], text="\n".join(first)), *sections[1:]]
    last = dropwhile(lambda line: not line.strip() or line in frame, reversed(sections[-1].text.split("\n")))
    return [*sections[:-1], replace(sections[-1], text="\n".join(reversed(list(last))))]


def _is_frame(line: str, frame: frozenset[str]) -> bool:
    return not line.strip() or line in frame or (len(line) <= _LONGEST and _WAY.fullmatch(line) is not None)


def _edges(sections: Sequence[Section]) -> set[str]:
    first = [line for line in sections[0].text.split("\n") if line.strip()][:_EDGE]
    last = [line for line in sections[-1].text.split("\n") if line.strip()][-_EDGE:]
    return {line for line in [*first, *last] if len(line) <= _LONGEST}
