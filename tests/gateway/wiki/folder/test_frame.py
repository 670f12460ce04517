"""What is around the text of each page of a site."""

from __future__ import annotations

from gateway.wiki.folder.frame import frame_lines, without_frame
from gateway.wiki.source import Section


def page(number: int) -> list[Section]:
    top = f"Modules | Sitemap\n\nGuide > Part {number % 2} > Page {number}\n\nPage {number} begins.\nSee also"
    return [Section("", "", 1, top), Section("End", "end", 2, f"Text {number}.\nSee also\n\nCopyright 2020")]


PAGES = [page(number) for number in range(10)]


def test_repeated_lines_at_the_edges_and_the_way_to_a_page_are_left_out() -> None:
    frame = frame_lines(PAGES)
    assert frame == {"Modules | Sitemap", "See also", "Copyright 2020"}
    assert without_frame(PAGES[3], frame) == [
        Section("", "", 1, "Page 3 begins.\nSee also"),
        Section("End", "end", 2, "Text 3."),
    ]


def test_few_pages_do_not_tell() -> None:
    assert frame_lines(PAGES[:4]) == frozenset()


def test_a_page_of_nothing_else_is_empty() -> None:
    only = [Section("", "", 1, "Modules | Sitemap\n\nCopyright 2020")]
    assert without_frame(only, frame_lines(PAGES)) == [Section("", "", 1, "")]
