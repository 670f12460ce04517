"""The order of the pages that are read for a question."""

from __future__ import annotations

import apsw
import pytest

from gateway.ask.journal import Journal
from gateway.ask.retrieve import Retrieval
from gateway.ask.types import AskCall
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki

PAGES = {
    "Love": "Love is a strong affection for another person, and the subject of songs and of long poems.",
    "Keyboard": "A keyboard has keys with letters and is connected to a computer by a wire.",
    "Hackish": "Said of people fond of clever tricks, who type them faster than others think. They enjoy elegant code.",
    "Tricks": "#REDIRECT [[Magic]]",
    "Magic": "An art of illusion, shown on a stage with cards and hats.",
}


@pytest.fixture
def wiki(database: Database) -> LocalWiki:
    def fill(connection: apsw.Connection) -> None:
        for number, (title, text) in enumerate(PAGES.items(), 1):
            put(connection, prepare(title, number, text), "test")

    database.write_sync(fill)
    return LocalWiki(database, WikiSettings())


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Which adjective fits clever people who love elegant tricks of code at the keyboard?", "Hackish"),
        ("What is love?", "Love"),
        ("Which tricks?", "Magic"),  # named by its redirect
        ("What is a keybord?", "Keyboard"),  # misspelt, it shares no word
    ],
)
async def test_a_title_counts_by_what_it_has_of_the_question(
    wiki: LocalWiki, question: str, first: str
) -> None:
    found = await Retrieval(wiki, Journal(AskCall(id="x", question=question)), 5, 60.0).run(question)
    assert found.pages[0].page.title == first
