"""A fetched page as it would stand in a prompt: its passages as lines, each with its token count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from gateway.ask.text.passages import Passage, cut_long, group, text_units
from gateway.wiki.source import Page

# Tokens of each text.
CountTexts = Callable[[list[str]], Awaitable[list[int]]]


class RetrievedPage(Struct, frozen=True):
    """A fetched page and the search term (its index) that led to it first."""

    page: Page
    term: int


class PageDraft(Struct, frozen=True, kw_only=True):
    """A page cut into passages. ``costs`` are tokens by passage, line break and marker included.

    ``head`` is the cost of the header line and the empty line before it.
    """

    page: Page
    term: int
    passages: list[Passage]
    costs: list[int]
    head: int

    @property
    def whole(self) -> int:
        """Tokens of the page when every passage is shown."""
        return self.head + sum(self.costs)


def page_header(n: int, title: str) -> str:
    """First line of a page in the background."""
    return f"[{n}] {title}"


def passage_line(n: int, heading: str, passage: Passage) -> str:
    """A passage as the background shows it; a section's first one carries the heading."""
    text = f"{passage.text} [{n}]"
    if not passage.first or not heading:
        return text
    return f"{heading}:\n{text}" if "\n" in passage.text else f"{heading}: {text}"


def render_page(n: int, page: Page, passages: Sequence[Passage]) -> str:
    """The page as one block of the background."""
    lines = [passage_line(n, page.sections[passage.section].heading, passage) for passage in passages]
    return "\n".join([page_header(n, page.title), *lines])


async def draft_pages(
    found: Sequence[RetrievedPage], count: CountTexts, passage_tokens: int
) -> list[PageDraft]:
    """Cut the pages and count their tokens, in two counts for all of them together.

    Numbers in headers and markers are the pages' positions; a page may end up with a smaller one.
    """
    units = [[text_units(section.text) for section in each.page.sections] for each in found]
    texts = [unit.text for page in units for section in page for unit in section]
    counts = iter(await count(texts))
    cut: list[list[Passage]] = []
    for page in units:
        passages: list[Passage] = []
        for index, section in enumerate(page):
            sized = cut_long(section, [next(counts) for _ in section], passage_tokens)
            passages += group(index, sized, passage_tokens)
        cut.append(passages)
    return await _measured(found, cut, count)


async def _measured(
    found: Sequence[RetrievedPage], cut: Sequence[list[Passage]], count: CountTexts
) -> list[PageDraft]:
    lines: list[str] = []
    for n, (each, passages) in enumerate(zip(found, cut, strict=True), 1):
        lines.append("\n" + page_header(n, each.page.title) + "\n")
        headings = [section.heading for section in each.page.sections]
        lines += [passage_line(n, headings[passage.section], passage) + "\n" for passage in passages]
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
