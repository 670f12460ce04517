"""Every policy keeps its promises for any sizes, failures, clocks and speakers."""

from __future__ import annotations

import random
from datetime import datetime
from itertools import pairwise
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.base.errors import ConfigurationError
from gateway.config.settings import MemorySettings
from gateway.memory.planning.budget import make_budget
from gateway.memory.planning.planner import plan
from gateway.memory.planning.situation import rounds_of
from gateway.memory.planning.tiers import verbatim_rounds
from gateway.memory.types import ContextBudget
from gateway.store.memory.conversations import PolicyName
from tests.gateway.memory.simulation import SETTINGS, Simulation

BUDGET = make_budget(MemorySettings(), 12_288)
DAY = 86_400.0
START = 1_763_700_000.0  # some noon in November

POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)

_line = st.tuples(
    st.sampled_from(["user", "user", "assistant", "assistant", "assistant"]),
    st.one_of(st.integers(1, 300), st.integers(1, 20_000)),  # tokens
    st.one_of(st.floats(0, 600), st.floats(-2 * DAY, 40 * DAY)),  # seconds since the last line
    st.sampled_from(["Ann", "Ann", "Bé"]),
    st.sampled_from([False, False, False, False, True]),  # failed
)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=120)
@given(lines=st.lists(_line, max_size=90), seed=st.integers(0, 99), force=st.sampled_from([0, 0, 1]))
def test_nothing_is_lost_or_read_twice(policy: PolicyName, lines: list, seed: int, force: int) -> None:
    talk = Simulation(policy, BUDGET, fill=random.Random(seed).random)
    now = START
    for role, tokens, passed, speaker, failed in lines:
        now += passed
        talk.say(role, tokens, now, speaker, failed)
        talk.settle(now)
    talk.settle(now + 7200.0, force=bool(force))
    talk.check()
    _check_size(talk, policy)


def _check_size(talk: Simulation, policy: PolicyName) -> None:
    """Check that after compaction a prompt fits the context, unless it has messages that cannot shrink."""
    situation = talk.situation(START)
    stand_ins = {summary.first for summary in talk.live if summary.level == "message"}
    large = [m for m in talk.tail if not m.failed and m.tokens >= 256 and m.seq not in stand_ins]
    assert situation.total <= BUDGET.limit or not large
    if policy == "ceiling":
        kept = rounds_of(talk.tail)
        assert situation.total <= BUDGET.ceiling or len(kept) <= verbatim_rounds(
            kept, SETTINGS.verbatim_messages
        )
        spoken = [m.seq for m in talk.log if not m.failed][-SETTINGS.verbatim_messages :]
        assert set(spoken) <= {m.seq for m in talk.tail}, "one of the last messages is not verbatim"


def chat(
    talk: Simulation, lines: int, chance: random.Random, pause: float = 60.0, mean: float = 60.0
) -> list[int]:
    """An ordinary conversation; returns the size of the prompt at each reply."""
    now, totals = START, []
    for number in range(lines):
        now += chance.expovariate(1 / pause)
        talk.say("assistant" if number % 2 else "user", 1 + int(chance.expovariate(1 / mean)), now)
        if number % 2:
            totals.append(talk.situation(now).total)
            talk.settle(now)
    return totals


def test_past_days_take_the_room_that_today_does_not_need() -> None:
    """A talk of some messages a day is compacted into ``month`` alone."""
    talk = Simulation("ceiling", BUDGET, fill=lambda: 1.0)
    for day in range(60):
        for role in ("user", "assistant") * 4:
            talk.say(role, 40, START + day * DAY)
        talk.settle(START + day * DAY)
    assert {summary.level for summary in talk.live} == {"month"}
    assert talk.live[0].tokens > BUDGET.floor * 0.35


def test_the_ceiling_is_passed_once_and_compaction_reaches_the_floor() -> None:
    talk = Simulation("ceiling", BUDGET, fill=lambda: 0.9)
    totals = chat(talk, 3000, random.Random(3))
    assert max(totals) < BUDGET.limit
    drops = [after for before, after in pairwise(totals) if before > BUDGET.ceiling]
    assert len(drops) > 10
    assert all(after < BUDGET.floor * 1.25 for after in drops)
    levels = [summary.level for summary in talk.live]
    assert levels == sorted(levels, key=["month", "today", "now"].index)


