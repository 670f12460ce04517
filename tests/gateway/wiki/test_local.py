from __future__ import annotations

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.base.errors import NotFoundError
from gateway.config.settings import WikiSettings
from gateway.store import fts
from gateway.store.db import Database
from gateway.store.wiki import pages as store
from gateway.store.wiki import search
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki
from gateway.wiki.sites import named_site, page_address, put_site
from gateway.wiki.source import WikiSource

PAGES = {
    "Befunge": "'''Befunge''' was created by Chris Pressey in 1993.\n== Instructions ==\nIt has arrows.",
    "Befunge-98": "A later version of Befunge.",
    "Brainfuck": "Made by Urban Müller. Brainfuck has eight commands.\n== Naïve loops ==\n[->+<]",
    "Brainfuck derivatives": "Languages like brainfuck.",
    "><>": "Fish, a language of fishes. Inspired by Befunge.",
    "///": "Slashes: only replacement.",
    "P''": "Böhm's language.",
    "HQ9+": "Four commands: H, Q, 9 and +.",
    "C": "A letter.",
    "COW": "Moo. A derivative of brainfuck.",
    "Ook!": "Ook. Ook! Ook?",
    "Fish": "#REDIRECT [[><>]]",
    "Bf": "#REDIRECT [[brainfuck#History]]",
    "BrainF": "#REDIRECT [[Bf]]",
    "Loop A": "#REDIRECT [[Loop B]]",
    "Loop B": "#REDIRECT [[Loop A]]",
    "Dead": "#REDIRECT [[Nowhere]]",
}


@pytest.fixture
def wiki(database: Database) -> LocalWiki:
    def fill(connection: object) -> None:
        for number, (title, text) in enumerate(PAGES.items(), 1):
            put(connection, prepare(title, number, text), "test")  # type: ignore[arg-type]

    database.write_sync(fill)
    return LocalWiki(database, WikiSettings())


async def titles(wiki: LocalWiki, term: str, limit: int = 5) -> list[str]:
    return [ref.title for ref in await wiki.search_titles(term, limit)]


async def texts(wiki: LocalWiki, term: str, limit: int = 5) -> list[str]:
    return [ref.title for ref in (await wiki.search_text(term, limit)).refs]


async def test_words_that_stand_together_say_more(wiki: LocalWiki, database: Database) -> None:
    apart = f"This is a branch. {'There are many more. ' * 40} Files may be renamed."
    together = f"There are options. {'There are many more. ' * 44} So rename a branch."

    def fill(connection: object) -> None:
        for number, (title, text) in enumerate((("Apart", apart), ("Together", together)), 100):
            put(connection, prepare(title, number, text), "test")  # type: ignore[arg-type]

    await database.write(fill)
    assert await texts(wiki, "how do i rename a branch") == ["Together", "Apart"]


def test_it_is_a_wiki_source(wiki: LocalWiki) -> None:
    source: WikiSource = wiki
    assert source is wiki


async def test_fetch_gives_the_page_with_its_sections(wiki: LocalWiki) -> None:
    page = await wiki.fetch("Befunge")
    assert (page.title, page.revision, page.url) == ("Befunge", 1, "https://wiki.invalid/Befunge")
    assert [(s.heading, s.anchor, s.text) for s in page.sections] == [
        ("", "", "Befunge was created by Chris Pressey in 1993."),
        ("Instructions", "Instructions", "It has arrows."),
    ]
    assert (await wiki.health()).pages == 11


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ("brainfuck", "Brainfuck"),
        ("BRAINFUCK", "Brainfuck"),
        ("brainfuck_derivatives", "Brainfuck derivatives"),
        (" Bf ", "Brainfuck"),
        ("BrainF", "Brainfuck"),
        ("fish", "><>"),
        ("///", "///"),
        ("hq9+", "HQ9+"),
    ],
)
async def test_fetch_follows_redirects_and_forgives_case(wiki: LocalWiki, asked: str, got: str) -> None:
    assert (await wiki.fetch(asked)).title == got


@pytest.mark.parametrize("title", ["Loop A", "Dead", "Nope", "", "\0", "\ud800", "#", "x" * 100_000])
async def test_what_leads_to_no_page_is_not_found(wiki: LocalWiki, title: str) -> None:
    with pytest.raises(NotFoundError):
        await wiki.fetch(title)


