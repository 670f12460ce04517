"""Search quality on the embedded sample wiki: the page a question means is among the first three hits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.base.resources import sample_wiki
from gateway.cli.common.files import opened_database
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.dumps.sample import load_sample
from gateway.wiki.local import LocalWiki

QUERIES = [
    ("befunge creator", "Befunge"),
    ("who made brainfuck", "Brainfuck"),
    ("who made brainfuk", "Brainfuck"),
    ("bf language", "Brainfuck"),
    ("><> stack of stacks", "><>"),
    ("fish language", "><>"),
    ("Chris Pressey two-dimensional language", "Befunge"),
    ("language with only spaces tabs and line feeds", "Whitespace"),
    ("hardest programming language Dante", "Malbolge"),
    ("language where programs are recipes", "Chef"),
    ("language for orang-utans", "Ook!"),
    ("HQ9+ increment accumulator", "HQ9+"),
    ("LOLCODE variables", "LOLCODE"),
    ("programs as abstract paintings", "Piet"),
    ("Shakespeare Programming Language", "Shakespeare"),
    ("please politeness INTERCAL", "INTERCAL"),
    ("COME FROM statement", "INTERCAL"),
    ("Conway FRACTRAN fractions", "FRACTRAN"),
    ("malboge", "Malbolge"),
    ("what is a quine", "Quine"),
    ("turing tarpit", "Turing tarpit"),
    ("P'' Böhm", "P′′"),
    ("Arnold Schwarzenegger quotes", "ArnoldC"),
    ("taxi passengers Townsburg", "Taxi"),
    ("London Underground language", "Mornington Crescent"),
    ("song lyrics rock ballad language", "Rockstar"),
    ("hexagonal grid", "Hexagony"),
    ("golfing language Dennis", "Jelly"),
    ("unlambda", "Unlambda"),
    ("combinator S K", "SKI combinator calculus"),
    ("tag systems", "Tag system"),
    ("Hexgony", "Hexagony"),
    ("emoji keywords", "Emojicode"),
    ("cow moo language", "COW"),
]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with opened_database(Path(tmp_path_factory.mktemp("sample")) / "hearth.db") as database:
        yield database


@pytest.fixture
async def wiki(sample: Database) -> LocalWiki:
    await load_sample(sample, sample_wiki())
    return LocalWiki(sample, WikiSettings())


@pytest.mark.parametrize(("query", "page"), QUERIES)
async def test_the_page_meant_is_among_the_first_three(wiki: LocalWiki, query: str, page: str) -> None:
    by_title = [ref.title for ref in await wiki.search_titles(query, 3)]
    by_text = [ref.title for ref in (await wiki.search_text(query, 3)).refs]
    assert page in by_title + by_text, (by_title, by_text)


async def test_every_sample_page_and_redirect_can_be_fetched(wiki: LocalWiki, sample: Database) -> None:
    names = sample.read_sync(lambda c: [str(row[0]) for row in c.execute("SELECT name FROM wiki_names")])
    assert len(names) >= 60
    for name in names:
        page = await wiki.fetch(name)
        assert any(section.text for section in page.sections), name
        for section in page.sections:
            assert not {"[[", "{{", "'''"} & {section.text[:2], section.text[:3]}, (name, section.heading)
