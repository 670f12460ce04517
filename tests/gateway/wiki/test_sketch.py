from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki
from gateway.wiki.sketch import alike, distinct, sketch

WORDS = [f"{first}{second}" for first in "abcdefghij" for second in ("ar", "el", "or", "um", "ix", "op")]


def text(seed: int, count: int = 200) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=count))


def test_copies_are_alike_and_others_are_not() -> None:
    original = text(1)
    assert alike(sketch(original), sketch(original))
    assert alike(sketch(original), sketch("Another name. " + original.upper() + "\n\nOne more sentence."))
    assert not alike(sketch(original), sketch(text(2)))
    half = " ".join(original.split()[:100]) + " " + text(3, 100)
    assert not alike(sketch(original), sketch(half))


def test_short_texts_are_never_copies() -> None:
    assert sketch("") == sketch("This page is a stub.") == b""
    assert not alike(b"", b"") and not alike(sketch("a b c"), sketch("a b c"))
    found = distinct([("A", 1.0, b""), ("B", 0.9, b""), ("A", 0.8, b"")], 3)
    assert [(ref.title, ref.score) for ref in found] == [("A", 1.0), ("B", 0.9)]


def test_forms_with_other_contents_are_told_apart() -> None:
    form = "{} is an esoteric language made by {} in {} after a discussion about {}, and it is like {} in most ways."
    one = form.format("Alpha", "User X", "2014", "counter machines and loops", "brainfuck")
    other = form.format("Beta", "User Y", "2019", "graph rewriting without any variables", "Thue and Befunge")
    assert not alike(sketch(one), sketch(other))


@given(st.text(max_size=400), st.integers(0, 400))
def test_a_sketch_is_small_and_depends_on_the_text_alone(value: str, cut: int) -> None:
    assert sketch(value) == sketch(value) and len(sketch(value)) <= 128
    assert alike(sketch(value), sketch(value)) == bool(sketch(value))
    assert alike(sketch(value), sketch(value[:cut])) == alike(sketch(value[:cut]), sketch(value))


def test_a_very_long_text_is_sketched_by_its_beginning() -> None:
    long = text(5, 30_000)
    assert alike(sketch(long), sketch(long + " more" * 1000))


async def test_a_copy_is_found_once_and_by_its_own_name(database: Database) -> None:
    def fill(connection: object) -> None:
        body = "Gloop has a stack. " + text(9)
        for title, wikitext in {
            "Gloop": body,
            "Gloop (mirror)": body + " Copied.",
            "Another gloop": "gloop " + text(10),
        }.items():
            put(connection, prepare(title, 1, wikitext), "test")  # type: ignore[arg-type]

    database.write_sync(fill)
    wiki = LocalWiki(database, WikiSettings())
    by_text = [ref.title for ref in (await wiki.search_text("gloop", 5)).refs]
    assert "Another gloop" in by_text and len(by_text) == 2
    by_title = [ref.title for ref in await wiki.search_titles("gloop", 5)]
    assert by_title == ["Gloop", "Another gloop"]
    assert (await wiki.search_titles("gloop (mirror)", 5))[0].title == "Gloop (mirror)"
    assert [ref.title for ref in (await wiki.search_text("gloop", 1)).refs] == by_text[:1]