async def test_a_chain_of_redirects_has_a_limit(wiki: LocalWiki, database: Database) -> None:
    def chain(connection: object) -> None:
        for number in range(20):
            item = prepare(f"Hop {number}", 1, f"#REDIRECT [[Hop {number + 1}]]")
            put(connection, item, "test")  # type: ignore[arg-type]
        put(connection, prepare("Hop 20", 1, "the end"), "test")  # type: ignore[arg-type]

    database.write_sync(chain)
    near = 20 - store.MAX_REDIRECTS
    assert (await wiki.fetch(f"Hop {near}")).title == "Hop 20"
    with pytest.raises(NotFoundError, match="leads to no page"):
        await wiki.fetch(f"Hop {near - 1}")


@pytest.mark.parametrize(
    ("title", "url"),
    [
        ("Brainfuck derivatives", "Brainfuck_derivatives"),
        ("><>", "%3E%3C%3E"),
        ("///", "///"),
        ("P''", "P%27%27"),
        ("What?#%", "What%3F%23%25"),
    ],
)
async def test_page_addresses(database: Database, title: str, url: str) -> None:
    def fill(connection: apsw.Connection) -> None:
        put(connection, prepare(title, 1, "text"), "dump:a")
        put_site(connection, "dump:a", named_site("A", "https://a.test/w/Main_Page"))

    database.write_sync(fill)
    assert (await LocalWiki(database, WikiSettings()).fetch(title)).url == f"https://a.test/w/{url}"
    own = WikiSettings(page_url="http://b.test/?t={title}")
    assert (await LocalWiki(database, own).fetch(title)).url == f"http://b.test/?t={url}"


async def test_each_page_links_to_the_wiki_that_it_is_from(database: Database) -> None:
    def fill(connection: apsw.Connection) -> None:
        for origin, site in {
            "dump:a": named_site("Mill\nwiki\u202e", "https://a.test/index.php?title=Main_Page"),
            "dump:b": named_site("Weir wiki " * 50, "https://b.test/Start"),
        }.items():
            put(connection, prepare(f"Page of {origin}", 1, "text"), origin)
            put_site(connection, origin, site)
        put(connection, prepare("Old", 1, "text"), "dump:by an older version")

    database.write_sync(fill)
    wiki = LocalWiki(database, WikiSettings())
    assert (await wiki.fetch("Page of dump:a")).url == "https://a.test/index.php?title=Page_of_dump:a"
    assert (await wiki.fetch("Page of dump:b")).url == "https://b.test/Page_of_dump:b"
    assert (await wiki.fetch("Old")).url == "https://wiki.invalid/Old"
    name = (await wiki.site()).name
    assert name.startswith("Mill wiki and Weir wiki Weir") and len(name) < 120
    assert (await wiki.health()).address == "https://a.test/index.php?title={title}"


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("https://w.test/wiki/Main_Page", "https://w.test/wiki/{title}"),
        ("https://w.test/Main_Page", "https://w.test/{title}"),
        ("https://w.test/w/index.php?title=Main_Page", "https://w.test/w/index.php?title={title}"),
        ("https://w.test", ""),
        ("https://w.test/", ""),
        ("javascript:alert(1)//x", ""),
        ("", ""),
    ],
)
def test_the_address_of_pages_follows_from_that_of_the_main_page(base: str, address: str) -> None:
    assert page_address(base) == address


@pytest.mark.parametrize(
    ("term", "first"),
    [
        ("befunge", "Befunge"),
        ("bf", "Brainfuck"),
        ("Fish", "><>"),
        ("><>", "><>"),
        ("><", "><>"),
        ("///", "///"),
        ("//", "///"),
        ("P''", "P''"),
        ("hq9", "HQ9+"),
        ("HQ9+", "HQ9+"),
        ("c", "C"),
        ("ook", "Ook!"),
        ("brainfuk", "Brainfuck"),
        ("brianfuck", "Brainfuck"),
        ("who made brainfuk", "Brainfuck"),
        ("befunge creator", "Befunge"),
        ("brainfuck's author?", "Brainfuck"),
        ("the ><> interpreter", "><>"),
        ("derivatives brainfuck", "Brainfuck derivatives"),
        ("funge", "Befunge"),
        ("unge-9", "Befunge-98"),
    ],
)
async def test_title_search_finds_first(wiki: LocalWiki, term: str, first: str) -> None:
    assert (await titles(wiki, term))[:1] == [first]


