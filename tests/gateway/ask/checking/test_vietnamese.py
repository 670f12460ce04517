"""Vietnamese questions: words of several syllables, and the kinds of things that are asked for."""

from __future__ import annotations

import pytest

from tests.gateway.ask.checking.test_relevance import relevance
from tests.gateway.ask.helpers import page

HARBOUR = page(
    "Cảng Bến Đá",
    "Bến Đá là một cảng lâu đời, và một phần của cảng nằm trong vịnh. Cảng có 7 cầu tàu. Khoảng 40% hàng hóa là gạo. "
    "Xưởng đóng tàu của cảng nằm ở Hòn Rơm. Quan hệ với các điểm đến khác tốt. Lễ mở cảng có 2000 khách.",
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Cảng Bến Đá có bao nhiêu cầu tàu?", "Cảng có 7 cầu tàu."),
        ("Lễ mở cảng Bến Đá có bao nhiêu khách?", "Lễ mở cảng có 2000 khách."),
        ("Bao nhiêu phần trăm hàng hóa của cảng Bến Đá là gạo?", "Khoảng 40% hàng hóa là gạo."),
        ("Xưởng đóng tàu của cảng Bến Đá ở đâu?", "Xưởng đóng tàu của cảng nằm ở Hòn Rơm."),
    ],
)
def test_a_vietnamese_question_finds_a_thing_of_the_kind_that_it_asks_for(question: str, answer: str) -> None:
    asking = relevance(question, HARBOUR)
    sentences = [f"{each}." for each in HARBOUR.sections[0].text.rstrip(".").split(". ")]
    assert max(sentences, key=lambda each: asking.score(1, each)) == answer


def test_a_percentage_needs_a_part_and_an_article_is_no_number() -> None:
    asking = relevance("Bao nhiêu phần trăm cầu tàu của cảng Bến Đá bằng gỗ?", HARBOUR)
    assert asking.has_kind("Khoảng 40% hàng hóa là gạo.", 1)
    assert asking.has_kind("Một phần ba bằng gỗ.", 1)
    assert not asking.has_kind("Cảng có 7 cầu tàu.", 1)
    assert not relevance("Cảng Bến Đá có bao nhiêu cầu tàu?", HARBOUR).has_kind(
        "Bến Đá là một cảng lâu đời.", 1
    )


def test_syllables_of_other_words_count_half() -> None:
    """The page has the syllables of "quan điểm" in other words: "quan hệ", "điểm đến"."""
    asking = relevance("Quan điểm tôn giáo của ông là gì?", HARBOUR)
    assert asking.question.pairs >= {("quan", "điểm"), ("tôn", "giáo")}
    assert not asking.certain
    assert not relevance("Which port has 7 piers?", HARBOUR).question.pairs
