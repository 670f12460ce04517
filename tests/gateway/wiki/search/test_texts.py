"""The order of pages found by their text."""

from __future__ import annotations

from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki


async def test_a_long_page_with_all_words_somewhere_gives_way(database: Database) -> None:
    filler = "It goes on about many other matters. " * 60
    rambling = filler.join(("Kettles exit.", "The status is off.", "A code helps.", "Zorps are missing.", ""))
    pages = {"Rambling": rambling, "Zorp status": "The exit status of a zorp is 127 if it is missing."}

    pages |= {f"Page {number}": f"Nothing like it, number {number}." for number in range(10)}

    def fill(connection: object) -> None:
        for number, (title, text) in enumerate(pages.items(), 100):
            put(connection, prepare(title, number, text), "test")  # type: ignore[arg-type]

    await database.write(fill)
    found = await LocalWiki(database, WikiSettings()).search_text("exit status code of a missing zorp", 5)
    assert [ref.title for ref in found.refs] == ["Zorp status", "Rambling"]
