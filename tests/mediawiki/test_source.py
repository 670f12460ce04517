"""The API source against a real MediaWiki."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest

from gateway.base.aio import side_by_side
from gateway.base.errors import NotFoundError
from gateway.base.resources import sample_wiki
from gateway.base.supervised import Supervision
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.store.vectors import FETCHED
from gateway.vectors.indexer import Indexer
from gateway.vectors.queries import Queries
from gateway.wiki.remote.mediawiki import MediaWiki
from gateway.wiki.remote.trouble import WikiReplyError, WikiUnavailableError
from gateway.wiki.search.vectors import Meaning, WikiPages
from gateway.wiki.source import Section, WikiSource
from gateway.wiki.wikitext.extract import extract, redirect_target
from tests.gateway.vectors.words import WordEmbedder
from tests.mediawiki.export import CONSTRUCTS, sample_pages
from tests.mediawiki.server import RealMediaWiki
from tests.waiting import until

# The first test waits for the installation.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
async def wiki(mediawiki: RealMediaWiki, database: Database) -> AsyncIterator[MediaWiki]:
    source = MediaWiki(settings_of(mediawiki), database)
    await source.open()
    yield source
    await source.close()


def settings_of(mediawiki: RealMediaWiki) -> WikiSettings:
    return WikiSettings(api_url=mediawiki.api_url, fetch_timeout_seconds=60)


def lines(sections: list[Section]) -> list[str]:
    """Headings and non-blank lines: HTML does not preserve blank lines."""
    out = []
    for section in sections:
        out.append(f"{'=' * section.level} {section.heading} #{section.anchor}")
        out += [line for line in section.text.split("\n") if line.strip()]
    return out


async def test_it_is_a_wiki_source_and_says_how_it_does(wiki: MediaWiki) -> None:
    source: WikiSource = wiki
    assert (await source.health()).status == "unused"
    name, pages = await wiki.api.site()
    assert name.startswith("Sample wiki (MediaWiki 1.")
    assert (await source.site()).name == "Sample wiki"
    assert pages > 100
    health = await source.health()
    assert (health.status, health.source, health.requests, health.failures) == ("ok", "api", 2, 0)


@pytest.mark.parametrize(
    ("term", "title"),
    [
        ("Befunge", "Befunge"),
        ("befunge", "Befunge"),
        ("Brainf", "Brainfuck"),
        ("OISC", "One-instruction set computer"),
        ("lolcode", "LOLCODE"),
        ("one-instruction set computer", "One-instruction set computer"),
        ("instruction computer", "One-instruction set computer"),
        ("who created Befunge?", "Befunge"),
        ("Befunge's creator", "Befunge"),
        ("P''", "P′′"),
        ("Way to constructs", "Constructs"),
    ],
)
async def test_titles_are_found(wiki: MediaWiki, term: str, title: str) -> None:
    found = await wiki.search_titles(term, 3)
    assert found[0].title == title
    assert len({ref.title for ref in found}) == len(found) <= 3
    assert [ref.score for ref in found] == sorted((ref.score for ref in found), reverse=True)


@pytest.mark.parametrize(
    ("term", "title"),
    [
        ("Befunge", "Befunge"),
        ("Pressey 1993", "Befunge"),
        ("the author Wouter van Oortmerssen", "FALSE"),
        ("zzzxqy Oortmerssen", "FALSE"),  # no page has both words
    ],
)
async def test_text_is_found(wiki: MediaWiki, term: str, title: str) -> None:
    found = [ref.title for ref in (await wiki.search_text(term, 5)).refs]
    assert title in found
    assert len(set(found)) == len(found) <= 5


@pytest.mark.parametrize(
    "term",
    [
        "",
        " ",
        "|",
        "a|b",
        "><>",
        "[[x]]",
        "-foo OR bar",
        "intitle:x",
        'insource:/.*/ "',
        "\0\n\x1f",
        "🙂" * 99,
        "x" * 4096,
    ],
)
async def test_no_term_is_an_error(wiki: MediaWiki, term: str) -> None:
    await wiki.search_titles(term, 3)
    await wiki.search_text(term, 3)
    assert (await wiki.health()).failures == 0


async def test_a_page_with_its_address_and_revision(wiki: MediaWiki, mediawiki: RealMediaWiki) -> None:
    page = await wiki.fetch("befunge")
    assert page.title == "Befunge"
    assert page.revision > 0
    assert page.url == f"{mediawiki.url}/wiki/Befunge"
    assert "Chris Pressey" in page.sections[0].text
    shown = httpx2.get(page.url, timeout=60)
    assert shown.status_code == 200
    for section in page.sections[1:]:
        assert f'id="{section.anchor}"' in shown.text.replace("&#039;", "'").replace("&amp;", "&")


@pytest.mark.parametrize("name", ["Befunge-93", "Fractran", "way to constructs"])
async def test_redirects_are_followed(wiki: MediaWiki, name: str) -> None:
    page = await wiki.fetch(name)
    assert page.title == {"Befunge-93": "Befunge", "Fractran": "FRACTRAN"}.get(name, "Constructs")
    assert page.sections[0].text


@pytest.mark.parametrize(
    "title",
    [
        "No such page",
        "",
        "a|b",
        "[[x]]",
        "Special:Version",
        "Loop",
        "Help:Zyzzyva guide",
        "Way to help",
        "x" * 300,
    ],
)
async def test_what_is_no_page_of_the_namespaces_is_not_found(wiki: MediaWiki, title: str) -> None:
    with pytest.raises(NotFoundError):
        await wiki.fetch(title)
    assert (await wiki.health()).failures == 0


async def test_namespaces_are_chosen(mediawiki: RealMediaWiki) -> None:
    found = {}
    for namespaces in ([0], [0, 12]):
        source = MediaWiki(
            WikiSettings(api_url=mediawiki.api_url, namespaces=namespaces, fetch_timeout_seconds=60)
        )
        by_text = {ref.title for ref in (await source.search_text("zyzzyva", 5)).refs}
        by_title = {ref.title for ref in await source.search_titles("Help:Zyzzyva", 5)}
        found[len(namespaces)] = by_text | by_title
        if len(namespaces) == 2:
            page = await source.fetch("Way to help")
            assert page.title == "Help:Zyzzyva guide"
        await source.close()
    assert found == {1: set(), 2: {"Help:Zyzzyva guide"}}


async def test_every_construct_is_as_the_extractor_makes_it(wiki: MediaWiki) -> None:
    page = await wiki.fetch("Constructs")
    assert lines(page.sections) == lines(extract(CONSTRUCTS))
    whole = msgspec.json.encode(page).decode()
    assert "secret" not in whole
    by_anchor = {section.anchor: section for section in page.sections}
    assert list(by_anchor) == ["", "Lists_&_more", "Table", "Lists_&_more_2"]
    assert r"\frac{a}{b} < c and 2^8 x_i, the 1st." in by_anchor[""].text
    assert by_anchor["Table"].text.splitlines() == [
        "The caption",
        "A | B",
        "c | d e",
        "n1 | n2; n3 | after",
    ]
    code = by_anchor["Lists_&_more_2"].text
    for block in (
        " a  b\t<  ; c\n\n   ''not italic''",
        "int main(void) {\n\n    return '\"' < 0 && 1;   /* two  spaces */\n}",
        "leading  space\nkept : here",
    ):
        assert block in code


async def test_the_sample_wiki_reads_the_same_both_ways(wiki: MediaWiki) -> None:
    # Redirects are pages of their own; no MediaWiki title has "<". "[[><>]]" is no link for MediaWiki.
    sample = {
        title: text.replace("[[><>]]", "&#91;&#91;><>]]")
        for title, text in sample_pages(sample_wiki()).items()
        if "<" not in title and not redirect_target(text)
    }
    assert len(sample) > 60
    pages = await side_by_side(wiki.fetch(title) for title in sample)
    for page, (title, wikitext) in zip(pages, sample.items(), strict=True):
        assert page.title == title
        # The template decides the order of an infobox's rows.
        assert sorted(lines(page.sections)) == sorted(lines(extract(wikitext))), title
        text = "\n".join(section.text for section in page.sections)
        for code in re.findall(r"<syntaxhighlight[^>]*>(.*?)</syntaxhighlight>", wikitext, re.DOTALL):
            assert code.strip("\n") in text


async def test_a_page_is_fetched_again_only_when_its_revision_changed(
    wiki: MediaWiki, mediawiki: RealMediaWiki, database: Database
) -> None:
    mediawiki.edit("Changing", "first text")
    await wiki.search_titles("Changing", 1)
    first = await wiki.fetch("Changing")
    made = (await wiki.health()).requests
    assert await wiki.fetch("Changing") == first
    health = await wiki.health()
    assert (health.requests, health.pages, health.cache_hits) == (made, 1, 1)
    again = MediaWiki(settings_of(mediawiki), database)  # as after a restart
    assert await again.fetch("Changing") == first
    assert (await again.health()).requests == 1, "for the revision alone"
    await again.close()
    mediawiki.edit("Changing", "second text")
    await wiki.search_titles("Changing", 1)  # tells the new revision
    second = await wiki.fetch("Changing")
    assert second.revision > first.revision
    assert [first.sections[0].text, second.sections[0].text] == ["first text", "second text"]


async def test_fetched_pages_are_found_by_what_their_sections_say(
    mediawiki: RealMediaWiki, database: Database
) -> None:
    embedder = WordEmbedder()
    indexer = Indexer(database, embedder, [WikiPages(FETCHED)], poll_seconds=60)
    queries = Queries(embedder, dimensions=None, min_similarity=0.2, timeout_seconds=5, on_stale=lambda: None)
    source = MediaWiki(settings_of(mediawiki), database, Meaning(database, queries, FETCHED), indexer.wake)
    indexer.start(Supervision())
    try:
        page = await source.fetch("FALSE")
        passage = next(section.text for section in page.sections[1:] if len(section.text) > 60)[:200]

        async def found() -> bool:
            return "FALSE" in [ref.title for ref in (await source.search_text(f"zzzxqy {passage}", 5)).refs]

        await until(found)
        assert len(embedder.embedded) > len(page.sections) // 2, "section by section"
    finally:
        await indexer.close()
        await queries.close()
        await source.close()


async def test_no_page_and_no_suggestion_is_nothing(wiki: MediaWiki) -> None:
    """MediaWiki's own search engine knows `srinfo`, and suggests nothing."""
    assert (await wiki.search_text("qqzzx vvwwq", 3)).refs == []
    assert (await wiki.health()).failures == 0


async def test_a_wiki_that_lags_is_left_alone_for_as_long_as_it_asks(mediawiki: RealMediaWiki) -> None:
    source = MediaWiki(WikiSettings(api_url=mediawiki.api_url, fetch_timeout_seconds=2))
    source.api._common["maxlag"] = "-2"  # every MediaWiki lags more
    with pytest.raises(WikiUnavailableError, match=r"busy and asks to wait [45] seconds") as caught:
        await source.search_text("Befunge", 3)
    assert caught.value.retry_after is not None
    health = await source.health()
    assert (health.status, health.failures) == ("failing", 1)
    assert 0 < health.paused_seconds <= 5
    await source.close()


async def test_the_wrong_address_is_named(mediawiki: RealMediaWiki) -> None:
    source = MediaWiki(WikiSettings(api_url=f"{mediawiki.url}/index.php", fetch_timeout_seconds=60))
    with pytest.raises(WikiReplyError, match=r"wiki\.api_url must be the address of"):
        await source.fetch("Befunge")
    await source.close()
