"""Find the past month or year that a message mentions. Pure, for English and Vietnamese."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta

from msgspec import Struct

from gateway.base.calendar import MONTH, MONTHS, month_number
from gateway.base.patterns import any_case

_NAMES = "|".join(MONTHS)
_MONTH = any_case(
    # "May" and "march" are words, too: a preposition or a year must stand beside them.
    rf"\b(?:in|of|since|during|from|until|last|back in)\s+(?P<after>{_NAMES})\b(?:,?\s+(?P<year>\d{{4}}))?"
    rf"|\b(?P<before>{_NAMES}),?\s+(?P<of>\d{{4}})\b"
    r"|\btháng\s+(?P<number>1[0-2]|0?[1-9])\b(?:\s*(?:năm|/|-)\s*(?P<nam>\d{4}))?"
    r"|\b(?P<iso>\d{4})-(?P<part>0[1-9]|1[0-2])\b(?!-)"
)
_YEAR = any_case(r"\b(?:in|since|during|of|from|year|năm)\s+(\d{4})\b")
_LAST_MONTH = any_case(r"\blast month\b|\btháng (?:trước|rồi)\b")
_LAST_YEAR = any_case(r"\blast year\b|\bnăm (?:ngoái|trước)\b")


class Period(Struct, frozen=True):
    """From ``first`` until before ``end``; ``name`` is YYYY-MM or YYYY, or the words of a text."""

    name: str
    first: date
    end: date

    @property
    def words(self) -> frozenset[str]:
        return frozenset(re.findall(r"\w+", self.name.lower()))


def mentioned_period(text: str, today: date) -> Period | None:
    """The first past month that a text mentions, else the first past year; a month without a year is the last one."""
    found = _MONTH.search(text)
    if found is not None:
        named = (found["after"] or found["before"] or "").lower()
        month = month_number(named) if named else int(found["number"] or found["part"])
        given = found["year"] or found["of"] or found["nam"] or found["iso"]
        return _past(int(given) if given else today.year - (month >= today.month), month, today)
    if _LAST_MONTH.search(text):
        return _past(today.year - (today.month == 1), (today.month - 2) % 12 + 1, today)
    year = _YEAR.search(text)
    if year is not None or _LAST_YEAR.search(text):
        return _past(int(year[1]) if year else today.year - 1, 0, today)
    return None


def _past(year: int, month: int, today: date) -> Period | None:
    if not date.min.year <= year < date.max.year:
        return None
    first = date(year, month or 1, 1)
    end = date(year + (month in (0, 12)), month % 12 + 1 if month else 1, 1)
    if first > today:
        return None
    return Period(f"{first:%Y-%m}" if month else f"{year:04}", first, end)


_TOLD_AFTER = 3  # days; what happened on a day is often told a little later
_DAY = any_case(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{MONTH})\b(?:,? (?P<year>\d{{4}}))?"
    rf"|\b(?P<name>{MONTH})\.? (?P<on>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<of>\d{{4}}))?"
    r"|\b(?P<iso>\d{4})-(?P<part>0[1-9]|1[0-2])-(?P<last>0[1-9]|[12]\d|3[01])\b"
    r"|\b(?P<ngay>\d{1,2})(?:/| tháng )(?P<thang>1[0-2]|0?[1-9])\b(?:(?:/| năm )(?P<nam>\d{4}))?"
)


def mentioned_days(text: str, today: date) -> Period | None:
    """The first past day that a text mentions, and when it was told of, else the past month; the last such one."""
    found = _DAY.search(text)
    if found is None:
        period, named = mentioned_period(text, today), _MONTH.search(text)
        return Period(named[0], period.first, period.end) if period and named else None
    name = (found["month"] or found["name"] or "").lower()
    month = month_number(name) if name else int(found["part"] or found["thang"])
    day = int(found["day"] or found["on"] or found["last"] or found["ngay"])
    given = found["year"] or found["of"] or found["iso"] or found["nam"]
    for year in [int(given)] if given else [today.year, today.year - 1]:
        with suppress(ValueError):
            first = date(year, month, day)
            if first <= today:
                return Period(found[0], first, first + timedelta(days=1 + _TOLD_AFTER))
    return None
