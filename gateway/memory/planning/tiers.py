"""The policy ``ceiling``: three tiers of summaries, the newer the more detailed, before the verbatim messages.

``now`` tells what was compacted last, ``today`` what of the day came before it, ``month`` everything older. When
messages leave the prompt they become the new ``now``; the old one flows into ``today``, and what is of a past day
flows into ``month``. So a message is read once, and its trace is rewritten at most three times.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from gateway.memory.planning.policies import CeilingPolicy
from gateway.memory.planning.situation import (
    Round,
    Situation,
    at_once,
    compaction,
    rounds_of,
    said,
    summary_room,
)
from gateway.memory.types import Compaction
from gateway.store.memory.summaries import Summary, SummaryLevel

# How the tiers share the room that the floor leaves them.
SHARES: dict[SummaryLevel, float] = {"now": 0.5, "today": 0.3, "month": 0.2}


def plan_tiers(situation: Situation, policy: CeilingPolicy) -> list[Compaction]:
    """Nothing below the ceiling (unless forced); above it the compactions that bring the prompt to about the floor."""
    if situation.total <= situation.budget.ceiling and not situation.force:
        return []
    rounds = rounds_of(situation.messages)
    kept = verbatim_rounds(rounds, policy.verbatim)
    old = at_once(situation, rounds[: len(rounds) - kept])
    if not old:
        return []
    today = _day(situation.now, policy)
    past = _past_rounds(old, today, policy)
    room = summary_room(situation, [message for each in rounds[len(rounds) - kept :] for message in each])
    return _tier_plans(situation, old[:past], old[past:], _stale(situation, today, policy), room)


def verbatim_rounds(rounds: Sequence[Round], messages: int) -> int:
    """How many of the last rounds are needed for ``messages`` verbatim ones."""
    count = 0
    for number, each in enumerate(reversed(rounds), 1):
        count += said(each)
        if count >= messages:
            return number
    return len(rounds)


def _tier_plans(
    situation: Situation, past: Sequence[Round], present: Sequence[Round], stale: list[Summary], room: int
) -> list[Compaction]:
    """``past`` and ``present`` are the rounds that leave, of former days and of today; ``stale`` as :func:`_stale`."""
    by_level = {summary.level: summary for summary in situation.chain}
    fresh = [
        by_level[level] for level in ("today", "now") if level in by_level and by_level[level] not in stale
    ]
    if past:  # what lies before messages of a former day is of a former day itself, whatever the clock said
        stale, fresh = stale + fresh, []
    planned: list[Compaction] = []
    if stale or past:
        folds = [by_level["month"], *stale] if "month" in by_level else stale
        planned.append(compaction(situation, "month", past, folds, int(room * SHARES["month"])))
    if present:
        if any(summary.level == "now" for summary in fresh):
            planned.append(compaction(situation, "today", [], fresh, int(room * SHARES["today"])))
        planned.append(compaction(situation, "now", present, [], int(room * SHARES["now"])))
    return planned


def _stale(situation: Situation, today: date, policy: CeilingPolicy) -> list[Summary]:
    """What belongs into ``month``: the chain, less ``month``, up to the last summary that ends on a former day.

    In the chain's order, because a clock that was set back can leave a fresh ``today`` before a stale ``now``.
    Summaries of another policy, from before it was changed, go the same way.
    """
    chain = [summary for summary in situation.chain if summary.level != "month"]
    ended = [
        summary.level not in ("today", "now") or _day(summary.to_time, policy) < today for summary in chain
    ]
    return chain[: max((index + 1 for index, old in enumerate(ended) if old), default=0)]


def _past_rounds(rounds: Sequence[Round], today: date, policy: CeilingPolicy) -> int:
    """How many of the rounds, from the first, go up to the last one that began on a former day."""
    days = [_day(each[0].created_at, policy) for each in rounds]
    return max((index + 1 for index, day in enumerate(days) if day < today), default=0)


def _day(moment: float, policy: CeilingPolicy) -> date:
    return datetime.fromtimestamp(moment, policy.zone).date()
