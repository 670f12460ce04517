"""From model output, however bad, to search terms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.limits import effective_limits
from gateway.ask.terms import choose_terms, key_terms, occurs_in, parse_terms
from gateway.base.errors import ConfigurationError
from gateway.config.settings import AskSettings
from gateway.inference.interface import ModelInfo
from gateway.models.catalog import FlowDefaults


@pytest.mark.parametrize(
    ("output", "terms"),
    [
        ('["Befunge", "Piet"]', ["Befunge", "Piet"]),
        (' ["a\\"b"]\n', ['a"b']),
        ('["Befunge", "Pie', ["Befunge"]),
        ('["x\\ud83d"]', ["x\ud83d"]),
        ("", []),
        ("[1, 2]", []),
    ],
)
def test_parsing(output: str, terms: list[str]) -> None:
    assert parse_terms(output) == terms


@pytest.mark.parametrize(
    ("proposed", "question", "expected"),
    [
        (["Befunge"], "who made befunge?", ["Befunge"]),
        (["  Befunge\n", "BEFUNGE", "x", "y" * 65], "befunge?", ["Befunge"]),
        (["a b", "c d", "Piet", "Befunge"], "Piet or Befunge?", ["Piet", "Befunge", "a b"]),
        (["><>"], "What is ><>?", ["><>"]),
        (["fun"], "is befunge easy?", ["fun", "befunge easy"]),
        (["Whitespace", "Tab", "Blank"], "which use spaces?", ["Whitespace", "Tab", "use spaces"]),
    ],
)
def test_choosing(proposed: list[str], question: str, expected: list[str]) -> None:
    assert choose_terms(proposed, question).terms == expected


def test_key_words_help_out() -> None:
    terms = choose_terms(["x", ""], "Who created the language Befunge-93, and why?")
    assert terms.source == "key words of the question"
    assert terms.terms == ["Befunge-93", "created language"]
    assert key_terms("Did Urban Müller or Chris Pressey make HQ9+ first?") == [
        "Urban Müller",
        "Chris Pressey",
        "HQ9+",
    ]
    assert key_terms("what is it?") == []
    # A capital at the beginning is no name by itself.
    assert key_terms("Prove that Piet works. Colours of Piet?") == ["Piet", "Prove works Colours"]
    assert key_terms("Urban Müller wrote what?") == ["Urban Müller", "wrote"]
    assert choose_terms(["zzz"], "what is Piet").source == "model and key words of the question"


def test_whole_words_only() -> None:
    assert occurs_in("Turing  complete", "is it turing complete?")
    assert not occurs_in("fun", "befunge")
    assert not occurs_in(" ", "a b")


@given(st.lists(st.text()), st.text())
def test_terms_are_always_in_range(proposed: list[str], question: str) -> None:
    terms = choose_terms(proposed, question).terms
    assert len(terms) <= 3
    assert len({term.casefold() for term in terms}) == len(terms)
    assert all(2 <= len(term) <= 64 and term == term.strip() for term in terms)
    inside = [occurs_in(term, question) for term in choose_terms(proposed, question).terms]
    usable = [term for term in proposed if occurs_in(term, question) and 2 <= len(term.strip()) <= 64]
    if usable and all(term.isprintable() for term in usable):
        assert inside == sorted(inside, reverse=True)


@given(st.text())
def test_parsing_never_fails(output: str) -> None:
    assert all(isinstance(term, str) for term in parse_terms(output))


def limits(context: int, defaults: FlowDefaults | None = None, **settings: Any) -> tuple[int, int]:
    found = effective_limits(AskSettings(**settings), defaults or FlowDefaults(), context)
    return found.prompt, found.answer


def test_limits() -> None:
    catalog = FlowDefaults(prompt_tokens=3072, answer_tokens=1024)
    assert limits(4096) == (3072, 1024)
    assert limits(40960) == (30720, 1024)
    assert limits(12288, catalog) == (3072, 1024)
    assert limits(2048, catalog) == (1536, 512)
    assert limits(4096, catalog, prompt_tokens=4000) == (4000, 96)
    assert limits(4096, catalog, answer_tokens=2000) == (2096, 2000)
    assert limits(4096, catalog, prompt_tokens=200, answer_tokens=50) == (200, 50)
    assert ModelInfo(name="m", n_ctx=8192, n_ctx_train=2048).context == 2048
    assert ModelInfo(name="m", n_ctx=8192, n_ctx_train=0).context == 8192
    for settings in (
        {"prompt_tokens": 4000, "answer_tokens": 200},
        {"prompt_tokens": 4096},
        {"prompt_tokens": 150, "min_space_tokens": 100},
    ):
        with pytest.raises(ConfigurationError, match="tokens"):
            limits(4096, catalog, **settings)


@given(st.integers(200, 100_000), st.integers(0, 50_000), st.integers(0, 50_000))
def test_limits_fit_the_context(context: int, prompt: int, answer: int) -> None:
    found = (
        limits(context, FlowDefaults(prompt_tokens=prompt, answer_tokens=answer), min_space_tokens=1)
        if (prompt == 0 or prompt >= 65) and (answer == 0 or answer >= 16)
        else (64, 16)
    )
    assert sum(found) <= context
