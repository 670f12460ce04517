"""Questions to manuals and rule books, as people type them: what must be, tables, counts, words that tell little."""

from __future__ import annotations

import pytest

from gateway.ask.checking.evidence import Statement
from gateway.ask.checking.excerpts import quotable
from gateway.wiki.source import Page
from tests.gateway.ask.checking.test_relevance import LAMP, SALT, relevance
from tests.gateway.ask.checking.test_unseen import answers, said
from tests.gateway.ask.helpers import page

KEYS = page(
    "Vaults",
    "One map puts ten keys and the Orb of Wax into a single vault. Entering the Halls of Wax is only possible "
    "for players who have at least three keys of Wax.",
)
MACHINES = page(
    "Hardware",
    "",
    (
        "Sizes",
        "Kind | Memory | Disk\nDesktop |  | \nNo desktop | 256 megabytes | 2 gigabytes\n"
        "With desktop | 512 megabytes | 4 gigabytes",
    ),
)
DISKS = page(
    "Disks",
    "By setting one of your main slots aside, you can divide the rest. A disk has 4 main slots and a label.",
)
FAITH = page(
    "Faith",
    "Depending on the trade, some players start out with a faith.\n\n"
    "To start with a faith, choose the trade of Priest, Grey Monk or Hermit.",
)
UPSTREAM = page("Upstream", "Free software helps others. Sometimes the cost to a carver is not worth it.")
ENTRY = page("Entry", "Entry to the carvers' yard is free on Mondays.")
AVERAGE = page("Labels", "The average reader sees a label.")
CRATES = page(
    "Yard crates",
    *(("" if not n else (f"Kind {n}", f"A carver makes {n} crates of oak.")) for n in range(20)),
)
HEIGHTS = page("Levels", "Players begin at level 1; the highest possible level is 27.")
DRINKS = page("Potions", "Potions can be quaffed (drunk) with the q key.")


@pytest.mark.parametrize(
    ("question", "pages", "quoted"),
    [
        ("how many keys do i need to get into wax", KEYS, "at least three keys"),
        ("how much memory do i need for a desktop", MACHINES, "With desktop | 512 megabytes"),
        ("how much memory do i need with no desktop", MACHINES, "No desktop | 256 megabytes"),
        ("how many main slots can i have", DISKS, "4 main slots"),
        ("what is the max level", HEIGHTS, "27"),
        ("how do i drink a potion", DRINKS, "with the q key"),
        ("which trades start with a faith", FAITH, "Priest, Grey Monk or Hermit"),
    ],
)
def test_what_is_quoted_of_a_manual(question: str, pages: Page, quoted: str) -> None:
    found = relevance(question, pages, LAMP, SALT)
    assert answers(found)
    assert quoted in said(found)


def test_a_row_with_one_cell_is_no_answer() -> None:
    rows = [
        Statement(1, 0, frozenset(), frozenset(), text, "table") for text in ("Desktop |  | ", "| | a sign")
    ]
    assert [quotable([row], 0, 1) for row in rows] == [False, True]


def test_free_software_is_no_price() -> None:
    assert not answers(relevance("how much does a carver cost", UPSTREAM, LAMP, SALT))
    assert "free on Mondays" in said(relevance("how much does entry cost", ENTRY, LAMP, SALT))


def test_the_word_that_tells_most_must_be_there() -> None:
    found = relevance("how many crates does one carver make on average", CRATES, AVERAGE, LAMP)
    assert not answers(found)
