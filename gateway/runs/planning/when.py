"""Times that people write, in English or Vietnamese, as a moment. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from gateway.base.errors import InvalidRequestError

_NUMBER_WORDS = (
    "a an one một", "two hai", "three ba", "four bốn", "five năm", "six sáu", "seven bảy", "eight tám", "nine chín",
    "ten mười",
)  # fmt: skip
_NUMBERS = {word: number for number, words in enumerate(_NUMBER_WORDS, 1) for word in words.split()}
_NUMBERS |= {"fifteen": 15, "twenty": 20, "thirty": 30}
_UNITS = {
    word: unit
    for unit, words in {
        "seconds": "s sec second giây",
        "minutes": "m min minute phút",
        "hours": "h hr hour giờ tiếng",
        "days": "d day ngày",
        "weeks": "week tuần",
    }.items()
    for word in words.split()
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS_VI = ("thứ hai", "thứ ba", "thứ tư", "thứ năm", "thứ sáu", "thứ bảy", "chủ nhật")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\b"
)
_NTH = r"\d{1,2}(?:st|nd|rd|th)?\b"
_DATE = rf"(?:the\s+)?{_NTH}\s+(?:of\s+)?{_MONTH}|{_MONTH}\s+(?:the\s+)?{_NTH}|ngày\s+\d{{1,2}}\s+tháng\s+\d{{1,2}}"
_COUNT = rf"(?:\d{{1,4}}|{'|'.join(_NUMBERS)})"
_UNIT = rf"(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))})s?\b"
_GAP = r"(?:(?<=\d)\s*|\s+)"  # "5m", but "am" is not "a m"
_SPAN = rf"(?:half an hour|{_COUNT}{_GAP}{_UNIT})"
_DAY = (
    r"(?:on\s+|vào\s+)?(?:today|tomorrow|tonight|(?:next\s+|this\s+)?(?:"
    + "|".join(_DAYS)
    + rf")|(?:{'|'.join(_DAYS_VI)})(?:\s+(?:tuần\s+)?(?:này|sau|tới))?|{_DATE}|\d{{4}}-\d{{2}}-\d{{2}}|"
    r"(?:(?:ngày|sáng|chiều|tối)\s+)?mai|(?:sáng|chiều|tối|hôm) nay)"
)
_HALF = r"(?:\s*(?:am\b|pm\b|o['’]clock|sáng\b|chiều\b|tối\b))"
_CLOCK = (
    rf"\d{{1,2}}(?:[:.h]\d{{2}}\b|\s*giờ(?:\s*\d{{1,2}}\b)?|h\b)?(?:{_HALF}|(?!\s*[ap]m\b))|noon|midnight"
)
_AT = r"(?:(?:vào\s+)?lúc\s+|at\s+|by\s+)"
# In a text; a day alone is found as well, so that the error says what it lacks.
TIME = (
    rf"(?<!\w)(?P<time>(?:in|after|sau|trong)\s+{_SPAN}(?:\s+nữa)?|{_SPAN}\s+(?:nữa|from now)|"
    rf"{_DAY}(?:\s+(?:morning|afternoon|evening))?(?:,?\s+{_AT}?(?:{_CLOCK}))?|{_AT}(?:{_CLOCK})(?:\s+{_DAY})?|"
    rf"\d{{1,2}}(?:[:.]\d{{2}}\b{_HALF}?|\s*giờ(?:\s*\d{{1,2}}\b)?{_HALF}?|h\b{_HALF}?|{_HALF})(?:\s+{_DAY})?|"
    rf"{_SPAN}(?=\s*$))"
)
# "An hour before 15:00" is another time than 15:00.
FROM_ANOTHER = re.compile(
    rf"\b{_SPAN}\s+(?:before|after|prior to|ahead of|past|until|till|trước|sau khi)\b|\b(?:half|quarter) (?:past|to)\b",
    re.I,
)
_AFTER = re.compile(
    rf"(?:(?:in|after|sau|trong)\s+)?(?:(?P<half>half an hour)|(?P<count>{_COUNT}){_GAP}(?P<unit>{_UNIT}))"
    r"(?:\s+(?:nữa|from now))?",
    re.I,
)
_WHEN = re.compile(
    rf"(?P<day>{_DAY})?(?:\s+(?:morning|afternoon|evening))?,?\s*{_AT}?(?P<clock>{_CLOCK})(?:\s+(?P<later>{_DAY}))?",
    re.I,
)
_DAY_ALONE = re.compile(rf"{_DAY}(?:\s+(?:morning|afternoon|evening))?", re.I)
_HOUR_AT_END = re.compile(rf"(?P<text>.+?),?\s+(?P<hour>{_AT}(?:{_CLOCK}))", re.I | re.S)
_PARTS_OF_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?:(?:[:.h]|\s*giờ\s*)(?P<minute>\d{1,2}))?\D*", re.I)
_FIRST_SURE_HOUR = 7  # "tomorrow at 3" may be in the night or in the afternoon


def moment(text: str, now: datetime) -> datetime:
    """The moment that a text means: ``15:00``, ``3 pm on Friday``, ``2026-11-20 15:00``, ``in 10 minutes``, ISO 8601.

    A time of day that is past is tomorrow's. ``now`` has a time zone, which the text's times are in.

    Raises InvalidRequestError for a text that is no time, has no hour, or a date that is past.
    """
    written = " ".join(text.split())
    found = _iso(written, now) or _after(written, now) or _clock(written, now)
    if found is None and _DAY_ALONE.fullmatch(written):
        raise InvalidRequestError(
            f"`time` is {text!r}, which has no hour; write such as {text} 9:00", param="time"
        )
    if found is None:
        raise InvalidRequestError(
            f"`time` is {text!r}; write a time such as 15:00, tomorrow 9:00, 2026-11-20 15:00 or in 10 minutes",
            param="time",
        )
    if found < now:
        raise InvalidRequestError(f"`time` is {text!r}, which is past; write a later one", param="time")
    return found


def with_hour(time: str, text: str) -> tuple[str, str]:
    """A time and what it is for, with the hour at the time: "tomorrow" and "call mum at 9"."""
    end = _HOUR_AT_END.fullmatch(text) if _DAY_ALONE.fullmatch(time) else None
    return (f"{time} {end['hour']}", end["text"]) if end else (time, text)


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
    if match["half"]:
        return now + timedelta(minutes=30)
    count, unit = match["count"].lower(), match["unit"].lower()
    number = int(count) if count.isdigit() else _NUMBERS[count]
    return now + timedelta(**{_UNITS.get(unit) or _UNITS[unit.removesuffix("s")]: number})


def _clock(text: str, now: datetime) -> datetime | None:
    match = _WHEN.fullmatch(text)
    if match is None:
        return None
    day = " ".join((match["day"] or match["later"] or "").lower().split())
    try:
        found = _at(match["clock"].lower(), now, day=day)
        return None if found is None else _on(day, found, now)
    except ValueError:
        return None


def _on(day: str, found: datetime, now: datetime) -> datetime:
    """The time ``found`` of today on a day. Raises ValueError for a date that does not exist."""
    if not day:
        return found if found >= now else found + timedelta(days=1)
    last = day.split()[-1]
    if last in ("tomorrow", "mai"):
        return found + timedelta(days=1)
    if last in _DAYS:
        ahead = (_DAYS.index(last) - now.weekday()) % 7
        return found + timedelta(days=ahead or (0 if found >= now else 7))
    if (weekday := next((number for number, name in enumerate(_DAYS_VI) if name in day), None)) is not None:
        ahead = (weekday - now.weekday()) % 7
        if "tuần sau" in day or "tuần tới" in day:
            ahead = 7 - now.weekday() + weekday
        return found + timedelta(days=ahead or (0 if found >= now else 7))
    if (month := re.search(_MONTH, day)) or "tháng" in day:
        numbers = [int(each) for each in re.findall(r"\d{1,2}", day)]
        of_year = _MONTHS.index(month[0][:3]) + 1 if month else numbers[1]
        dated = found.replace(month=of_year, day=numbers[0])
        return dated if dated >= now else dated.replace(year=now.year + 1)
    if last[0].isdigit():
        date = datetime.fromisoformat(last)
        return found.replace(year=date.year, month=date.month, day=date.day)
    return found


def _at(clock: str, now: datetime, *, day: str) -> datetime | None:
    """A time of today; None for a number that may be no time, or either half of the day."""
    if clock in ("noon", "midnight"):
        return now.replace(hour=12 if clock == "noon" else 0, minute=0, second=0, microsecond=0)
    match = _PARTS_OF_CLOCK.fullmatch(clock)
    assert match is not None
    hour = int(match["hour"])
    half = next((word for word in ("am", "pm", "sáng", "chiều", "tối") if clock.endswith(word)), "")
    if day.startswith(("tonight", "chiều", "tối")) and not half and hour <= 12:
        half = "pm"
    if not (
        match["minute"]
        or half
        or "giờ" in clock
        or clock.endswith(("h", "clock"))
        or (day and hour >= _FIRST_SURE_HOUR)
    ):
        return None
    if half:
        hour = hour % 12 + (12 if half in ("pm", "chiều", "tối") else 0)
    return now.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