def test_a_killed_process_may_have_done_the_last_part_of_a_plan_only() -> None:
    talk = Simulation("ceiling", BUDGET, fill=lambda: 0.9)
    chance, cut = random.Random(5), 0
    for number in range(1500):
        talk.say("assistant" if number % 2 else "user", 1 + int(chance.expovariate(1 / 60)), START + number)
        planned = plan(talk.situation(START + number)) if number % 2 else []
        if len(planned) > 1 and chance.random() < 0.5:
            talk.carry_out(planned[-1:], START + number)
            cut += 1
        elif planned:
            talk.carry_out(planned, START + number)
        assert all(before.last < after.first for before, after in pairwise(talk.chain))
    assert cut > 5
    talk.settle(START + 1500, force=True)


def test_rounds_fire_at_five_and_again_every_two() -> None:
    talk = Simulation("rounds", BUDGET)
    kept = []
    for number in range(12):
        talk.say("user", 20, START + number)
        talk.say("assistant", 20, START + number)
        talk.settle(START + number)
        kept.append(len(rounds_of(talk.tail)))
    assert kept == [1, 2, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4]
    assert len(talk.live) == 1 and talk.calls == 4


def test_failed_rounds_neither_count_nor_stay() -> None:
    talk = Simulation("rounds", BUDGET)
    for number in range(5):
        talk.say("user", 20, START, failed=number == 1)
        talk.say("assistant", 20, START, failed=number == 1)
    assert plan(talk.situation(START)) == []
    talk.say("user", 20, START)
    talk.say("assistant", 20, START)
    talk.settle(START)
    assert [m.seq for m in talk.tail] == [7, 8, 9, 10, 11, 12]


def test_the_window_keeps_ten_of_fifty() -> None:
    talk = Simulation("window", BUDGET)
    for number in range(49):
        talk.say("user" if number % 2 == 0 else "assistant", 10, START)
    assert plan(talk.situation(START)) == []
    talk.say("assistant", 10, START)
    talk.settle(START)
    assert len(talk.tail) == 10


def test_a_channel_where_nobody_asks_the_model_moves_on_as_well() -> None:
    talk = Simulation("window", BUDGET)
    for number in range(400):
        talk.say("user", 10, START, speaker=f"nick{number % 7}")
        talk.settle(START)
        assert len(talk.tail) < 50


def test_each_episode_has_its_own_summary_and_ten_make_a_reflection() -> None:
    """The published ratio: 1 reflection to 10 summaries to 100–150 lines, 7.3 to 11 % more calls."""
    for length in (10, 12, 15):
        talk = Simulation("conversations", BUDGET, fill=lambda: 0.8)
        now = START
        for _ in range(300):
            for number in range(length):
                now += 30.0
                talk.say("assistant" if number % 2 else "user", 25, now)
                talk.settle(now)
            now += 7200.0
        extra = talk.calls / len(talk.log)
        assert 0.073 * 0.95 <= extra <= 0.11 * 1.05, (length, extra)
        assert {s.level for s in talk.live} == {"conversation"}
        assert len(talk.live) == 299, "the last one goes on"
        assert 5 <= len(talk.live) - len(talk.reflected) <= 15


