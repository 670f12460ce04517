"""A message in a language that the model does not speak."""

from __future__ import annotations

import pytest

from gateway.memory.answers.unspoken import UNSPOKEN, unspoken
from gateway.models.catalog import Catalog


@pytest.mark.parametrize(
    "text",
    [
        "xin chào",
        "bạn là ai?",
        "hôm nay tôi hơi buồn",
        "Kể cho mình nghe một câu chuyện vui đi",
        "được không?",
    ],
)
def test_a_model_for_english_says_that_it_speaks_no_vietnamese(text: str) -> None:
    assert unspoken(["en"], text) == UNSPOKEN
    assert unspoken(["en", "vi"], text) == unspoken([], text) == ""


@pytest.mark.parametrize(
    "text",
    ["hi", "no, an ant can do", "what does 'xin chào' mean?", "My friend Nguyễn Văn An is here", "À bientôt, mon ami",
     "¿Cómo te llamas?", "Café is nice", "你好", "", "😀", "42"],
)  # fmt: skip
def test_any_other_message_is_left_to_the_model(text: str) -> None:
    assert unspoken(["en"], text) == ""


def test_the_standard_model_converses_in_english() -> None:
    assert Catalog.load().standard.languages == ("en",)
