"""Questions that a page seems to answer: it tells of the opposite, of another year, or of what is."""

from __future__ import annotations

import pytest

from gateway.ask.checking.citations import REFUSAL, AnswerChecker
from gateway.ask.checking.opposites import opposes
from tests.gateway.ask.checking.test_relevance import LAMP, SALT, relevance
from tests.gateway.ask.checking.test_unseen import answers
from tests.gateway.ask.helpers import page

_PARAGRAPHS = (
    "The mill is a museum with a shop, where visitors buy flour, bread and honey of the valley.\n\n" * 20
)
TARN = page(
    "Lake Tarn",
    "Lake Tarn is deep and cold.\n\nIt lies between Orrin and Selby.\n\n"
    "Åsmund Brünnich drew maps of it.\n\nBrunnich is also a brand of ink.\n\n"
    f"{_PARAGRAPHS}"
    "The highest mill on the river grinds oats. In 1912 a mill was sold to the brewer Ole Brandt. "
    "Large boats carry timber across the water to the railway. The ferry was used by farmers and smiths.",
)


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("What does the highest mill on the river grind?", True),
        ("What does the lowest mill on the river grind?", False),
        ("Who was the mill sold to in 1912?", True),
        ("Who was the mill sold to in 1931?", False),
        ("What do large boats carry across the water?", True),
        ("What do small boats carry across the water?", False),
        ("What did Asmund Brunnich draw?", True),
        ("Who used the ferry?", True),
        ("Who never used the ferry?", False),
        ("Who hasn't used the ferry?", False),
        ("What do large boats carry across the water to Orrin?", False),  # a name of another paragraph
        ("What do large boats carry across the water of Lake Tarn?", True),
        ("What do large boats carry across the water of LT?", True),
    ],
)
def test_a_sentence_about_something_else_is_no_answer(question: str, right: bool) -> None:
    assert answers(relevance(question, TARN, LAMP, SALT)) is right


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Are dogs allowed in the north garden?", "Dogs are kept out of the south garden."),
        ("How old is the hall?", "The young hall is from 1990."),
        ("What is the most that one may carry?", "Visitors carry at least one bag."),
        ("What happens if the pump does not start?", "The lamp of the pump blinks."),
        ("What does most of the crew carry?", "The crew carries the least that it can."),
        ("What does not float?", "Only oak sinks."),
        ("How many guests came in 1955?", "From 1950 to 1960 there were 30 guests."),
        ("How many guests came in 1955?", "Since 1950 there were 30 guests."),
        ("Which mill is the highest, which the lowest?", "The lowest mill is at Orrin."),
    ],
)
def test_what_only_looks_like_the_opposite_may_answer(question: str, statement: str) -> None:
    assert not opposes(question, statement)


def test_a_word_without_its_prefix_is_the_opposite() -> None:
    assert opposes("Which visitors are uninvited?", "Invited visitors wait in the hall.")
    assert opposes("Which visitors are invited?", "Uninvited visitors wait in the hall.")
    assert not opposes("Which visitors are invited?", "Invited visitors and uninvited ones wait.")


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("What does the lowest mill on the river grind?", "The highest mill on the river grinds oats."),
        ("What did the ferry not carry?", "Large boats carry timber across the water to the railway."),
        ("What do boats carry to Selby?", "Large boats carry timber across the water to the railway."),
    ],
)
def test_a_models_sentence_about_something_else_does_not_stand(question: str, sentence: str) -> None:
    found = relevance(question, TARN)
    checker = AnswerChecker(found._evidence, question, among=found)
    checker.feed(sentence)
    checker.end()
    assert checker.answer == REFUSAL
