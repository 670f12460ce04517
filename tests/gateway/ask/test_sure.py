"""Sentences that answer by the share of the question that they have, and the kinds of things that are asked for."""

from __future__ import annotations

import pytest

from gateway.ask.checking.quotation import Quotations
from tests.gateway.ask.helpers import page
from tests.gateway.ask.test_relevance import LAMP, SALT, relevance

REGATTA = page(
    "Coastal regatta",
    "The regatta of 1988 was rowed on the Alder, over nine miles and two bridges. Nine towns sent boats to it, and the "
    "newspapers wrote of nothing else for weeks.\n\nThe Kestrel crew came from Dalmere and had trained on the river "
    "all winter long, whatever the weather was. Their boat was new and light.\n\nIn the last mile they passed the "
    "favourites from Portwick with a sprint of forty strokes. A painting of it hangs in the town hall.",
)


@pytest.mark.parametrize(
    ("question", "clear"),
    [
        ("Which favourites did the Kestrel crew pass with a sprint in the last mile?", True),
        ("Which favourites did the Osprey crew pass with a sprint in the last mile?", False),
        ("What hangs in the town hall of Dalmere?", True),
        ("What hangs in the town hall of Stonham?", False),
    ],
)
def test_a_sentence_with_most_of_the_question_needs_its_names_only_in_its_section(
    question: str, clear: bool
) -> None:
    found = relevance(question, REGATTA, LAMP)
    assert [each.clear for each in found.quotes()] == [clear]
    assert not clear or (not found.hopeless and not found.doubtful)


def test_words_weigh_as_they_do_among_all_passages() -> None:
    question = "Which favourites did the Kestrel crew pass with a sprint?"
    among_all = relevance(question, REGATTA, LAMP, SALT)
    few = page("Coastal regatta", REGATTA.sections[0].text.rpartition("\n\n")[2])
    evidence = relevance(question, few)._evidence
    assert Quotations(question, evidence).weights["sprint"] < among_all.weights["sprint"]
    assert Quotations(question, evidence, (), among_all.weights).weights == among_all.weights


def test_a_sentence_in_the_middle_of_a_section_may_begin_with_they() -> None:
    text = "They passed the favourites from Portwick with a sprint of forty strokes."
    before = (
        "Nine towns sent boats to the regatta, and the Kestrel crew came from the smallest one, from Dalmere."
    )
    question = "Which favourites did the Kestrel crew pass with a sprint?"
    first = relevance(question, page("Regatta", f"{text} {before}"), tokens=20)
    later = relevance(question, page("Regatta", f"{before} {text}"), tokens=20)
    assert not any(each.clear for each in first.quotes() if each.statements[0] == text)
    assert any(each.clear for each in later.quotes() if each.statements[0] == text)


def test_a_year_counts_nothing() -> None:
    boats = page(
        "Boats", "The club bought its boats in 1988 after the fire.", ("Now", "It has 14 boats of wood.")
    )
    (quote,) = relevance("How many boats has the club?", boats).quotes()
    assert quote.statements == ("It has 14 boats of wood.",)


@pytest.mark.parametrize("told", ["$500 in cash", "12 cups of silver"])
def test_money_is_told_in_a_currency(told: str) -> None:
    prize = page("Prize", f"The winner of the regatta of 1988 gets {told}.")
    assert relevance("How much money does the winner get?", prize).has_kind(told, 1) == told.startswith("$")
