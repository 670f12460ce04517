"""Questions that name only what is new in them."""

from __future__ import annotations

import pytest

from gateway.memory.answers.ellipsis import whole_question


@pytest.mark.parametrize(
    ("earlier", "asked", "whole"),
    [
        (["where does Alex live?"], "and Tom?", "where does Tom live?"),
        (["where does Alex live?"], "and tom", "where does Tom live?"),
        (["where does Alex live?", "and Tom?"], "what about Ann?", "where does Ann live?"),
        (["how old is my sister?"], "And my brother?", "how old is my brother?"),
        (["what's my cat's name?"], "and my dog's name?", "what's my dog's name?"),
        (["what's my sister's name?"], "and my brother?", "what's my brother's name?"),
        (["where do we meet?"], "when?", "when do we meet?"),
        (["bố tôi tên gì?"], "còn mẹ tôi thì sao?", "mẹ tôi tên gì?"),
    ],
)
def test_the_question_before_is_asked_of_another(earlier: list[str], asked: str, whole: str) -> None:
    assert whole_question(asked, earlier) == whole


@pytest.mark.parametrize(
    ("earlier", "asked"),
    [
        ([], "and Tom?"),
        (["how old is my sister?"], "what about her?"),
        (["how old is Tom?"], "and you?"),
        (["does Tom know Alex?"], "and Ann?"),
        (["I like tea"], "and coffee?"),
        (["I like tea"], "when?"),
        (["Stand on it, Tom."], "and Ann?"),
        (["where do we meet?"], "why?"),
        (["where does Alex live?"], "and tell me about the weather"),
        (["where does Alex live?"], "and " + "Tom " * 20),
    ],
)
def test_what_may_mean_something_else_stays(earlier: list[str], asked: str) -> None:
    assert whole_question(asked, earlier) == asked