async def test_title_search_orders_by_kind_of_match_and_repeats_no_page(wiki: LocalWiki) -> None:
    refs = await wiki.search_titles("brainf", 10)
    assert [ref.title for ref in refs] == ["Brainfuck", "Brainfuck derivatives"]
    refs = await wiki.search_titles("befunge", 10)
    assert [ref.title for ref in refs] == ["Befunge", "Befunge-98"]
    scores = [ref.score for ref in refs]
    assert scores == sorted(scores, reverse=True) and scores[0] == 1.0


async def test_limits_are_kept_and_nonsense_finds_nothing(wiki: LocalWiki) -> None:
    assert len(await titles(wiki, "b", 1)) <= 1
    assert await titles(wiki, "befunge", 0) == [] == await texts(wiki, "befunge", 0)
    assert await titles(wiki, "zzzzqqq xxyyzz") == [] == await texts(wiki, "zzzzqqq xxyyzz")
    assert await titles(wiki, " ") == [] == await texts(wiki, "?!")
    assert "Loop A" not in await titles(wiki, "loop a") and "Dead" not in await titles(wiki, "dead")


async def test_text_search_prefers_pages_with_every_word(wiki: LocalWiki) -> None:
    refs = (await wiki.search_text("Chris Pressey befunge", 5)).refs
    assert refs[0].title == "Befunge" and {"Befunge-98", "><>"} <= {ref.title for ref in refs}
    assert [ref.score for ref in refs] == sorted((ref.score for ref in refs), reverse=True)
    assert await texts(wiki, "who was the creator of muller commands") == ["Brainfuck", "HQ9+"]
    assert (await texts(wiki, "naive loop"))[0] == "Brainfuck", "accents, plurals and headings count"
    assert (await texts(wiki, "it has"))[0] == "Befunge", "a term of stop words alone is searched as it is"


INJECTIONS = [
    *(
        '"',
        '""',
        '"a" OR "b"',
        "a AND",
        "NOT",
        "a NOT b",
        "NEAR(a b)",
        "title:x",
        "*",
        "a*",
        "^a",
        "{a b} : c",
    ),
    *(
        "-a",
        "+a",
        "(",
        "a)(",
        "'; DROP TABLE wiki_pages; --",
        "%",
        "_",
        "\\",
        "\0a",
        "\ud800",
        "\u0301",
        "🔥",
    ),
    *("a" * 5000, "b " * 3000),
]


@pytest.mark.parametrize("term", INJECTIONS)
async def test_no_term_is_an_operator(wiki: LocalWiki, term: str) -> None:
    await wiki.search_titles(term, 3)
    await wiki.search_text(term, 3)
    assert (await wiki.health()).pages == 11


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(['"', "AND", "OR", "NOT", "NEAR(", ")", "*", ":", "^", "befunge", " ", "'", "\0"])
    ).map("".join)
)
def test_any_term_is_searched_safely(database: Database, wiki_filled: None, term: str) -> None:
    def run(connection: apsw.Connection) -> None:
        words, trigrams = fts.words(term), fts.trigrams(fts.title_key(term))
        for items in (words, trigrams):
            if items:
                for match in (fts.all_of(items), fts.any_of(items)):
                    search.pages_by_text(connection, match, 3)
                    search.pages_by_text(connection, fts.in_title_or_heading(match), 3)
                    search.redirects_by_words(connection, match, 3)
                    search.names_by_words(connection, match, 3)
                    search.names_by_trigrams(connection, match, 3)

    database.read_sync(run)


@pytest.fixture
def wiki_filled(wiki: LocalWiki) -> None:
    """The pages are in the database."""


async def test_replacing_and_deleting_keeps_the_indexes_true(wiki: LocalWiki, database: Database) -> None:
    await database.write(lambda c: put(c, prepare("Befunge", 50, "now about zebras"), "test"))
    assert (await wiki.fetch("Befunge")).revision == 50
    assert await texts(wiki, "zebra") == ["Befunge"] and "Befunge" not in await texts(wiki, "Pressey")
    await database.write(lambda c: put(c, prepare("Befunge", 51, "#REDIRECT [[Befunge-98]]"), "test"))
    assert (await wiki.fetch("Befunge")).title == "Befunge-98"
    assert await texts(wiki, "zebra") == []
    await database.write(lambda c: put(c, prepare("Bf", 52, "a page now"), "test"))
    assert (await wiki.fetch("Bf")).title == "Bf"
    await database.write(lambda c: store.delete_title(c, "Befunge-98"))
    assert await titles(wiki, "befunge-98") == []
    for index in ("wiki_name_words", "wiki_name_trigrams", "wiki_text"):
        check = f"INSERT INTO {index} ({index}) VALUES ('integrity-check')"
        await database.write(lambda c, check=check: c.execute(check) and None)