def test_a_log_that_was_never_summarized_does_not_stampede() -> None:
    talk = Simulation("conversations", BUDGET)
    for number in range(200):
        talk.say("assistant" if number % 2 else "user", 25, START + 4000.0 * (number // 2))
    assert len(plan(talk.situation(START + 10 * DAY))) == 4


@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_log_from_elsewhere_is_read_piece_by_piece(policy: PolicyName) -> None:
    """What one summary reads fits a prompt, so that it can be checked against all of it."""
    talk = Simulation(policy, BUDGET, fill=lambda: 0.8)
    chance = random.Random(5)
    for number in range(3000):
        talk.say("assistant" if number % 2 else "user", 1 + int(chance.expovariate(1 / 90)), START + number)
    most = 0
    while planned := plan(talk.situation(START + 2 * DAY)):
        for each in planned:
            read = [m for m in talk.log if each.first and each.last and each.first <= m.seq <= each.last]
            most = max(most, sum(m.tokens + talk.turn_tokens for m in read))
        talk.carry_out(planned, START + 2 * DAY)
    talk.check()
    limit = BUDGET.floor // 2 if policy == "rounds" else BUDGET.limit
    assert limit // 2 < most <= limit
    assert talk.situation(START).total <= BUDGET.limit


def test_a_new_day_and_a_new_month_move_the_tiers() -> None:
    """What was said before midnight is `month` after it, in the configured zone, also over the end of a month."""
    zone = ZoneInfo(SETTINGS.time_zone)
    midnight = datetime(2026, 12, 1, tzinfo=zone).timestamp()
    talk = Simulation("ceiling", BUDGET, fill=lambda: 0.9)
    chance = random.Random(6)
    for number in range(500):
        at = midnight - 3600.0 + number * 30.0
        talk.say("assistant" if number % 2 else "user", 1 + int(chance.expovariate(1 / 60)), at)
        if number % 2:
            talk.settle(at)
            for summary in talk.live:
                ended = datetime.fromtimestamp(summary.to_time, zone).date()
                if summary.level == "month" and at < midnight:
                    raise AssertionError("nothing is of a day before")
                if summary.level in ("today", "now") and summary.created_at >= midnight:
                    assert ended.isoformat() == "2026-12-01"
    levels = {summary.level: summary for summary in talk.live}
    assert levels["month"].last < levels["today"].first <= levels["today"].last < levels["now"].first
    assert datetime.fromtimestamp(levels["month"].from_time, zone).month == 11


@pytest.mark.parametrize("jump", [-400 * DAY, -DAY, -1.0, DAY, 400 * DAY])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_clock_that_jumps_loses_nothing(policy: PolicyName, jump: float) -> None:
    talk = Simulation(policy, BUDGET, fill=lambda: 0.9)
    at = START
    for number in range(400):
        at += 30.0 + (jump if number in (100, 200, 201) else 0.0)
        talk.say("assistant" if number % 2 else "user", 60, at)
        talk.settle(at)
    talk.settle(at + 2 * DAY, force=True)
    talk.check()
    assert talk.calls >= 4


def test_a_message_that_fits_no_prompt_is_replaced_before_anything_else() -> None:
    """Whatever else is due may fail; this must not wait for it."""
    for policy in POLICIES:
        talk = Simulation(policy, BUDGET)
        for number in range(60):
            talk.say("assistant" if number % 2 else "user", 200, START + number)
        talk.say("user", 50_000, START + 100)
        planned = plan(talk.situation(START + 100))
        assert [(p.level, p.first) for p in planned] == [("message", 61)]


def test_other_people_begin_another_episode() -> None:
    talk = Simulation("conversations", BUDGET)
    for number, who in enumerate(["Ann", "Ann", "Bé", "Bé"]):
        talk.say("user", 20, START + number, speaker=who)
        talk.say("assistant", 20, START + number)
    planned = plan(talk.situation(START + 10))
    assert [(p.first, p.last) for p in planned] == [(1, 4)]


def test_a_message_larger_than_the_context_gets_a_stand_in() -> None:
    for policy in POLICIES:
        talk = Simulation(policy, BUDGET)
        talk.say("user", 50_000, START)
        planned = plan(talk.situation(START))
        assert [(p.level, p.first) for p in planned] == [("message", 1)]
        talk.settle(START)
        assert talk.situation(START).total <= BUDGET.limit


def test_budgets() -> None:
    assert ContextBudget(context=12_288, ceiling=7_800, floor=3_000, answer=1_024) == BUDGET
    small = make_budget(MemorySettings(), 4096)
    assert (small.context, small.ceiling, small.floor, small.answer) == (4096, 2600, 1000, 341)
    assert make_budget(MemorySettings(answer_tokens=1), 4096).answer == 1
    with pytest.raises(ConfigurationError, match="too small"):
        make_budget(MemorySettings(), 100)
