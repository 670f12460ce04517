"""Features of large wikis' exports, in dumps written for these tests."""

from __future__ import annotations

import bz2
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.base.errors import NotFoundError
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.dumps.compressed import open_dump
from gateway.wiki.dumps.importer import Importer, ImportOptions, ImportReport
from gateway.wiki.local import LocalWiki

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="http://www.mediawiki.org/xml/export-0.11/ http://www.mediawiki.org/xml/export-0.11.xsd"
 version="0.11" xml:lang="en">
  <siteinfo>
    <sitename>Made-up wiki</sitename>
    <dbname>madeupwiki</dbname>
    <base>https://made.up/wiki/Main_Page</base>
    <generator>MediaWiki 1.44.0-wmf.5</generator>
    <case>{case}</case>
    <namespaces>
      <namespace key="-2" case="{case}">Media</namespace>
      <namespace key="-1" case="first-letter">Special</namespace>
      <namespace key="0" case="{case}" />
      <namespace key="1" case="{case}">Talk</namespace>
      <namespace key="6" case="{case}">File</namespace>
      <namespace key="8" case="first-letter">MediaWiki</namespace>
      <namespace key="10" case="{case}">Template</namespace>
      <namespace key="828" case="{case}">Module</namespace>
    </namespaces>
  </siteinfo>
"""
TAIL = "</mediawiki>\n"


def revision(number: int, text: str, *, day: int = 1, model: str = "wikitext", who: str = "") -> str:
    """A revision with everything that version 0.11 has."""
    who = who or "<contributor><username>Ann</username><id>17</id></contributor>"
    form = "text/x-wiki" if model == "wikitext" else "text/plain"
    return f"""    <revision>
      <id>{number}</id>
      <parentid>{number - 1}</parentid>
      <timestamp>2025-03-{day:02}T10:20:30Z</timestamp>
      {who}
      <minor />
      <comment>/* History */ see <!-- no comment --> [[there]] &amp; here</comment>
      <origin>{number}</origin>
      <model>{model}</model>
      <format>{form}</format>
      {text}
      <sha1>phoiac9h4m842xq45sp7s6u21eteeq1</sha1>
    </revision>
"""


def text(content: str) -> str:
    size = len(content.encode())
    return (
        f'<text bytes="{size}" sha1="phoiac9h4m842xq45sp7s6u21eteeq1" xml:space="preserve">{content}</text>'
    )


DELETED = '<text bytes="12" deleted="deleted" />'
HIDDEN = '<contributor deleted="deleted" />'
ADDRESS = "<contributor><ip>192.0.2.7</ip></contributor>"


def page(title: str, *revisions: str, ns: int = 0, more: str = "") -> str:
    head = f"  <page>\n    <title>{title}</title>\n    <ns>{ns}</ns>\n    <id>5</id>\n"
    return f"{head}{more}{''.join(revisions)}  </page>\n"


def dump(*pages: str, case: str = "first-letter") -> bytes:
    return (HEAD.format(case=case) + "".join(pages) + TAIL).encode()


Import = Callable[..., ImportReport]


@pytest.fixture
def run(database: Database, tmp_path: Path) -> Import:
    def run_import(data: bytes, namespaces: frozenset[int] = frozenset({0})) -> ImportReport:
        path = tmp_path / "dump.xml"
        path.write_bytes(data)
        with open_dump(path) as opened:
            return Importer(database, ImportOptions(namespaces), lambda _: None).run(opened)

    return run_import


@pytest.fixture
def wiki(database: Database) -> LocalWiki:
    return LocalWiki(database, WikiSettings())


async def first_text(wiki: LocalWiki, title: str) -> str:
    return (await wiki.fetch(title)).sections[0].text


async def test_a_history_gives_the_newest_revision(run: Import, wiki: LocalWiki) -> None:
    """Full histories have revisions in any order, by users, IP addresses and deleted accounts."""
    history = [
        revision(31, text("second"), day=2, who=ADDRESS),
        revision(40, text("the newest"), day=9, who=HIDDEN),
        revision(12, text("first"), day=1),
        revision(35, DELETED, day=3),
    ]
    report = run(dump(page("Long story", *history), page("Short", revision(7, text("one")))))
    assert (report.counts.added, report.counts.failed, report.counts.deleted) == (2, 0, 0)
    assert (await wiki.fetch("Long story")).revision == 40
    assert await first_text(wiki, "Long story") == "the newest"
    site = report.site
    assert (site.sitename, site.dbname, len(site.namespaces)) == ("Made-up wiki", "madeupwiki", 8)


async def test_texts_come_byte_for_byte(run: Import, wiki: LocalWiki) -> None:
    code = "&lt;pre&gt;\n  a &amp;&amp; b\t|\n\n &lt;br/&gt;\n&lt;/pre&gt;"
    run(
        dump(page("Code", revision(1, text(code))), page("Empty", revision(2, '<text bytes="0" sha1="x" />')))
    )
    assert (await first_text(wiki, "Code")).strip("\n") == "  a && b\t|\n\n <br/>".strip("\n")
    assert await first_text(wiki, "Empty") == ""


async def test_other_content_models_are_left_out(run: Import, wiki: LocalWiki) -> None:
    models = {"Module:X": "Scribunto", "X.css": "sanitized-css", "X.json": "json", "Board": "flow-board"}
    pages = [
        page(name, revision(n, text("return {}"), model=model))
        for n, (name, model) in enumerate(models.items(), 1)
    ]
    report = run(dump(*pages, page("Old", revision(9, text("x")).replace("<model>wikitext</model>", ""))))
    assert (report.counts.not_wikitext, report.counts.added) == (4, 1), "old exports name no model"


async def test_further_slots_are_not_the_text(run: Import, wiki: LocalWiki) -> None:
    """Files of a media repository have structured data beside their description."""
    slot = """<content>
        <role>mediainfo</role>
        <origin>99</origin>
        <model>wikibase-mediainfo</model>
        <format>application/json</format>
        <text bytes="2" sha1="y" xml:space="preserve">{}</text>
      </content>
      <sha1>"""
    made = revision(3, text("A picture of a boat.")).replace("<sha1>", slot)
    upload = """    <upload>
      <timestamp>2025-01-01T00:00:00Z</timestamp>
      <contributor><username>Bob</username><id>3</id></contributor>
      <comment>up</comment><filename>Boat.jpg</filename><src>https://made.up/Boat.jpg</src><size>9</size>
    </upload>
