"""Questions for the date and the time of day, which no prompt has. Pure, for English and Vietnamese."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from gateway.base.calendar import DAYS_VI, NUMBERS
from gateway.base.patterns import any_case
from gateway.memory.learning.plain import FILLERS
from gateway.memory.learning.wordings import SUBJECT_VI

_LONGEST = 100
# The question without these words is what is asked for.
_ASKING = any_case(
    rf"\b(?:{FILLERS}|what(?:['’]?s)?|which|is|it|be|will|would|could|can|you|u|tell|give|show|share|let|know|me|do|have|"
    r"got|i(?:['’]d)?|want|need|like|to|the|my|current(?:ly)?|right|exact(?:ly)?|at|this|moment|information|on|about|"
    r"today(?:['’]?s)?|going|gonna|for|of|and|full)\b|['’]s\b"
)
_BEGINS = any_case(
    rf"\W*(?:(?:{FILLERS})\W+)*(?:what|which|tell|give|show|share|let|can|could|would|do|got|at|the|current|today|tomorrow|"
    r"yesterday|in \w|i (?:want|need|would)|i['’]d)"
)
_TIME = any_case(r"\b(?:what time (?:is it|it is)|the (?:exact )?time|current time)\b")
_DAY = any_case(r"\b(?:it|today|todays|current|the (?:date|day|month|year)|the current|tomorrow|yesterday)\b")
_DATE = any_case(r"\W*(?:(?:date|day|month|year|week)\W*)+")
_AWAY = any_case(
    rf"\b(?:(?P<tomorrow>tomorrow(?:['’]?s)?)|(?P<yesterday>yesterday(?:['’]?s)?)|"
    rf"(?:in )?(?P<days>\d{{1,4}}|{'|'.join(NUMBERS[1:])}) days?(?: from (?:now|today))?)\b"
)
_NOW_VI = r"(?:bây giờ|hiện tại|hiện giờ|hôm nay|giờ)"
_ASKS_VI = any_case(
    rf"\W*(?:(?:{FILLERS})\W+)*(?:cho {SUBJECT_VI} (?:hỏi|biết) )?"
    rf"(?:{_NOW_VI} (?:đang )?(?:là )?(?:mấy giờ|(?:thứ|ngày|tháng|năm) (?:mấy|bao nhiêu|gì|nào))|mấy giờ(?= rồi)|"
    r"(?P<tomorrow>(?:ngày )?mai) (?:là )?(?:thứ|ngày) (?:mấy|bao nhiêu|gì|nào))"
    r"(?: (?:rồi|vậy|thế|nhỉ|hả|ạ|bạn|em|anh|chị))*\W*"
)


def clock_answer(asked: str, now: datetime) -> str:
    """The date and time, or the day that is meant; "" if a message asks for anything else as well."""
    if len(asked) > _LONGEST:
        return ""
    if (found := _ASKS_VI.fullmatch(asked)) is not None:
        day = now + timedelta(days=1) if found["tomorrow"] else now
        written = f"{DAYS_VI[day.weekday()]}, ngày {day.day} tháng {day.month} năm {day.year}"
        return f"Ngày mai là {written}." if found["tomorrow"] else f"Bây giờ là {now:%H:%M}, {written}."
    if _BEGINS.match(asked) is None:
        return ""
    away = _AWAY.search(asked)
    core = _ASKING.sub(" ", _AWAY.sub(" ", asked, count=1))
    if away is None and core.strip(" ?!.,").casefold() == "time" and _TIME.search(asked):
        return _now(now)
    if away is None and re.fullmatch(r"\W*(?:what(?:['’]?s| is)) today\W*", asked, re.I):
        return _now(now)
    if _DATE.fullmatch(core) is None or (away is None and _DAY.search(asked) is None):
        return ""
    if away is None:
        return _now(now)
    number = (away["days"] or ("1" if away["tomorrow"] else "-1")).casefold()
    day = now + timedelta(days=NUMBERS.index(number) if number in NUMBERS else int(number))
    return f"That is {day:%A} {day.day} {day:%B} {day.year}."


def _now(now: datetime) -> str:
    return f"It is {now:%H:%M} on {now:%A} {now.day} {now:%B} {now.year}."
