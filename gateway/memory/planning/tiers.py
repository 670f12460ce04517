"""The policy ``ceiling``: three tiers of summaries before the verbatim messages, the newest the most detailed.

``now`` covers what was compacted last, ``today`` the day before that, ``month`` everything older. Messages that leave
the prompt become the new ``now``; the old one is folded into ``today``, and past days into ``month``. So a message is
read once, and its summary is rewritten at most three times.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from gateway.memory.planning.budget import time_zone
from gateway.memory.planning.situation import Round, Situation, said
from gateway.memory.types import Compaction
from gateway.store.memory.summaries import Summary, SummaryLevel

# The tiers' shares of the room for summaries.
SHARES: dict[SummaryLevel, float] = {"now": 0.5, "today": 0.3, "month": 0.2}


def plan_tiers(situation: Situation) -> list[Compaction]:
    """Nothing below the ceiling unless forced; above it, the compactions that bring the prompt to about the floor."""
    if situation.total <= situation.budget.ceiling and not situation.force:
        return []
    rounds = situation.units(situation.messages)
    kept = verbatim_rounds(rounds, situation.settings.verbatim_messages)
    old = situation.at_once(rounds[: len(rounds) - kept])
    if not old:
        return []
    today = _day(situation, situation.now)
    started = [_day(situation, each[0].created_at) for each in old]
    # Up to the last round that started on an earlier day.
    past = max((index + 1 for index, day in enumerate(started) if day < today), default=0)
    room = situation.summary_room([message for each in rounds[len(rounds) - kept :] for message in each])
    return _tier_plans(situation, old[:past], old[past:], _stale(situation), room)


def verbatim_rounds(rounds: Sequence[Round], messages: int) -> int:
    """How many of the last rounds hold ``messages`` messages."""
    count = 0
    for number, each in enumerate(reversed(rounds), 1):
        count += said(each)
        if count >= messages:
            return number
    return len(rounds)


def _tier_plans(
    situation: Situation, past: Sequence[Round], present: Sequence[Round], stale: list[Summary], room: int
) -> list[Compaction]:
    """``past`` and ``present`` are rounds to compact, of earlier days and of today; ``stale`` is :func:`_stale`'s."""
    # A level may have several: of two compactions of a plan, a killed process may have finished the second one only.
    fresh = [each for each in situation.chain if each.level in ("today", "now") and each not in stale]
    if past:  # whatever precedes messages of an earlier day is itself of an earlier day, even if the clock was changed
        stale, fresh = stale + fresh, []
    planned: list[Compaction] = []
    free = room - int(room * SHARES["today"])
    if present:
        now = situation.compaction("now", present, [], int(room * SHARES["now"]))
        if any(summary.level == "now" for summary in fresh):
            planned.append(situation.compaction("today", [], fresh, int(room * SHARES["today"])))
        planned.append(now)
        free -= now.target_tokens
    if stale or past:
        # With all that today leaves free, ``month`` would push the next prompts of the day over the floor.
        target = min(free, int(room * SHARES["now"]))
        folds = [*(each for each in situation.chain if each.level == "month"), *stale]
        planned.insert(0, situation.compaction("month", past, folds, target))
    return planned


def _stale(situation: Situation) -> list[Summary]:
    """Summaries for ``month``: the chain without ``month``, up to the last summary that ends on an earlier day.

    The order is the chain's, because a clock that was set back can leave a fresh ``today`` before a stale ``now``.
    Summaries of a previous policy are stale too.
    """
    today = _day(situation, situation.now)
    chain = [summary for summary in situation.chain if summary.level != "month"]
    ended = [
        summary.level not in ("today", "now") or _day(situation, summary.to_time) < today for summary in chain
    ]
    return chain[: max((index + 1 for index, old in enumerate(ended) if old), default=0)]


def _day(situation: Situation, moment: float) -> date:
    return datetime.fromtimestamp(moment, time_zone(situation.settings.time_zone)).date()
