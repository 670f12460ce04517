"""Page text as passages, their ranking across pages, and the choice of those that fill the space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.background.draft import PageDraft, RetrievedPage, draft_page, render_page
from gateway.ask.background.fit import best_lines, by_page, choose
from gateway.ask.background.rank import Ranked, rank
from gateway.ask.checking.evidence import Evidence, supporting
from gateway.ask.text.passages import Passage, cut_section, estimated_tokens, group, joined, text_units
from gateway.ask.text.words import content_words
from gateway.wiki.source import Page, Section
from tests.gateway.ask.helpers import BEFUNGE, PIET, page

LINES = st.sampled_from(
    [
        "Befunge is a language. It was made in 1993.",
        "The word is short and it has no full stop",
        "",
        "  9>:.1-:v",
        "a | b",
        "Year | Author | Title",
        "- an item of a list",
        "x" * 60,
        "one two three four five six seven eight nine ten eleven twelve thirteen",
    ]
)
PAGES = st.lists(
    st.tuples(st.sampled_from(["History", "Befunge", "Syntax", "Name"]), st.lists(LINES, max_size=6)),
    min_size=1,
    max_size=4,
)


def draft_of(made: Page, passage_tokens: int = 12) -> PageDraft:
    return draft_page(RetrievedPage(made, ""), passage_tokens)


def costs_of(drafts: list[PageDraft], ranked: list[Ranked], space: int) -> dict[str, int]:
    return {line: estimated_tokens(line) for line in best_lines(drafts, ranked, space)}


def best(question: str, *pages: Page, terms: tuple[str, ...] = ()) -> tuple[str, Passage]:
    """The best passage, with its page's title."""
    drafts = [draft_of(each, 40) for each in pages]
    first = rank(drafts, question, terms)[0]
    return drafts[first.draft].page.title, drafts[first.draft].passages[first.passage]


def test_the_format() -> None:
    made = Page(
        "Befunge",
        1,
        "u",
        [
            Section("", "", 1, "Befunge was created by Chris Pressey in 1993."),
            Section("History", "History", 2, "The language was made.\n\nIt is\told."),
            Section("Countdown", "C", 3, "This program counts down to one.\n9>:.1-:v\n ^     _@"),
            Section("Loop", "L", 2, "9>v\n\n ^<"),
            Section("Short", "S", 2, "&&+.@"),
            Section("Versions", "V", 2, "Year | Name | Author\n1993 | 93 | Pressey\n1998 | 98 | Cats Eye"),
        ],
    )
    draft = draft_of(made, 40)
    assert render_page(3, made, draft.passages) == (
        "[3] Befunge\n"
        "Befunge was created by Chris Pressey in 1993. [3]\n"
        "History: The language was made. [3]\n"
        "It is\told. [3]\n"
        "History / Countdown: This program counts down to one. [3]\n"
        "9>:.1-:v\n ^     _@\n[3]\n"
        "Loop:\n9>v\n\n ^<\n[3]\n"
        "Short:\n&&+.@\n[3]\n"
        "Versions:\nYear | Name | Author\n1993 | 93 | Pressey [3]\n"
        "1998 | 98 | Cats Eye [3]"
    )
    # Any passage carries its headings, and any row the table's header.
    assert render_page(1, made, [draft.passages[2], draft.passages[-1]]) == (
        "[1] Befunge\nHistory: It is\told. [1]\nVersions:\nYear | Name | Author\n1998 | 98 | Cats Eye [1]"
    )


def test_sentences_are_grouped_up_to_the_size() -> None:
    text = "One two three four. Five six seven eight. Nine ten.\n\nNew paragraph begins here."
    assert [joined(each) for each in group(text_units(text), 15)] == [
        "One two three four. Five six seven eight.",
        "Nine ten.",
        "New paragraph begins here.",
    ]


def test_a_list_stays_whole_unless_it_is_long() -> None:
    items = [f"- item number {n}" for n in range(30)]
    short = cut_section(0, "These are the items:\n" + "\n".join(items[:6]), 20)
    assert [passage.text.count("\n") for passage in short] == [6]
    long = cut_section(0, "\n".join(items), 20)
    assert len(long) > 3
    assert "\n".join(passage.text for passage in long) == "\n".join(items)