"""
    report = run(dump(page("File:Boat.jpg", made, ns=6, more=upload)), frozenset({0, 6}))
    assert (report.counts.added, report.counts.failed) == (1, 0)
    assert await first_text(wiki, "File:Boat.jpg") == "A picture of a boat."


async def test_a_text_that_was_withdrawn_leaves_the_store(run: Import, wiki: LocalWiki) -> None:
    run(dump(page("Secret", revision(1, text("private things"))), page("Kept", revision(2, text("public")))))
    report = run(dump(page("Secret", revision(5, DELETED)), page("Kept", revision(2, text("public")))))
    assert (report.counts.deleted, report.counts.removed, report.counts.unchanged) == (1, 1, 1)
    with pytest.raises(NotFoundError):
        await wiki.fetch("Secret")
    assert (await wiki.search_text("private things", 3)).refs == []
    again = run(dump(page("Secret", revision(5, DELETED))))
    assert (again.counts.deleted, again.counts.removed, again.counts.changed) == (1, 0, 0)


async def test_a_page_of_another_kind_now_leaves_the_store(run: Import, wiki: LocalWiki) -> None:
    run(dump(page("List", revision(1, text("as text")))))
    assert run(dump(page("List", revision(2, text("{}"), model="json")))).counts.removed == 1
    with pytest.raises(NotFoundError):
        await wiki.fetch("List")


async def test_redirects_as_they_are_exported(run: Import, wiki: LocalWiki) -> None:
    moved = page(
        "Ship",
        revision(4, text("#OMDIRIGERING [[Boat#Sails]] {{R}}")),
        more='    <redirect title="Boat" />\n',
    )
    report = run(dump(moved, page("Boat", revision(1, text("It floats.")))))
    assert (report.counts.redirects, report.counts.added) == (1, 1)
    assert await first_text(wiki, "ship") == "It floats."


async def test_small_and_capital_first_letters_are_two_pages(run: Import, wiki: LocalWiki) -> None:
    """In Wiktionaries the case of the first letter matters."""
    pages = [
        page("polish", revision(1, text("To make shiny."))),
        page("Polish", revision(2, text("Of Poland."))),
    ]
    run(dump(*pages, page("SQL", revision(3, text("A language."))), case="case-sensitive"))
    assert await first_text(wiki, "polish") == "To make shiny."
    assert await first_text(wiki, "Polish") == "Of Poland."
    assert await first_text(wiki, "sql") == await first_text(wiki, "SQL") == "A language."
    assert {ref.title for ref in await wiki.search_titles("polish", 3)} == {"polish", "Polish"}


async def test_multistream_bzip2(run: Import, wiki: LocalWiki) -> None:
    """A stream for the head, one for every hundred pages, one for the end; a page never crosses two of them."""
    out = io.BytesIO(bz2.compress(HEAD.format(case="first-letter").encode()))
    out.seek(0, io.SEEK_END)
    for start in range(0, 300, 100):
        block = "".join(page(f"P{n}", revision(n + 1, text(f"text {n}"))) for n in range(start, start + 100))
        out.write(bz2.compress(block.encode()))
    out.write(bz2.compress(TAIL.encode()))
    assert run(out.getvalue()).counts.added == 300
    assert await first_text(wiki, "P299") == "text 299"


async def test_a_stub_dump_says_that_it_has_no_texts(run: Import) -> None:
    stub = '<text bytes="812" sha1="x" location="tt:77" id="77" />'
    report = run(dump(page("P", revision(1, stub))))
    assert report.counts.failures[0].reason == "the dump has no texts, only their sizes"
