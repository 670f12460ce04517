"""What a message asks for that code computes: sums, conversions, days and the clock. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.memory.answers.computed.clock import clock_answer, told_the_time
from gateway.memory.answers.computed.days import days_answer, is_days
from gateway.memory.answers.computed.sums import is_sum, sum_answer


def computed_answer(asked: str, before: Sequence[str], now: datetime) -> str:
    """The answer to a message that asks for nothing else, given the user's messages ``before`` it; or ""."""
    return clock_answer(asked, now) or days_answer(asked, before, now.date()) or sum_answer(asked, before)


def was_computed(asked: str, reply: str) -> bool:
    """Whether a reply is one of :func:`computed_answer`'s."""
    return told_the_time(asked, reply) or is_days(reply) or is_sum(reply)
