"""A long file becomes pages."""

from __future__ import annotations

from pathlib import Path

from gateway.wiki.folder.files import PageFile
from gateway.wiki.folder.split import FilePart, Titles, is_long, parts
from gateway.wiki.source import Section

FILE = PageFile(Path("m.html"), "The Manual")


def section(heading: str, level: int, characters: int) -> Section:
    return Section(heading, heading.lower(), level, "x" * characters)


def shown(found: list[FilePart]) -> list[tuple[str, str, list[str]]]:
    return [(each.heading, each.above, [below.heading for below in each.sections[1:]]) for each in found]


def test_a_long_file_that_is_a_good_part_of_the_folder_is_split() -> None:
    text = "x" * 90_000
    found = [is_long(text, 90_000, folder) for folder in (90_000, 800_000, 2_000_000)]
    assert found == [True, True, False]
    assert not is_long(text[:50_000], 50_000, 50_000)


def test_long_chapters_are_cut_and_short_sections_stay() -> None:
    sections = [
        section("", 1, 10),
        section("Start", 1, 2000),
        section("Quick", 2, 500),
        section("Use", 1, 300),
        section("Keys", 2, 60_000),
        section("Mouse", 2, 5000),
        section("Buttons", 3, 2000),
        section("Tip", 2, 200),
    ]
    found = parts(sections)
    assert shown(found) == [
        ("", "", []),
        ("Start", "", ["Quick"]),
        ("Use", "", ["Tip"]),
        ("Keys", "Use", []),
        ("Mouse", "Use", ["Buttons"]),
    ]
    assert found[4].sections[0] == Section("", "mouse", 1, sections[5].text)
    assert sum(len(each.text) for part in found for each in part.sections) == sum(
        len(each.text) for each in sections
    )


def test_many_short_sections_are_pages_of_their_own() -> None:
    found = parts(
        [section("", 1, 0), section("Settings", 1, 0), *(section(f"s{n}", 2, 700) for n in range(100))]
    )
    assert [each.heading for each in found] == [f"s{n}" for n in range(100)]


def test_titles_are_unique() -> None:
    part, again = FilePart("Keys", "Use", []), FilePart("Keys", "Start", [])
    alone = Titles([FILE])
    assert [alone.of(FILE, each) for each in (FilePart("", "", []), part, again, again)] == [
        "The Manual",
        "Keys",
        "Keys (Start)",
        "Keys (The Manual)",
    ]
    beside = Titles([FILE, PageFile(Path("a.md"), "Keys (The Manual)")])
    assert [beside.of(FILE, each) for each in (part, part, part)] == [
        "Keys (Use)",
        "Keys (Use) (2)",
        "Keys (Use) (3)",
    ]
