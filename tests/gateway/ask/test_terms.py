"""From model output, however bad, to search terms."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.checking.citations import REFUSAL
from gateway.ask.limits import effective_limits
from gateway.ask.terms import parse_terms, usable
from gateway.base.errors import ConfigurationError
from gateway.config.settings import AskSettings
from gateway.inference.interface import ModelInfo
from gateway.models.catalog import FlowDefaults
from tests.gateway.ask.checking.test_relevance import LAMP, SALT, asked
from tests.gateway.ask.helpers import BEFUNGE, Asked, MemoryWiki, Model, page


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
    ("proposed", "expected"),
    [
        (["  Befunge\n", "BEFUNGE", "x", "y" * 65], ["Befunge"]),
        (["a b", "c d", "Piet", "Befunge"], ["a b", "c d", "Piet"]),
        (["><>"], ["><>"]),
        ([], []),
    ],
)
def test_usable_terms(proposed: list[str], expected: list[str]) -> None:
    assert usable(proposed) == expected


@given(st.lists(st.text()))
def test_terms_are_always_in_range(proposed: list[str]) -> None:
    terms = usable(proposed)
    assert len(terms) <= 3
    assert len({term.casefold() for term in terms}) == len(terms)
    assert all(2 <= len(term) <= 64 and term == term.strip() for term in terms)


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


@pytest.mark.parametrize(
    ("setting", "name", "subject"),
    [
        ("", "Mill wiki", "Mill wiki"),
        ("water wheels", "Mill wiki", "water wheels"),
        ("", "", "various subjects"),
    ],
)
async def test_search_terms_are_for_the_wiki_that_is_asked(setting: str, name: str, subject: str) -> None:
    model = Model(terms=["Befunge"], answer="Chris Pressey created Befunge. [1]")
    wiki = MemoryWiki(page("Befunge", *BEFUNGE))
    wiki.name = name
    await Asked(model, wiki, subject=setting).ask("Who thought up the arrows of Befunge?")
    (prompt,) = model.prompts("terms")
    assert f"in a wiki about {subject}." in prompt


@pytest.mark.parametrize("small", [True, False])
async def test_terms_are_written_only_where_the_question_has_not_found_the_answer(small: bool) -> None:
    why = "search terms of the model"
    _, flow, model = await asked("Who created Lamp?", "Mia Berg created Lamp. [1]", small=small)
    assert model.prompts("terms") == []
    assert [each["reason"] for each in flow.records[0].details["skipped"] if each["title"] == why] == [
        "the question's own words have found the answer"
    ]
    _, flow, model = await asked("Which company sponsors Lamp?", REFUSAL, small=small)
    assert len(model.prompts("terms")) == 1
    assert not [each for each in flow.records[0].details["skipped"] if each["title"] == why]


async def test_nothing_is_searched_fetched_or_reported_twice_for_terms() -> None:
    wiki = MemoryWiki(LAMP, SALT)
    wiki.problem = "searched by words alone"
    flow = Asked(Model(["Salt"], REFUSAL), wiki, small=True)
    question = "Which company sponsors Lamp?"
    result = await flow.ask(question)
    assert wiki.searches.count(question) == 1
    assert [stage["term"] for stage in flow.stages("search")] == [question, "Salt"]
    assert [stage["title"] for stage in flow.stages("fetch")] == ["Lamp", "Salt"]
    assert [each.reason for each in result.skipped].count("searched by words alone") == 1
