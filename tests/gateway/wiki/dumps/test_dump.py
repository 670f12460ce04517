from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.wiki.dumps.dump import DumpError, DumpPage, DumpParser
from tests.gateway.wiki.dumps.export import HEAD, TAIL, export, page, revision


def parse(data: bytes, step: int = 1 << 16, skip: int = 0) -> list[DumpPage]:
    parser = DumpParser(skip)
    pages = [
        found for start in range(0, len(data), step) for found in parser.feed(data[start : start + step])
    ]
    parser.close()
    return pages


def one(body: str) -> DumpPage:
    (found,) = parse(export(body))
    return found


XML_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\n\t<>&\"']"),
    max_size=60,
)
TITLES = st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=20)


@settings(max_examples=80)
@given(st.lists(st.tuples(TITLES, XML_TEXT, st.integers(1, 10**9)), max_size=6), st.integers(1, 300))
def test_what_was_exported_is_read_whatever_the_pieces(wanted: list[tuple[str, str, int]], step: int) -> None:
    data = export(*(page(title, text, number) for title, text, number in wanted))
    found = parse(data, step)
    assert [(each.title, each.text, each.revision) for each in found] == wanted
    assert [each.number for each in found] == list(range(1, len(wanted) + 1))
    assert {each.problem for each in found} <= {None}


def test_the_site_is_known_before_the_first_page() -> None:
    parser = DumpParser()
    parser.feed(HEAD.encode())
    assert (parser.site.sitename, parser.site.dbname) == ("Test wiki", "test")
    assert parser.site.base == "https://wiki.test/wiki/Main_Page"
    assert parser.site.namespaces == {-1: "Special", 0: "", 1: "Talk", 4: "Project"}
    assert parser.pages == 0


def test_the_newest_revision_counts() -> None:
    newest = revision("new", 7, "2026-03-01T00:00:00Z")
    others = [revision("old", 9, "2025-01-01T00:00:00Z"), revision("older", 3, "2024-01-01T00:00:00Z")]
    for order in ([newest, *others], [others[0], newest, others[1]], [*others, newest]):
        found = one(page("P", revisions=order))
        assert (found.text, found.revision) == ("new", 7)
    same_second = [revision("b", 12), revision("a", 11)]
    assert one(page("P", revisions=same_second)).text == "b"


def test_namespaces_redirects_and_models() -> None:
    found = one(page("Talk:P", "x", namespace=1, redirect='A "quoted" & one'))
    assert (found.namespace, found.redirect) == (1, 'A "quoted" & one')
    assert one(page("P", revisions=[revision("a=1", model="Scribunto")])).model == "Scribunto"
    old = "<page><title>talk:P</title><revision><id>1</id><text>x</text></revision></page>"
    assert one(old).namespace == 1, "old exports tell it by the title"
    assert one(old.replace("talk:P", "C: the language")).namespace == 0


def test_further_content_slots_and_logs_are_not_the_text() -> None:
    slot = "<content><role>data</role><model>json</model><text>{}</text></content>"
    found = one(page("P", revisions=[revision("main").replace("</revision>", slot + "</revision>")]))
    assert (found.text, found.model) == ("main", "wikitext")
    log = "<logitem><id>1</id><type>delete</type><text>x</text></logitem>"
    assert [each.title for each in parse(export(log, page("P", "x"), log))] == ["P"]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<page><title>P</title><ns>0</ns></page>", "no revision"),
        (page("", "x"), "no title"),
        (page("P", revisions=["<revision><text>x</text></revision>"]), "no number"),
        (
            page("P", revisions=["<revision><id>99999999999999999999</id><text>x</text></revision>"]),
            "no number",
        ),
        (
            page("P", revisions=['<revision><id>1</id><text bytes="9" /></revision>']),
            "no texts, only their sizes",
        ),
        (page("P", revisions=['<revision><id>1</id><text deleted="deleted" /></revision>']), "was deleted"),
    ],
)
def test_a_page_without_a_usable_text_says_why(body: str, problem: str) -> None:
    found = one(body)
    assert problem in (found.problem or "") and found.text == ""


