"""Page text as passages, sections that match, and the plan that fits pages into the space."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.background.draft import PageDraft, RetrievedPage, draft_pages, render_page
from gateway.ask.background.fit import Room, Show, Summarize, plan
from gateway.ask.background.sections import everything, pick_passages, pick_sections
from gateway.ask.checking.evidence import claim
from gateway.ask.text.passages import cut_long, group, text_units
from gateway.wiki.source import Page, Section
from tests.gateway.ask.helpers import BEFUNGE, page

LINES = st.sampled_from(
    [
        "Befunge is a language. It was made in 1993.",
        "The word is short and it has no full stop",
        "",
        "  9>:.1-:v",
        "a | b",
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


async def count_words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def sync_draft(made: Page, passage_tokens: int = 12, term: int = 0) -> PageDraft:
    """What ``draft_pages`` makes; its counting needs no event loop here."""
    coroutine = draft_pages([RetrievedPage(made, term)], count_words, passage_tokens)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        (draft,) = stop.value
        assert isinstance(draft, PageDraft)
        return draft
    raise AssertionError("the count must not wait")


def test_the_format() -> None:
    made = Page(
        "Befunge",
        1,
        "u",
        [
            Section("", "", 1, "Befunge was created by Chris Pressey in 1993."),
            Section("History", "History", 2, "The language was made.\n\nIt is\told."),
            Section("Countdown", "C", 2, "This program counts down to one.\n9>:.1-:v\n ^     _@"),
            Section("Loop", "L", 2, "9>v\n\n ^<"),
            Section("Short", "S", 2, "&&+.@"),
        ],
    )
    draft = sync_draft(made, 40)
    assert render_page(3, made, draft.passages) == (
        "[3] Befunge\n"
        "Befunge was created by Chris Pressey in 1993. [3]\n"
        "History: The language was made. [3]\n"
        "It is\told. [3]\n"
        "Countdown: This program counts down to one. [3]\n"
        "9>:.1-:v\n ^     _@\n[3]\n"
        "Loop:\n9>v\n\n ^<\n[3]\n"
        "Short:\n&&+.@\n[3]"
    )


def test_sentences_are_grouped_up_to_the_size() -> None:
    text = "One two three. Four five six. Seven eight nine.\n\nNew paragraph begins here."
    units = text_units(text)
    passages = group(0, [(unit, len(unit.text.split())) for unit in units], 6)
    assert [passage.text for passage in passages] == [
        "One two three. Four five six.",
        "Seven eight nine.",
        "New paragraph begins here.",
    ]
    assert [passage.first for passage in passages] == [True, False, False]


def test_a_line_is_cut_inside_only_when_it_alone_is_far_too_long() -> None:
    long = "  " + "+ " * 100
    units = text_units(f"{long}\nshort line")
    pieces = cut_long(units, [101, 2], 10)
    assert "".join(piece.text for piece, _ in pieces[:-1]) == long
    assert pieces[-1][0].text == "short line"
    assert max(len(piece.text.split()) for piece, _ in pieces) <= 10


@given(st.lists(LINES, max_size=12), st.integers(1, 60))
def test_passages_lose_nothing(lines: list[str], limit: int) -> None:
    text = "\n".join(lines)
    units = text_units(text)
    counts = [len(unit.text) for unit in units]
    passages = group(0, cut_long(units, counts, limit), limit)
    assert "".join("".join(p.text for p in passages).split()) == "".join(text.split())
    shown = [line for passage in passages if passage.verbatim for line in passage.text.split("\n")]
    for unit, count in zip(units, counts, strict=True):
        if unit.verbatim and count <= 3 * limit:
            assert unit.text in shown
    assert sum(passage.first for passage in passages) == bool(passages)


def test_sections_that_match_are_picked() -> None:
    draft = sync_draft(page("Befunge", *BEFUNGE))
    picked = pick_sections(draft, "How large is the playfield?", draft.whole - 1)
    headings = {draft.page.sections[draft.passages[i].section].heading for i in picked.passages}
    assert headings == {"", "Playfield"}
    assert picked.left_out == ("History",)
    assert not picked.cut
    nothing_matches = pick_sections(draft, "zzz", draft.head + draft.costs[0])
    assert nothing_matches.passages == (0,)


def test_a_section_too_long_is_cut_between_passages() -> None:
    draft = sync_draft(page("A", "One two three four. Five six seven eight. Nine ten eleven twelve."), 4)
    picked = pick_sections(draft, "zzz", draft.head + draft.costs[0] + draft.costs[1])
    assert picked.passages == (0, 1)
    assert picked.cut
    assert picked.left_out == ("",)


@given(PAGES, st.integers(0, 80), st.sampled_from(["history", "name of the language", "", "1993 twelve"]))
def test_what_is_picked_fits_and_the_rest_is_reported(
    sections: list[tuple[str, list[str]]], limit: int, query: str
) -> None:
    made = Page("T", 1, "u", [Section(h, h, 2, "\n".join(lines)) for h, lines in sections])
    draft = sync_draft(made)
    for picked in (pick_sections(draft, query, limit), pick_passages(draft, query, limit)):
        assert not picked.passages or picked.tokens <= limit
        assert picked.tokens == draft.head + sum(draft.costs[i] for i in picked.passages)
        missing = set(range(len(draft.passages))) - set(picked.passages)
        assert set(picked.left_out) == {made.sections[draft.passages[i].section].heading for i in missing}


@given(
    st.lists(st.tuples(PAGES, st.integers(0, 2)), max_size=6),
    st.integers(20, 200),
    st.integers(0, 200),
    st.integers(10, 60),
    st.sampled_from([0, 25, 200]),
)
def test_a_plan_never_exceeds_the_space(
    pages: list[tuple[list[tuple[str, list[str]]], int]], empty: int, used: int, least: int, words: int
) -> None:
    drafts = [
        sync_draft(Page(f"T{i}", 1, "u", [Section(h, h, 2, "\n".join(ls)) for h, ls in sections]), term=term)
        for i, (sections, term) in enumerate(sorted(pages, key=lambda pair: pair[1]))
    ]
    room = Room(empty=empty, left=max(0, empty - used), min_space=least, most_words=words)
    made = plan(drafts, ["history", "name", "befunge"], room)
    taken = sum(step.selection.tokens if isinstance(step, Show) else step.tokens for step in made.steps)
    assert taken <= room.left
    planned = [step.draft.page.title for step in made.steps] + [draft.page.title for draft in made.waiting]
    assert sorted(planned) == sorted(draft.page.title for draft in drafts)
    for step in made.steps:
        if isinstance(step, Summarize):
            assert step.words >= 20
            assert step.draft.whole > room.left or len(drafts) > 1
        elif step.how == "whole":
            assert step.selection == everything(step.draft)
        else:
            assert step.draft.whole > empty


def test_later_terms_keep_room_for_their_first_page() -> None:
    long = "Some words of a page. " * 18
    drafts = [sync_draft(page("A", long)), sync_draft(page("B", long), term=1)]
    room = Room(empty=100, left=100, min_space=10)
    made = plan(drafts, ["a", "b"], room)
    assert [step.draft.page.title for step in made.steps] == ["A", "B"]
    alone = plan(drafts[:1], ["a"], room)
    assert isinstance(alone.steps[0], Show)
    assert isinstance(made.steps[0], Summarize)
    assert made.steps[0].tokens <= 50


def test_hostile_text_costs_no_more_than_its_length() -> None:
    for text in ("." * 300_000, "foo. " + "[1" * 100_000, ". " + " " * 300_000 + "x", '."' * 100_000):
        assert text_units(text)
        assert claim(text) == claim(text)
