"""The budget of time: how much is read and written, what is not begun, and what the reply says of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.budget import (
    LEAST_PAGE_TOKENS,
    AnswerLength,
    QuestionClock,
    answer_limit,
    plan_prompt,
    typical_question,
)
from gateway.ask.limits import Limits, effective_limits
from gateway.config.settings import AskSettings
from gateway.inference.interface import HostHealth
from gateway.inference.speed import Speed
from gateway.models.catalog import FlowDefaults
from tests.gateway.ask.helpers import Asked, MemoryWiki, Model, page

SLOW = Speed(60.0, 10.0)  # 2 billion parameters on a few cores
SPEEDS = st.builds(Speed, st.floats(1, 20_000), st.floats(0.2, 2000))


def limits(context: int = 8192, **settings: Any) -> Limits:
    return effective_limits(AskSettings(**settings), FlowDefaults(), context)


@given(
    speed=SPEEDS, target=st.floats(1, 300), spent=st.floats(0, 400), bare=st.integers(60, 1200),
    answer=st.integers(1, 400), context=st.integers(2048, 16_384),
)  # fmt: skip
def test_the_longest_prompt_that_is_answered_in_time(
    speed: Speed, target: float, spent: float, bare: int, answer: int, context: int
) -> None:
    most = limits(context)
    plan = plan_prompt(most, bare, speed, target=target, spent=spent, answer=answer)
    least = min(most.prompt, bare + LEAST_PAGE_TOKENS)
    assert least <= plan.tokens <= most.prompt
    assert plan.reason and plan.seconds is not None
    if plan.tokens > least:
        assert plan.seconds <= target
        assert plan.seconds == pytest.approx(spent + speed.seconds(plan.tokens, answer), abs=0.05)
    if plan.tokens < most.prompt:
        assert spent + speed.seconds(plan.tokens + 1, answer) > 0.9 * target, "one token more is too many"
        assert f"{target:g}" in plan.reason
    slower = plan_prompt(most, bare, speed.shared(2), target=target, spent=spent, answer=answer)
    assert slower.tokens <= plan.tokens


@given(speed=SPEEDS, target=st.floats(1, 300), spent=st.floats(0, 400), prompt=st.integers(64, 8192))
def test_an_answer_ends_soon_after_its_time(speed: Speed, target: float, spent: float, prompt: int) -> None:
    most = limits()
    longest = answer_limit(most, prompt, speed, target=target, spent=spent)
    assert 64 <= longest <= most.answer
    if longest > 64:
        assert spent + speed.seconds(prompt, longest) <= 1.25 * target
    assert answer_limit(limits(answer_tokens=500), prompt, speed, target=target, spent=spent) == 500


@pytest.mark.parametrize(
    ("settings", "speed", "tokens", "reason"),
    [
        ({"prompt_tokens": 3000}, SLOW, 3000, "ask.prompt_tokens is 3000"),
        ({"target_seconds": 0.0}, SLOW, 6144, "ask.target_seconds is 0, so time sets no limit"),
        ({}, None, 6144, "the model's speed here is not known yet"),
        ({}, Speed(9000.0, 500.0), 6144, "what the model's context allows"),
        ({}, SLOW, 503, "answered within ask.target_seconds (20 s) at 60 tokens/s read and 10 written"),
        ({}, Speed(10.0, 2.0), 400, "the least for a cited answer: at 10 tokens/s read and 2 written"),
    ],
)
def test_every_budget_has_its_reason(
    settings: dict[str, Any], speed: Speed | None, tokens: int, reason: str
) -> None:
    most = limits(**settings)
    target = settings.get("target_seconds", 20.0)
    plan = plan_prompt(most, 100, speed, target=target, spent=0.0, answer=80)
    assert plan.tokens == tokens
    assert reason in plan.reason
    assert (plan.seconds is None) == (speed is None)


def test_the_catalog_bounds_a_fast_model() -> None:
    most = effective_limits(AskSettings(), FlowDefaults(prompt_tokens=400, answer_tokens=128), 8192)
    plan = typical_question(most, Speed(9000.0, 500.0), 20.0)
    assert (plan.tokens, plan.reason) == (400, "the catalog's limit for this model")


def test_the_length_of_answers_is_learned() -> None:
    length = AnswerLength()
    assert length.expected(limits()) == 60
    for _ in range(15):
        length.add(200)
        length.add(200)
        length.add(1024)
    assert length.expected(limits()) == 200
    assert length.expected(limits(answer_tokens=50)) == 50


def test_what_would_not_end_in_time_is_refused() -> None:
    now = 0.0
    clock = QuestionClock(20.0, lambda: HostHealth(state="ready", speed=Speed(100.0, 10.0)), lambda: now)
    clock.start()
    now = 3.0
    clock.reserve(500, 40)
    # 20 s, less 3 s spent, and 5.3 + 4.5 s for the answer
    assert "it would take about 9 s, and 7 s of ask.target_seconds (20 s) are left" in clock.refusal(400, 40)
    assert clock.refusal(200, 20) == ""
    assert "and 3 s of" in clock.refusal(300, 10), "the time of the one that was begun is set aside"
    later = QuestionClock(0.0, lambda: HostHealth(state="ready", speed=Speed(1.0, 1.0)))
    assert later.refusal(10_000, 1000) == "", "no limit by time"


def test_requests_beside_it_slow_a_question_down() -> None:
    def planned(running: int) -> int:
        health = HostHealth(state="ready", speed=Speed(200.0, 40.0), foreground=running)
        return QuestionClock(20.0, lambda: health, lambda: 0.0).plan(limits(), 100, 20).tokens

    assert planned(0) > planned(1) > planned(9) == 400


# ------------------------------------------------------------------------------------------ through the flow

FACTS = " ".join(f"The fact number {n} of Befunge is word{n}." for n in range(250))
QUESTION = "Which facts of Befunge are there?"
UNSURE = "Which facts of Befunge are there that nobody tells its younger users?"


def timed(model: Model, speed: Speed) -> Model:
    model.state = HostHealth(state="ready", speed=speed)
    return model


def long_pages() -> MemoryWiki:
    return MemoryWiki(page("Befunge", FACTS), page("Befunge 2", FACTS.replace("word", "term")))


async def test_a_slow_model_reads_less_and_says_why() -> None:
    asked = Asked(
        timed(Model(["Befunge"], "The fact number 3 is word3."), SLOW), long_pages(), passage_tokens=40
    )
    result = await asked.ask(QUESTION)
    budget = result.budget
    assert LEAST_PAGE_TOKENS < budget.prompt_tokens <= budget.prompt_limit < 700
    assert "ask.target_seconds (20 s) at 60 tokens/s read and 10 written" in budget.reason
    assert budget.target_seconds == 20.0
    assert budget.estimated_seconds is not None and 15.0 < budget.estimated_seconds <= 20.0
    assert asked.stages("answer")[0]["seconds"] > 5.0
    unlimited = await Asked(Model(["Befunge"], "word3"), long_pages(), target_seconds=0.0).ask(QUESTION)
    assert unlimited.budget.prompt_tokens > 2000


async def test_a_setting_overrides_time() -> None:
    asked = Asked(timed(Model(["Befunge"], "word3"), SLOW), long_pages(), prompt_tokens=2000)
    result = await asked.ask(QUESTION)
    assert result.budget.prompt_limit == 2000
    assert result.budget.reason == "ask.prompt_tokens is 2000"
    assert result.budget.prompt_tokens > 1000


async def test_summaries_that_would_be_late_are_not_begun() -> None:
    """The same question with a model that has time for them."""
    for speed, late in ((SLOW, True), (Speed(5000.0, 500.0), False)):
        fact = "The fact number 3 of Befunge is word3."
        model = timed(Model(["Befunge"], fact, "The fact number 150 of Befunge is word150."), speed)
        asked = Asked(model, long_pages(), prompt_tokens=380, answer_tokens=200, passage_tokens=40)
        result = await asked.ask(QUESTION)
        assert (model.prompts("compact") == []) == late
        skipped = [each.reason for each in result.skipped if each.title == "page summaries"]
        assert len(skipped) == late
        if late:
            assert "of ask.target_seconds (20 s) are left: passages are used instead" in skipped[0]


async def test_a_model_too_slow_for_terms_is_not_asked_for_them() -> None:
    model = timed(Model(["Piet"], "word3"), Speed(20.0, 3.0))
    asked = Asked(model, long_pages())
    result = await asked.ask(UNSURE)
    assert model.prompts("terms") == [] and len(model.prompts("answer")) == 1
    assert result.search_terms == []
    assert asked.records[0].pages, "the question's own words found them"
    (late,) = [each for each in result.skipped if each.title == "search terms of the model"]
    assert "of ask.target_seconds (20 s) are left" in late.reason


async def test_an_answer_that_goes_on_and_on_ends_in_time() -> None:
    def ramble(prompt: str) -> str:
        return FACTS

    asked = Asked(timed(Model(["Befunge"], ramble), SLOW), long_pages())
    result = await asked.ask(QUESTION)
    assert 64 <= result.budget.answer_tokens == result.budget.answer_limit < 300
    (late,) = [each for each in result.skipped if each.title == "the rest of the answer"]
    assert f"{result.budget.answer_limit} tokens" in late.reason
    assert "…" in result.answer[-10:]


async def test_progress_while_the_model_reads() -> None:
    model = timed(Model(["Befunge"], "word3"), SLOW)
    model.reads = [(100, 500), (300, 500)]
    asked = Asked(model, long_pages(), target_seconds=60)
    await asked.ask(UNSURE)
    terms, _, first, second = asked.stages("reading")
    assert terms["step"] == "terms"
    assert (first["step"], first["done"], first["total"]) == ("answer", 100, 500)
    assert first["seconds_left"] > second["seconds_left"] > 3.0