def test_a_long_item_and_its_paragraphs_are_sentences() -> None:
    long = "- Campaign: " + "You play many battles one after the other. " * 10 + "The level stays as it is."
    units = text_units(f"{long}\n  Winning is not everything. Save often.\n  9>:.1-:v\n- Load: Open a game.")
    assert [unit.kind for unit in units] == ["list", *["prose"] * 12, "code", "list"]
    assert units[-4].text == "Winning is not everything."
    assert joined(units).startswith(long) and "\n  Winning is not everything. Save often.\n" in joined(units)
    last = next(each for each in cut_section(0, long, 30) if "stays" in each.text)
    assert (last.term, last.text) == ("Campaign", "The level stays as it is.")


def test_the_first_row_names_columns_unless_it_is_a_key_with_its_meaning() -> None:
    table = "Date | a day, with slashes or points between its parts\nTag | a word"
    made = page("Format", table)
    evidence = Evidence.of([(1, made, cut_section(0, table, 30))])
    assert evidence.passages[1].context == frozenset(content_words("format"))


def test_a_row_of_a_table_has_its_header() -> None:
    wide = cut_section(0, "Year | Author | Entry\n1988 | Phillipps | Song\n1998 | Banks | Simulator", 40)
    assert [(p.header, p.text) for p in wide] == [
        ("Year | Author | Entry", "1988 | Phillipps | Song"),
        ("Year | Author | Entry", "1998 | Banks | Simulator"),
    ]
    # Two columns may be names and values without a header: the first row counts, too.
    values = cut_section(0, "Designed by | Chris Pressey\nAppeared in | 1993", 40)
    assert [p.text for p in values] == ["Designed by | Chris Pressey", "Appeared in | 1993"]


def test_a_line_is_cut_inside_only_when_it_alone_is_far_too_long() -> None:
    long = "  " + "+ " * 200
    pieces = cut_section(0, f"{long}\nshort line", 10)
    assert "".join(piece.text for piece in pieces).replace("\n", "") == f"{long}short line"
    assert max(estimated_tokens(piece.text) for piece in pieces) <= 12


@given(st.lists(LINES, max_size=12), st.integers(4, 60))
def test_passages_lose_nothing(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    passages = cut_section(0, text, limit)
    shown = "".join(f"{p.header} {p.text}" for p in passages)
    assert set("".join(text.split())) <= set(shown)
    for unit in text_units(text):
        if unit.kind != "prose" and estimated_tokens(unit.text) <= 3 * limit:
            assert unit.text in shown


def test_a_passage_counts_with_its_title_headings_and_header() -> None:
    pages = [page("Befunge", *BEFUNGE), page("Piet", *PIET)]
    assert best("How large is Befunge's playfield?", *pages) == (
        "Befunge",
        Passage(2, "The playfield is 80 columns wide and 25 rows high."),
    )
    assert best("After whom was Piet named?", *pages)[1].text.startswith("It was named by David")
    table = page(
        "Prizes", "Prizes.", ("Winners", "Year | Person | Work\n2001 | A. Bee | X\n2002 | C. Dee | Y")
    )
    assert best("Which person won in 2002?", *pages, table)[1].text == "2002 | C. Dee | Y"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When was Malbolge made?", "It appeared in 1998."),
        ("who is behind Malbolge", "It is the work of Ben Olmstead."),
        ("How many commands does Malbolge have?", "There are eight of them."),
        ("When was Mablolge made?", "It appeared in 1998."),
    ],
)
def test_what_a_question_asks_for_counts(question: str, text: str) -> None:
    others = ("It is hard to use.", "Nobody likes to write it.")
    made = page("Malbolge", "\n\n".join((*others, "It appeared in 1998.", "It is the work of Ben Olmstead.")))
    more = page("Malbolge commands", "\n\n".join((*others, "There are eight of them.")))
    assert best(question, page("Other", "Nobody knows."), made, more)[1].text == text


