"""The citation check."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.background.draft import RetrievedPage, draft_page
from gateway.ask.checking.citations import REFUSAL, AnswerChecker, is_refusal
from gateway.ask.checking.evidence import Evidence
from gateway.ask.retrieve import distinct_titles
from gateway.wiki.source import Page
from tests.gateway.ask.helpers import BEFUNGE, PIET, page

PAGES = [
    page("Befunge", *BEFUNGE),
    page("Piet", *PIET),
    page("Code", 'Print it like this here:\n"!dlroW">:#,_@'),
    page("Case based reasoning", "(CBR) A technique that looks for previous examples."),
]


def evidence_of(pages: list[Page]) -> Evidence:
    return Evidence.of(
        (n, each, draft_page(RetrievedPage(each, ""), 12).passages) for n, each in enumerate(pages, 1)
    )


EVIDENCE = evidence_of(PAGES)


def checked_as_a_whole(text: str, evidence: Evidence) -> str:
    checker = AnswerChecker(evidence)
    checker.feed(text)
    checker.end()
    return checker.answer


@pytest.mark.parametrize(
    ("answer", "checked"),
    [
        # right as it is, wherever the marker stands
        ("Befunge was created by Chris Pressey in 1993. [1]", None),
        ("Befunge was created by Chris Pressey [1].", None),
        ("Chris Pressey, in 1993. [1]", None),
        # added, replaced, dropped
        ("Chris Pressey created Befunge.", "Chris Pressey created Befunge. [1]"),
        ("Chris Pressey created Befunge [2].", "Chris Pressey created Befunge. [1]"),
        ("Chris Pressey created Befunge [1][2].", "Chris Pressey created Befunge. [1]"),
        ("Chris Pressey created Befunge [9].", "Chris Pressey created Befunge. [1]"),
        ("Piet programs are pictures [1, 2].", "Piet programs are pictures. [2]"),
        ("[2] Piet programs are pictures.", "Piet programs are pictures. [2]"),
        ("Piet programs are pictures [[9]2].", "Piet programs are pictures. [2]"),
        # the long form of a name
        ("CBR stands for case based reasoning.", "CBR stands for case based reasoning. [4]"),
        ("CBR is short for colour bound rendering.", REFUSAL),
        # from a statement for each clause, of one page and from two pages that are both named
        (
            "Befunge was created in 1993 and its playfield is 80 columns wide.",
            "Befunge was created in 1993 and its playfield is 80 columns wide. [1]",
        ),
        (
            "Befunge is by Chris Pressey, and Piet was named by David Morgan-Mar.",
            "Befunge is by Chris Pressey, and Piet was named by David Morgan-Mar. [1][2]",
        ),
        # a sentence that nothing supports is left out, or is a remark and keeps no marker
        (
            "Chris Pressey created Befunge. [1] It won a prize in 2001. [1]",
            "Chris Pressey created Befunge. [1]",
        ),
        (
            "Chris Pressey created Befunge. [1] So I hear. [1]",
            "Chris Pressey created Befunge. [1] So I hear.",
        ),
        ("It is great. Chris Pressey created Befunge.", "It is great. Chris Pressey created Befunge. [1]"),
        # wrong number, name, or subject
        ("Befunge was created in 1994 by Chris Pressey. [1]", REFUSAL),
        ("Befunge was created by Urban Müller in 1993. [1]", REFUSAL),
        ("Malbolge was created by Chris Pressey in 1993. [1]", REFUSAL),
        ("Chris Pressey created Befunge and it there there there there there there. [1]", REFUSAL),
        # refusals and nothing at all
        ("The wiki does not say. [1]", REFUSAL),
        ("the wiki doesn't mention that, sorry", REFUSAL),
        ("", REFUSAL),
        (" \n[1]\n", REFUSAL),
        ("Yes.", REFUSAL),
        # code is on a page, or it is left out
        ('```\n"!dlroW">:#,_@\n[7\n```', None),
        ('```\n"!dlroW">:#,_@\na[7]\n```', '```\n"!dlroW">:#,_@\n```'),
        ("```cpp\n#include <iostream>\n{\n}\n```\nBefunge has 25 rows.", "Befunge has 25 rows. [1]"),
        (
            "Chris Pressey created Befunge.\ncout << x << endl;\nint main() {",
            "Chris Pressey created Befunge. [1]",
        ),
        ("Befunge has 25 rows: `a[7]`.", REFUSAL),
        ("Befunge has 25 rows, and `Pressey` is on its page.", REFUSAL),
        ("`Befunge` has 25 rows.", "`Befunge` has 25 rows. [1]"),
        # a name is not cut
        ("Befunge was created by Chris Pressey, by C.", REFUSAL),
    ],
)
def test_answers(answer: str, checked: str | None) -> None:
    assert checked_as_a_whole(answer, EVIDENCE) == (answer if checked is None else checked)


PRIZES = page(
    "Ann Lee",
    "Ann Lee is a writer. In 2008, she moved to Rome. Her rival Bo Ray won the Golden Rose.",
    (
        "Prizes",
        "Ann Lee won the Silver Pen in 2011.\n\nYear | Prize | Work\n2011 | Silver Pen | The Sea\n"
        "2013 | Red Hat | Sand",
    ),
    ("Works", "Work | Pages\nThe Sea | 210\nSand | 3"),
)


TOOLS = [
    page("fmt", "It fills lines."),
    page("pr", "The default width of a line is 72."),
    page("HQ9+", "It was made by Cliff Biffle."),
]


@pytest.mark.parametrize(
    ("answer", "question", "supported"),
    [
        ("Ann Lee won the Silver Pen in 2011.", "", True),
        ("She won the Silver Pen in 2011.", "", True),
        ("In 2008, she moved to Rome.", "Where did she move?", True),
        ("In 2011.", "When did Ann Lee win the Silver Pen?", True),
        ("Sand has 3 pages.", "", True),
        ("The answer is: 3", "How many pages has Sand?", True),
        ("The Silver Pen.", "Which prize did Ann Lee win in 2011?", True),
        # name, number and relation come from different statements
        ("In 2008, Ann Lee won the Golden Rose.", "", False),
        ("In 2008, Ann Lee won the Silver Pen.", "", False),
        ("Bo Ray moved to Rome in 2008.", "", False),
        ("Ann Lee moved to Rome in 2011.", "", False),
        ("Ann Lee wrote the Silver Pen.", "", False),
        ("The Sea has 3 pages.", "", False),
        ("HQ9 was made by Cliff Biffle.", "", True),
        # the question again
        ("Question: when did Ann Lee win the Silver Pen.", "When did Ann Lee win the Silver Pen?", False),
        # about another page of the prompt
        ("The default width of fmt is 72.", "", False),
        ("The default width of pr is 72.", "", True),
        ("72.", "What is the default width of fmt?", False),
        # words that no statement has, a quoted phrase that is not there, two rows in one
        ("Ann Lee won the golden, round, heavy and rare Silver Pen in 2011.", "", False),
        ('Ann Lee won the "Pen of Silver" in 2011.', "", False),
        ('Ann Lee won the Silver Pen in 2011, and Bo Ray won the "Rose of Gold".', "", False),
        ("Prize | The Sea", "Which prize did Ann Lee win?", False),
        # a name that the question has, or does not ask for; half of the words
        ("The answer is: the Silver Pen", "Who won the Silver Pen?", False),
        ("Ann Lee is a baker.", "", False),
        ("Bo Ray", "Who is Ann Lee?", False),
        # a number without what it counts
        ("The answer is: 3", "", False),
        ("The answer is: 3", "How many prizes did Ann Lee win?", False),
        ("3", "How many rivals has Ann Lee?", False),
        # the header of a table
        ("Year | Prize | Work", "Which prize did Ann Lee win?", False),
        ("Work Pages", "How many pages has The Sea?", False),
    ],
)
def test_name_number_and_relation_stand_together(answer: str, question: str, supported: bool) -> None:
    checker = AnswerChecker(evidence_of([PRIZES, *TOOLS]), question)
    shown = checker.feed(answer) + checker.end()
    assert (shown in [f"{answer} [{n}]" for n in (1, 3, 4)]) == supported, shown
    assert supported or shown == REFUSAL or shown.startswith('The page "')


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        # only the first of several bare names can be the answer
        ("Chris Pressey\n\nCurtis Coleman\n", "Chris Pressey [1]"),
        # and it is a person, if one is asked for
        ("In 1993\n\nChris Pressey\n", "Chris Pressey [1]"),
        # a beginning without an answer
        (
            "Chris Pressey created Befunge.\nThe answer is: The answer is:\n",
            "Chris Pressey created Befunge. [1]",
        ),
        # headings and rows of the prompt
        ("Befunge\nChris Pressey created Befunge.\nPlayfield | Rows\n", "Chris Pressey created Befunge. [1]"),
        ("Chris Pressey created Befunge.\nName of it:\n", "Chris Pressey created Befunge. [1]"),
        # the prompt, once more
        (
            "Chris Pressey created Befunge.\n\nQuestion: Who created Befunge?\n\nBefunge has 25 rows.",
            "Chris Pressey created Befunge. [1]",
        ),
        # a sentence about something else stays only if no better one comes
        ("It has 25 rows. Chris Pressey created Befunge.", "Chris Pressey created Befunge. [1]"),
        (
            "It has 25 rows.",
            'The page "Befunge" says: Befunge is a two-dimensional language created by Chris Pressey in 1993. [1]',
        ),
    ],
)
def test_only_what_answers_is_shown(answer: str, shown: str) -> None:
    checker = AnswerChecker(EVIDENCE, "Who created Befunge?")
    assert checker.feed(answer) + checker.end() == shown == checker.answer


def test_repetitions_are_cut() -> None:
    fact = "Chris Pressey created Befunge."
    checker = AnswerChecker(EVIDENCE)
    shown = checker.feed(f"{fact} Piet programs are pictures. {fact} [2] piet programs are pictures! ")
    assert not checker.looping
    shown += checker.feed(f"1. {fact} And so on")
    assert checker.looping
    shown += checker.end(cut=True)
    assert shown == f"{fact} [1] Piet programs are pictures. [2]"
    assert len(checker.repeated) == 3
    for loop in ("[4]\n", "Syntax: [3]\n", "- 14\n"):
        checker = AnswerChecker(EVIDENCE)
        checker.feed(f"{fact}\n{loop * 4}")
        assert not checker.looping
        checker.feed(loop * 4)
        assert checker.looping
    babble = AnswerChecker(EVIDENCE)
    babble.feed(f"{fact} It is very very very very very very")
    assert babble.looping
    # Lines of code may be equal.
    code = '```\n"!dlroW">:#,_@\nx\nx\nx\nx\nx\nx\n```'
    assert checked_as_a_whole(code, EVIDENCE) == code


def test_layout_is_kept() -> None:
    answer = "- Chris Pressey created Befunge.\n- It has 25 rows.\n\nThat is all."
    assert checked_as_a_whole(answer, EVIDENCE) == (
        "- Chris Pressey created Befunge. [1]\n- It has 25 rows. [1]\n\nThat is all."
    )


def test_what_is_reported() -> None:
    checker = AnswerChecker(EVIDENCE)
    shown = checker.feed("Many people adore it. The playfield has 80 columns and 25 rows [2]. ")
    shown += checker.feed("It is loved by nobody")
    shown += checker.end(cut=True)
    assert shown == checker.answer
    assert (
        shown == "Many people adore it. The playfield has 80 columns and 25 rows. [1] It is loved by nobody…"
    )
    assert checker.unsupported == ["Many people adore it.", "It is loved by nobody…"]
    assert checker.corrected == 1
    assert EVIDENCE.passages[0].section == 0
    assert PAGES[0].sections[checker.cited[1].section].heading == "Playfield"


def test_nothing_is_shown_before_something_is_supported() -> None:
    checker = AnswerChecker(EVIDENCE)
    assert checker.feed("I made this up. And this. ") == ""
    assert checker.feed("Piet programs are pictures. [2] So") == (
        "I made this up. And this. Piet programs are pictures. [2]"
    )


def test_refusals_are_recognised() -> None:
    for text in (
        REFUSAL,
        "Sorry, the background does not contain the answer.",
        "The wiki doesn’t mention its author.",
        "The answer to the question about the author is not provided. [1]",
        "There is no information about its author.",
        "I don't know.",
    ):
        assert is_refusal(text)
    assert not is_refusal("The wiki was created in 2005.")
    assert not is_refusal("Befunge does not contain loops.")
    assert not is_refusal("The answer is 42.")
    assert not is_refusal("There is no loop in Befunge.")


NAMES = ["Befunge", "Chris", "Pressey", "1993", "Piet", "Malbolge", "42", "pictures", "programs"]
MARKERS = ["[1]", "[2]", "[3]", "[4]", "[0]", "[1, 9]"]
WORDS = st.sampled_from(
    [*NAMES, *MARKERS, "was", "created", "by", "in", "are", "The", "wiki", "does", "not", "say"]
)
SENTENCES = st.builds(
    lambda words, end: " ".join(words) + end,
    st.lists(WORDS, min_size=1, max_size=12),
    st.sampled_from([".", ". [1]", " [2].", "!", ". [7]", "", "\n"]),
)


@given(st.lists(SENTENCES, max_size=5))
def test_markers_are_in_range_and_checking_twice_changes_nothing(parts: list[str]) -> None:
    checked = checked_as_a_whole(" ".join(parts), EVIDENCE)
    assert {int(n) for n in re.findall(r"\[(\d+)\]", checked)} <= {1, 2, 3}
    assert checked_as_a_whole(checked, EVIDENCE) == checked
    assert checked


@given(st.text(alphabet=st.sampled_from("[]0123 ,.!\n\tBefunge1993Chris…\"'(){}"), max_size=80))
def test_any_text_is_checked(text: str) -> None:
    checked = checked_as_a_whole(text, EVIDENCE)
    for found in re.findall(r"\[[ \t]*([0-9, \t]+)\]", checked):
        assert {int(n) for n in re.findall("[0-9]+", found)} <= {1, 2, 3}


@given(st.text(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_how_the_text_arrives_does_not_matter(text: str, cuts: list[int]) -> None:
    text += " Chris Pressey created Befunge in 1993 [2]. More?"
    checker = AnswerChecker(EVIDENCE)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = "".join(checker.feed(text[a:b]) for a, b in pairwise(edges)) + checker.end()
    assert shown == checker.answer == checked_as_a_whole(text, EVIDENCE)


def test_an_answer_behind_a_heading_that_is_a_question_must_stand_below_it() -> None:
    house = page(
        "House",
        "",
        ("Where is it?", "Behind the old sawmill."),
        ("Are there showers?", "Four showers, warm."),
    )
    evidence = evidence_of([house])
    assert checked_as_a_whole("Are there showers?: Behind the old sawmill.", evidence) == REFUSAL
    right = "Are there showers?: Four showers, warm."
    assert checked_as_a_whole(right, evidence) == "Are there showers? Four showers, warm. [1]"


def test_titles_lose_the_words_that_all_of_them_have() -> None:
    titles = ["Trailer FAQ", "Gym FAQ", "Board and lodging FAQ"]
    assert distinct_titles(titles) == dict(zip(titles, ["Trailer", "Gym", "Board and lodging"], strict=True))
    assert (
        distinct_titles(titles[:2])
        == {}
        == distinct_titles([*titles, "FAQ"])
        == distinct_titles(["A", "B", "C"])
    )
