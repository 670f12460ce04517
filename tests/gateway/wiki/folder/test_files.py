"""Which files of a folder become pages, and what their titles are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.wiki.folder.files import page_files, read_text, unnumbered, without_numbers
from gateway.wiki.source import Section
from tests.writing import write_files


def write(folder: Path, **files: str) -> None:
    write_files(folder, {name.replace("__", "/").replace("_", "."): text for name, text in files.items()})


def titles(folder: Path, language: str = "en") -> dict[str, str]:
    unread: list[OSError] = []
    found = page_files(folder, language, unread.append)
    assert not unread
    return {str(each.path.relative_to(folder)): each.title for each in found}


def html(title: str, heading: str = "") -> str:
    return f"<html><head><title>{title}</title></head><body><h1>{heading}</h1><p>x</p></body></html>"


def test_one_language_of_each_page(tmp_path: Path) -> None:
    for name in ("intro.de.html", "intro.en.html", "intro.fr.html", "only.fr.html", "v2.5.html", "news.html"):
        (tmp_path / name).write_text(html(name))
    (tmp_path / "news.de.html").write_text(html("Neues"))
    assert list(titles(tmp_path)) == ["intro.en.html", "news.html", "only.fr.html", "v2.5.html"]
    assert list(titles(tmp_path, "de")) == ["intro.de.html", "news.de.html", "only.fr.html", "v2.5.html"]


def test_one_language_of_each_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        de__a_html=html("Eins"),
        en__a_html=html("One"),
        pt__only_html=html("So"),
        js__a_md="# Other",
    )
    assert list(titles(tmp_path)) == ["en/a.html", "js/a.md", "pt/only.html"]
    assert list(titles(tmp_path, "de")) == ["de/a.html", "js/a.md", "pt/only.html"]


def test_links_hidden_files_and_other_kinds_are_left_out(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_html=html("A"),
        sub__b_md="# B",
        sub__c_css="x",
        a_txt="x",
        LICENSE_txt="x",
        d_txt="Notes\n\nx",
    )
    (tmp_path / "e.html").symlink_to(tmp_path / "a.html")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "f.html").write_text(html("F"))
    assert titles(tmp_path) == {"a.html": "A", "d.txt": "Notes", "sub/b.md": "B"}


def test_titles_lack_the_sites_name_and_numbers(tmp_path: Path) -> None:
    names = ("1. Start", "2. Middle", "Chapter 3. End", "3 ways to go - fast")
    for number, name in enumerate(names):
        (tmp_path / f"{number}.html").write_text(html(f"{name} | The Manual"))
    assert list(titles(tmp_path).values()) == ["Start", "Middle", "End", "3 ways to go - fast"]


def test_titles_of_markdown(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_md="---\ntitle: Stated\n---\n## Text {#text}\n",
        b_md="```sh\n# a comment\n```\n## Under it\n# Whole\n",
        c_md="## Only {#only}\n",
    )
    assert titles(tmp_path) == {"a.md": "Stated", "b.md": "Whole", "c.md": "Only"}


def test_a_title_that_all_pages_have_is_no_title(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_html=html("Manual", "1.2 <i>Up</i> &amp; down"),
        b_html=html("Manual", "Over"),
        c_html="<p>no title</p>",
        d_md="Text\n\nRight\n=====\n",
        sub__c_html=html("Over"),
    )
    assert titles(tmp_path) == {
        "a.html": "Up & down",
        "b.html": "Over (b)",
        "c.html": "c",
        "d.md": "Right",
        "sub/c.html": "Over (sub/c)",
    }


@pytest.mark.parametrize(
    ("heading", "without"),
    [
        ("9.2. Must I stop?", "Must I stop?"),
        ("A.1. What is it?", "What is it?"),
        ("Appendix B. Keys", "Keys"),
        ("F.3 Why?", "Why?"),
        ("4.13.2. October 2000: Pools", "October 2000: Pools"),
        ("3 ways", "3 ways"),
        ("A story", "A story"),
        ("2001. ", "2001. "),
        ("Partly cloudy", "Partly cloudy"),
    ],
)
def test_numbers_of_headings(heading: str, without: str) -> None:
    assert unnumbered(heading) == without


@pytest.mark.parametrize(
    ("headings", "without"),
    [
        (["", "1 Start", "2 End", "Appendix A Keys"], ["", "Start", "End", "Keys"]),
        (["", "1 Start", "1.1 Go", "2 End"], ["", "Start", "Go", "End"]),
        (["", "3 ways", "5 rules"], ["", "3 ways", "5 rules"]),
        (["", "1 day", "Other"], ["", "1 day", "Other"]),
    ],
)
def test_numbers_of_a_file(headings: list[str], without: list[str]) -> None:
    sections = [Section(each, "", 2, "") for each in headings]
    assert [each.heading for each in without_numbers(sections)] == without


@pytest.mark.parametrize(
    "data",
    [
        "\ufeffé".encode(),
        "é".encode(),
        b'<meta charset="iso-8859-1">\xe9',
        b"\xe9",
        b'<meta charset="nonsense">\xe9',
        "é".encode("utf-16"),
    ],
)
def test_encodings(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.html").write_bytes(data)
    assert read_text(tmp_path / "a.html").endswith("é")


def test_titles_are_read_in_the_files_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_bytes(b'<meta charset="iso-8859-1"><title>Caf\xe9</title>')
    assert titles(tmp_path) == {"a.html": "Café"}


def test_no_page_is_lost_to_another_of_the_same_title(tmp_path: Path) -> None:
    write(tmp_path, a_html=html("T"), a_md="# T", b_md="# T (a)", c_md="# T (a.md)")
    assert titles(tmp_path) == {
        "a.html": "T (a)",
        "a.md": "T (a.md)",
        "b.md": "T (a) (b)",
        "c.md": "T (a.md) (c)",
    }
