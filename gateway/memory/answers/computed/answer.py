"""What a message asks for that code computes: sums, conversions, days and the clock. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from gateway.base.calendar import DAYS
from gateway.memory.answers.computed.clock import clock_answer
from gateway.memory.answers.computed.days import days_answer
from gateway.memory.answers.computed.sums import NO_DIVISION, sum_answer

_DATED = rf"(?:{'|'.join(DAYS).title()}) \d{{1,2}} \w+ \d{{4}}"
_COMPUTED = re.compile(
    rf"It is \d\d:\d\d on {_DATED}\.|That is {_DATED}\.|(?:Bây giờ là \d\d:\d\d, |Ngày mai là )[^\n]* năm \d{{4}}\.|"
    rf"{_DATED} is in \d[^\n]*\.|That is today\.|{re.escape(NO_DIVISION)}|"
    r"[^\n=≈]*\d[^\n=≈]* [=≈] −?\d[^\n=≈]*\.|\S+ (?:is \w+ than|is as much as) \S+ \([^\n]*\)\.|"
    r"(?:Yes|No), \d+ is (?:not )?(?:prime|even|odd)[^\n]*\."
)


def computed_answer(asked: str, before: Sequence[str], now: datetime) -> str:
    """The answer to a message that asks for nothing else, given the user's messages ``before`` it; or ""."""
    return clock_answer(asked, now) or days_answer(asked, before, now.date()) or sum_answer(asked, before)


def was_computed(reply: str) -> bool:
    """Whether a reply has the form of those of :func:`computed_answer`."""
    return _COMPUTED.fullmatch(reply) is not None
