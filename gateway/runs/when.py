"""Times that people write, as a moment. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from gateway.base.errors import InvalidRequestError

_CLOCK = re.compile(
    r"(?:(?P<day>today|tomorrow|\d{4}-\d{2}-\d{2})[ T]?(?:\s*at\s+)?|at\s+)?"
    r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2}))?\s*(?P<half>am|pm)?(?:\s+(?P<day_after>today|tomorrow))?",
    re.I,
)
_AFTER = re.compile(
    r"(?:in\s+)?(?P<count>\d{1,4}|an?|one)\s*(?P<unit>s|m|h|d|second|minute|min|hour|day)s?", re.I
)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str, now: datetime) -> datetime:
    """The moment that a text means: ``15:00``, ``3 pm tomorrow``, ``2026-11-20 15:00``, ``in 10 minutes``, or ISO 8601.

    A time of day that is past is tomorrow's. ``now`` has a time zone, which the text's times are in.

    Raises InvalidRequestError for a text that is no time, or a date that is past.
    """
    written = " ".join(text.split())
    found = _iso(written, now) or _after(written, now) or _clock(written, now)
    if found is None:
        raise InvalidRequestError(
            f"`time` is {text!r}; write a time such as 15:00, tomorrow 9:00, 2026-11-20 15:00 or in 10 minutes",
            param="time",
        )
    if found < now:
        raise InvalidRequestError(f"`time` is {text!r}, which is past; write a later one", param="time")
    return found


def _iso(text: str, now: datetime) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if len(text) <= len("2026-11-20"):  # a day alone, or a number that looks like one
        return None
    return found if found.tzinfo else found.replace(tzinfo=now.tzinfo)


def _after(text: str, now: datetime) -> datetime | None:
    match = _AFTER.fullmatch(text)
    if match is None:
        return None
    count = int(match["count"]) if match["count"].isdigit() else 1
    return now + timedelta(**{_UNITS[match["unit"][0].lower()]: count})


def _clock(text: str, now: datetime) -> datetime | None:
    match = _CLOCK.fullmatch(text)
    if match is None or not (match["minute"] or match["half"]):  # "15" alone is a number
        return None
    hour, day = int(match["hour"]), (match["day"] or match["day_after"] or "").lower()
    if match["half"]:
        hour = hour % 12 + (12 if match["half"].lower() == "pm" else 0)
    try:
        found = now.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
        if day == "tomorrow":
            return found + timedelta(days=1)
        if day and day != "today":
            date = datetime.fromisoformat(day)
            found = found.replace(year=date.year, month=date.month, day=date.day)
    except ValueError:
        return None
    return found if day or found >= now else found + timedelta(days=1)
