"""Fetched pages as a prompt shows them: passages as lines, each with its token count."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from gateway.ask.text.passages import Passage, cut_long, group, text_units
from gateway.wiki.source import Page

# Lines that are no code: items of lists, rows of tables, short sentences.
_NO_CODE = re.compile(r"\s*(?:[-*#•]|\d+[.)])[ \t].*|.* \| .*|[^\W\d_][\w\s,'’-]*[.!?:]")

# Counts the tokens of each text.
CountTexts = Callable[[list[str]], Awaitable[list[int]]]


class RetrievedPage(Struct, frozen=True):
    """A fetched page and the index of the first search term that found it."""

    page: Page
    term: int


class PageDraft(Struct, frozen=True, kw_only=True):
    """A page cut into passages. ``costs`` are tokens per passage, with its line break and marker.

    ``head`` is the cost of the header line and the empty line before it.
    """

    page: Page
    term: int
    passages: list[Passage]
    costs: list[int]
    head: int

    @property
    def whole(self) -> int:
        """Tokens of the page if every passage is shown."""
        return self.head + sum(self.costs)


def passage_line(n: int, heading: str, passage: Passage) -> str:
    """Render a passage for the background; a section's first one carries the heading.

    The marker of code stands on a line of its own, where it cannot look like a part of it.
    """
    code = passage.verbatim and not _NO_CODE.fullmatch(passage.text.rpartition("\n")[2])
    text = passage.text + ("\n" if code else " ") + f"[{n}]"
    if not passage.first or not heading:
        return text
    return f"{heading}:\n{text}" if "\n" in text else f"{heading}: {text}"


def render_page(n: int, page: Page, passages: Sequence[Passage]) -> str:
    """Render a page as one block of the background."""
    return "\n".join(_page_lines(n, page, passages))


def _page_lines(n: int, page: Page, passages: Sequence[Passage]) -> list[str]:
    lines = [passage_line(n, page.sections[passage.section].heading, passage) for passage in passages]
    return [f"[{n}] {page.title}", *lines]


async def draft_pages(
    found: Sequence[RetrievedPage], count: CountTexts, passage_tokens: int
) -> list[PageDraft]:
    """Cut the pages into passages and count their tokens, with two calls of ``count`` for all of them.

    Lines are numbered by the pages' positions; a page that follows a skipped one ends up with a smaller number.
    """
    units = [[text_units(section.text) for section in each.page.sections] for each in found]
    counts = iter(await count([unit.text for page in units for section in page for unit in section]))
    cut: list[list[Passage]] = []
    lines: list[str] = []
    for n, (each, page) in enumerate(zip(found, units, strict=True), 1):
        passages: list[Passage] = []
        for index, section in enumerate(page):
            sized = cut_long(section, [next(counts) for _ in section], passage_tokens)
            passages += group(index, sized, passage_tokens)
        cut.append(passages)
        header, *rest = _page_lines(n, each.page, passages)
        lines += [f"\n{header}\n", *(line + "\n" for line in rest)]
    costs = iter(await count(lines))
    return [
        PageDraft(
            page=each.page,
            term=each.term,
            passages=passages,
            head=next(costs),
            costs=[next(costs) for _ in passages],
        )
        for each, passages in zip(found, cut, strict=True)
    ]