async def test_text_search_weighs_redirects(wiki: LocalWiki, database: Database) -> None:
    def add(connection: apsw.Connection) -> None:
        put(connection, prepare("Slashalash", 1, "#REDIRECT [[///]]"), "test")
        put(connection, prepare("Slashalash manual", 1, "#REDIRECT [[///]]"), "test")
        put(connection, prepare("Slashalash nowhere", 1, "#REDIRECT [[Missing]]"), "test")

    database.write_sync(add)
    assert await texts(wiki, "slashalash") == ["///"], "the page itself never says the word"
    assert (await texts(wiki, "slashalash replacement"))[0] == "///"
    assert "///" in await texts(wiki, "slashalash letter", 2)
    assert await texts(wiki, "missing") == []


async def test_frequent_words_are_left_out_of_large_queries(
    wiki: LocalWiki, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add(connection: apsw.Connection) -> None:
        for number in range(30):
            text = f"language number {number} with a stack" + (" and a zebra" if number == 7 else "")
            put(connection, prepare(f"Made up {number}", 1, text), "test")
        put(connection, prepare("Stack language", 1, "nothing else"), "test")

    database.write_sync(add)
    monkeypatch.setattr(search, "_TEXT_ROWS", 10)
    assert database.read_sync(lambda c: search.text_words(c, ["language", "zebra", "befunge"])) == [
        "zebra",
        "befunge",
    ]
    assert (await texts(wiki, "zebra language"))[0] == "Made up 7"
    found = await texts(wiki, "stack language", 3)
    assert found[0] == "Stack language" and len(found) == 3, "titles first, then any page with the words"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Wer hat die Programmiersprache Befunge erfunden?", ["programmiersprache", "befunge", "erfunden"]),
        ("Wann wurde Befunge von Pressey erfunden", ["befunge", "pressey", "erfunden"]),
        ("Qui a créé Befunge et quand ?", ["créé", "befunge"]),
        ("¿Quién es el autor de Befunge?", ["autor", "befunge"]),
        ("Chi è l'autore di Befunge", ["l", "autore", "befunge"]),
        ("Wie heeft het eiland ontdekt", ["eiland", "ontdekt"]),
        ("quem é o autor do Befunge", ["autor", "befunge"]),
        # English, although a word or two also stand in other languages.
        ("the die hard war", ["die", "hard", "war"]),
        ("Who wrote El Dorado, the man or his son?", ["wrote", "el", "dorado", "man", "his", "son"]),
        ("is es a language", ["es", "language"]),
        ("what's Conway’s machine", ["conway", "machine"]),
        ("das ist", ["das", "ist"]),  # nothing else is left
    ],
)
def test_words_of_a_question_in_its_language(question: str, words: list[str]) -> None:
    assert fts.words(question) == words


async def test_a_question_in_the_wikis_own_language_finds_its_page(database: Database) -> None:
    def fill(connection: apsw.Connection) -> None:
        pages = {
            "Windmühle": "Die Mühle wurde 1871 von Ada Voss gebaut.",
            "Rätsel": "Wer hat die alte Mühle gebaut, und wann? Das fragt man sich in Holm oft, und keiner weiß es.",
        }
        for number, (title, text) in enumerate(pages.items(), 1):
            put(connection, prepare(title, number, text), "test")

    database.write_sync(fill)
    wiki = LocalWiki(database, WikiSettings())
    assert (await texts(wiki, "Wer hat die Mühle gebaut und wann?"))[0] == "Windmühle"


async def test_what_stands_near_is_searched_once_and_not_for_every_page(
    wiki: LocalWiki, database: Database
) -> None:
    def plan(connection: apsw.Connection) -> list[str]:
        made: list[tuple[str, apsw.Bindings | None]] = []
        connection.exec_trace = lambda _, sql, values: not made.append((sql, values))
        near = fts.near_each_other(["befunge", "created"])
        assert search.pages_by_text(connection, fts.any_of(["befunge", "created"]), 5, near)
        connection.exec_trace = None
        ((sql, values),) = made
        return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)]

    assert "MATERIALIZE near" in await database.read(plan)
