"""The stemmer."""

from __future__ import annotations

import pytest

from gateway.base.stems import stem


@pytest.mark.parametrize(
    "forms",
    [
        "solder solders soldered soldering",
        "speak speaks spoke spoken speaking",
        "colour colours colored",
        "programme programs program",
        "monitor monitors monitoring",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(("one", "other"), [("https", "http"), ("news", "new"), ("flower", "flow")])
def test_words_that_look_like_forms_are_words_of_their_own(one: str, other: str) -> None:
    assert stem(one) != stem(other)