def test_a_page_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.wiki.dumps.dump.MAX_TEXT_BYTES", 100)
    large, fits, wide = parse(export(page("L", "x" * 101), page("F", "x" * 100), page("W", "é" * 51)))
    assert "larger than" in (large.problem or "") and large.text == ""
    assert fits.problem is None and len(fits.text) == 100
    assert "larger than" in (wide.problem or ""), "bytes count, not characters"
    history = page("H", revisions=[revision("x" * 500, 1, "2020-01-01T00:00:00Z"), revision("now", 2)])
    assert one(history).text == "now"


def test_skipped_pages_are_counted() -> None:
    data = export(*(page(f"P{number}", "x") for number in range(5)))
    assert [(each.number, each.title) for each in parse(data, skip=3)] == [(4, "P3"), (5, "P4")]
    assert parse(data, skip=99) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello", "not XML"),
        (b"", "not XML"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not XML"),
        (b"<html><body>moved</body></html>", "begins with <html>"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b'<!DOCTYPE m [<!ENTITY a "aaaa">]><mediawiki>&a;</mediawiki>', "document type"),
        (b'<!DOCTYPE m SYSTEM "file:///etc/passwd"><mediawiki/>', "document type"),
        (HEAD.encode() + b"<page><title>&undefined;</title>", "undefined entity"),
        (HEAD.encode() + b"<page></pag>", "mismatched tag"),
        (HEAD.encode() + b"\xff\xfe", "not well-formed"),
        (export() + b"<more/>", "junk after"),
        (HEAD.encode() + b"<a>" * 20, "deeper than"),
        (HEAD.encode() + "".join(f"<n{i}/>" for i in range(1000)).encode(), "more kinds"),
        (HEAD.encode() + b"<page><title>" + b"x" * 5000, "longer than 4096"),
    ],
)
def test_what_is_no_export_is_refused(data: bytes, message: str) -> None:
    for step in (7, 1 << 16):
        with pytest.raises(DumpError, match=message):
            parse(data, step)


@pytest.mark.parametrize("start", ["<!-- ", "<page attribute='", "<", "<?x "])
def test_a_tag_without_an_end_cannot_fill_the_memory(start: str) -> None:
    parser = DumpParser()
    parser.feed(HEAD.encode() + start.encode())
    with pytest.raises(DumpError, match="larger than 1 MiB"):
        for _ in range(10_000):
            parser.feed(b"x" * 65536)
    assert parser.pages == 0


@pytest.mark.parametrize("cut", [200, len(HEAD) + 40, -30, -3])
def test_a_file_that_ends_early_says_how_far_it_came(cut: int) -> None:
    data = export(page("First", "x"), page("Second", "y"))[:cut]
    parser = DumpParser()
    pages = parser.feed(data)
    with pytest.raises(DumpError, match="ends early") as caught:
        parser.close()
    assert caught.value.code == "truncated_dump"
    assert ("after 2 pages, the last one `Second`" in caught.value.message) == (len(pages) == 2)


def test_pages_before_the_damage_are_not_lost() -> None:
    parser = DumpParser()
    with pytest.raises(DumpError, match="damaged after 1 page, the last one `A`"):
        parser.feed((HEAD + page("A", "x") + "<page><title>B</oops>").encode())
    assert [found.title for found in parser.take()] == ["A"] == [parser.last_title]


def test_memory_does_not_grow_with_the_number_of_pages() -> None:
    def pieces(count: int) -> Iterator[bytes]:
        yield HEAD.encode()
        for number in range(count):
            yield page(f"P{number}", f"text {number} " * 50).encode()
        yield TAIL.encode()

    def peak(count: int) -> int:
        tracemalloc.start()
        parser = DumpParser()
        found = sum(len(parser.feed(piece)) for piece in pieces(count))
        parser.close()
        assert found == count
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    peak(100)
    assert peak(4000) < 2 * peak(400) + 100_000
