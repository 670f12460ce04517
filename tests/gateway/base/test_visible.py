"""What nobody sees is taken out of text for people, and escaped in JSON."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.visible import escaped, visible

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
INVISIBLE = (
    "\x00\x07\x08\x1b\x7f\x9b\xad\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\u3164\ufeff\ud800\U000e0041"
)


def seen(character: str) -> bool:
    return character in "\t\n\u200c\u200d" or (
        unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        and unicodedata.bidirectional(character) not in BIDI
        and character not in INVISIBLE
    )


@given(st.text(st.characters() | st.sampled_from(INVISIBLE + "\r\n\t\u2028\x85")))
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    assert all(map(seen, shown))
    assert visible(shown) == shown


@given(
    st.text(
        st.characters(exclude_categories=["Cs"]) | st.sampled_from(INVISIBLE.replace("\ud800", "") + "\r\n")
    )
)
def test_json_with_escapes_means_the_same(text: str) -> None:
    document = escaped(json.dumps([text], ensure_ascii=False))
    assert json.loads(document) == [text]
    assert all(map(seen, document))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07plain", "]0;titleplain"),
        ("\u202eelpmaxe\u202c", "elpmaxe"),
        ("over\rwritten\r\nnext\x85line\u2028here", "over written\nnext line here"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("👩\u200d🔬 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 ❤\ufe0f e\u0301", None),
    ],
)
def test_examples(text: str, shown: str | None) -> None:
    assert visible(text) == (text if shown is None else shown)
