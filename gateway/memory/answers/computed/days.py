"""Questions for how far away a day is, and for the day of the week of a date. Pure, English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from gateway.base.calendar import DAYS, MONTH, month_number
from gateway.memory.learning.entailment import content
from gateway.memory.learning.plain import FILLERS

_LONGEST = 100  # characters
_LONGEST_MESSAGE = 2_000  # characters of an earlier message that are searched
_A_WEEK = 7
# With a day every year, by month and day.
_FEASTS = {
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "christmas eve": (12, 24),
    "xmas": (12, 25),
    "boxing day": (12, 26),
    "new year": (1, 1),
    "new year's": (1, 1),
    "new years": (1, 1),
    "new year's day": (1, 1),
    "new year's eve": (12, 31),
    "new years eve": (12, 31),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
    "valentines day": (2, 14),
}
_WHEN = (
    rf"(?:(?P<feast>{'|'.join(sorted(_FEASTS, key=len, reverse=True))})|(?P<end>(?:the )?end of (?:the|this) "
    rf"(?P<span>month|year))|(?:next |this )?(?P<weekday>{'|'.join(DAYS)})|(?P<iso>\d{{4}}-\d\d-\d\d)|"
    rf"(?:the )?(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<m1>{MONTH})|(?P<m2>{MONTH}) (?:the )?"
    r"(?P<d2>\d{1,2})(?:st|nd|rd|th)?)(?:,? (?P<year>\d{4}))?)"
)
_LEAD = rf"(?:(?:{FILLERS}|do you know|(?:can|could) you tell me|tell me)\b,? ?)*"
_AWAY = re.compile(
    rf"{_LEAD}(?:how (?:many (?:days|weeks|sleeps)|long)(?: (?:is it|is there|are there|are left|left|is left|"
    rf"do we have|do i have|to go))*|days) (?:until|till|til|to|before) "
    rf"(?:{_WHEN}|(?:my|our|the) (?P<theirs>[\w' -]{{2,40}}?))(?: (?:from )?(?:now|today))?"
)
_A_DAY = re.compile(rf"\b{_WHEN}\b")
_PART = re.compile(r"[,;]|\s(?:and|but)\s")
_SENTENCE = re.compile(r"[^.!?\n]+")
_ON = re.compile(
    rf"{_LEAD}(?:what|which) (?:day(?: of the week)?|weekday) (?:is|will|does|did|(?P<was>was)) "
    rf"(?:it (?:be )?on )?{_WHEN}(?: (?:be|fall on|fall|be on|on))*"
)


def days_answer(asked: str, before: Sequence[str], today: date) -> str:
    """How far away a day is, or its day of the week; "" if a message asks for anything else.

    The day of "my exam" is the one that the user's messages ``before`` name in a sentence with it.
    """
    text = " ".join(asked.casefold().replace("’", "'").split()).strip(" ?!.")
    if len(text) > _LONGEST:
        return ""
    away, on = _AWAY.fullmatch(text), _ON.fullmatch(text)
    if on is not None and (day := _day(on, today, before=bool(on["was"]))) is not None:
        return f"That is {_shown(day)}."
    day = (
        None
        if away is None
        else _told(away["theirs"], before, today)
        if away["theirs"]
        else _day(away, today)
    )
    if day is None or day < today:
        return ""
    days = (day - today).days
    if not days:
        return "That is today."
    told = _count(days, "day")
    if days >= _A_WEEK:
        weeks, rest = divmod(days, _A_WEEK)
        told += f" ({_count(weeks, 'week')}{' and ' + _count(rest, 'day') if rest else ''})"
    return f"{_shown(day)} is in {told}."


def _told(what: str, before: Sequence[str], today: date) -> date | None:
    """The day in the newest sentence that names it together with ``what``; None if that names several."""
    words = content(what)
    for text in reversed(before):
        for sentence in reversed(_SENTENCE.findall(text[:_LONGEST_MESSAGE].casefold().replace("’", "'"))):
            if not words or not words <= content(sentence):
                continue
            # "My mother's birthday is on March 3 and my father's on July 19"
            part = next((each for each in _PART.split(sentence) if words <= content(each)), sentence)
            days = list(_A_DAY.finditer(part)) or list(_A_DAY.finditer(sentence))
            if days:
                # A weekday counts from the day of the message.
                return _day(days[0], today) if len(days) == 1 and not days[0]["weekday"] else None
    return None


def _day(found: re.Match[str], today: date, *, before: bool = False) -> date | None:
    """The day that is meant: the next one of its name, or the last one ``before`` today."""
    try:
        if found["iso"]:
            return date.fromisoformat(found["iso"])
        if found["span"] == "month":
            return (today.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        if found["weekday"]:
            ahead = (DAYS.index(found["weekday"]) - today.weekday() - 1) % 7 + 1
            return today + timedelta(days=ahead - (7 if before else 0))
        if found["feast"]:
            month, of_month = _FEASTS[found["feast"]]
        elif found["span"]:
            month, of_month = 12, 31
        else:
            month, of_month = month_number(found["m1"] or found["m2"]), int(found["d1"] or found["d2"])
        if found["year"]:
            return date(int(found["year"]), month, of_month)
        days = [date(today.year + years, month, of_month) for years in (-1, 0, 1)]
    except ValueError:  # 31 June; 29 February of a year without one
        return None
    return max(day for day in days if day < today) if before else min(day for day in days if day >= today)


def _shown(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B} {day.year}"


def _count(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"
