"""Fetched pages as a prompt shows them: passages as lines with their headings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gateway.ask.text.passages import Passage, cut_section
from gateway.wiki.source import Page


class RetrievedPage(Struct, frozen=True):
    """A fetched page and the search that found it first: a term, or the question.

    ``section`` is the index of the section that is nearest to the question by meaning, if that is known.
    """

    page: Page
    term: str
    section: int | None = None


class PageDraft(Struct, frozen=True):
    """A page cut into passages. ``paths`` are the headings that lead to each section, the outermost first."""

    page: Page
    term: str
    section: int | None  # as in RetrievedPage
    passages: list[Passage]
    paths: list[tuple[str, ...]]


def draft_page(found: RetrievedPage, passage_tokens: int) -> PageDraft:
    """Cut a page into passages of about this many tokens."""
    sections = found.page.sections
    passages = [
        passage
        for index, section in enumerate(sections)
        for passage in cut_section(index, section.text, passage_tokens)
    ]
    return PageDraft(found.page, found.term, found.section, passages, section_paths(found.page))


def section_paths(page: Page) -> list[tuple[str, ...]]:
    """The headings above each section and its own; the lead has none."""
    paths: list[tuple[str, ...]] = []
    above: list[tuple[int, str]] = []
    for section in page.sections:
        above = [(level, heading) for level, heading in above if level < section.level]
        if section.heading:
            above.append((section.level, section.heading))
        paths.append(tuple(heading for _, heading in above))
    return paths


def render_page(n: int, page: Page, shown: Sequence[Passage]) -> str:
    """Render passages, in page order, as one block of the background."""
    paths = section_paths(page)
    return "\n".join([title_line(n, page), *_lines(n, paths, shown)])


def title_line(n: int, page: Page) -> str:
    return f"[{n}] {page.names}"


def _lines(n: int, paths: Sequence[tuple[str, ...]], shown: Sequence[Passage]) -> Iterator[str]:
    """A section's first passage carries its headings, and a table's first row the header.

    The marker of code stands on a line of its own, where it cannot look like a part of it.
    """
    before = Passage(-1, "")
    for passage in shown:
        is_new = passage.section != before.section
        text = passage.text + ("\n" if passage.code else " ") + f"[{n}]"
        if passage.header and (is_new or passage.header != before.header) and passage.text != passage.header:
            text = f"{passage.header}\n{text}"
        if is_new and paths[passage.section]:
            heading = heading_text(paths[passage.section])
            yield f"{heading}:\n{text}" if "\n" in text else f"{heading}: {text}"
        else:
            yield text
        before = passage


def heading_text(path: Sequence[str]) -> str:
    return " / ".join(path)