def test_a_term_helps_where_the_question_has_other_words() -> None:
    pages = [
        page("A", "Eine Sprache mit Bildern."),
        page("B", "Pictures are programs."),
    ]
    assert best("¿Qué es?", *pages, terms=("pictures",)) == ("B", Passage(0, "Pictures are programs."))


def test_the_nearest_section_by_meaning_gains() -> None:
    made = page("Boat", "A boat is old.", ("Making", "Planks are bent."), ("Use", "A boat floats."))
    for section, text in ((None, "A boat floats."), (1, "Planks are bent.")):
        drafts = [draft_page(RetrievedPage(made, "", section), 40)]
        first = rank(drafts, "How does one float, or build a ship?" if section is None else "Wie baut man?")[
            0
        ]
        assert drafts[0].passages[first.passage].text == text


def test_an_identifier_is_one_word() -> None:
    """Its parts say nothing by themselves: FILL_PIT is neither to fill nor a pit."""
    assert content_words("The FILL_PIT flag.") == ["fill_pit", "flag"]
    made = page("Flags", "Fill the pit and pit the fill.\n\nFILL_PIT is cleared.")
    assert best("What clears FILL_PIT?", made)[1].text == "FILL_PIT is cleared."


def test_a_symbol_by_itself_is_a_word() -> None:
    made = page("Commands", "About them.", ("List", "Sign | Meaning\n+ | Add\n# | Jump\n$ | Pop"))
    assert best("What does # do?", made)[1].text == "# | Jump"


@given(PAGES, PAGES, st.integers(0, 120), st.sampled_from(["history", "name of the language", "", "1993"]))
def test_what_is_chosen_fits(
    one: list[tuple[str, list[str]]], other: list[tuple[str, list[str]]], space: int, question: str
) -> None:
    pages = [
        Page(title, 1, "u", [Section(h, h, 2, "\n".join(lines)) for h, lines in sections])
        for title, sections in (("T", one), ("U", other))
    ]
    drafts = [draft_of(each) for each in pages]
    ranked = rank(drafts, question)
    assert sorted((r.draft, r.passage) for r in ranked) == [
        (n, i) for n, draft in enumerate(drafts) for i in range(len(draft.passages))
    ]
    assert [r.score for r in ranked] == sorted((r.score for r in ranked), reverse=True)
    chosen = choose(drafts, ranked, costs_of(drafts, ranked, space), space)
    blocks = [
        render_page(1, drafts[number].page, [drafts[number].passages[i] for i in indices])
        for number, indices in by_page(chosen)
    ]
    assert sum(map(estimated_tokens, blocks)) <= space


def test_a_long_section_is_cut_by_match_and_not_from_the_top() -> None:
    made = page(
        "Befunge", " ".join(f"Filler number {n} is here." for n in range(200)) + " The author likes tea."
    )
    drafts = [draft_of(made)]
    ranked = rank(drafts, "What does the author of Befunge like?")
    ((_, indices),) = by_page(choose(drafts, ranked, costs_of(drafts, ranked, 40), 40))
    assert "The author likes tea." in " ".join(drafts[0].passages[i].text for i in indices)


def test_hostile_text_costs_no_more_than_its_length() -> None:
    for text in (
        "." * 300_000,
        "foo. " + "[1" * 100_000,
        ". " + " " * 300_000 + "x",
        '."' * 100_000,
        "# " * 90_000,
    ):
        assert text_units(text)
        evidence = Evidence.of([(1, page("T", text), [Passage(0, text)])])
        assert not supporting(text[:1000], evidence, text[:1000]).together


def test_a_short_line_belongs_to_the_paragraph_behind_it_unless_it_is_an_example() -> None:
    option = "--strong\n\nThis option uses twice the leaves."
    assert [each.text for each in cut_section(0, option, 40)] == [option]
    example = "This long sentence shows how to run it:\n\nrun --strong\n\nThe program then prints the taste."
    assert [each.text for each in cut_section(0, example, 5)][-1] == "The program then prints the taste."
