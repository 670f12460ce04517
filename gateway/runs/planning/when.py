"""Times that people write, in English or Vietnamese, as a moment. Pure."""

from __future__ import annotations

import contextlib
import re
from datetime import date, datetime, timedelta

from gateway.base.calendar import DAYS, DAYS_VI, MONTH, MONTHS, NUMBERS, NUMBERS_VI, month_number
from gateway.base.errors import InvalidRequestError
from gateway.base.patterns import any_case
from gateway.runs.planning.vietnamese import PART_VI, in_plain_words

_NUMBERS = {word: number for words in (NUMBERS, NUMBERS_VI) for number, word in enumerate(words) if number}
_NUMBERS |= {"a": 1, "an": 1}
_TENS_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS = {word: 10 * number for number, word in enumerate(_TENS_WORDS, 2)}
_UNITS = {
    word: unit
    for unit, words in {
        "seconds": "s sec second giây",
        "minutes": "m min minute p phút phut",
        "hours": "h hr hour giờ gio tiếng tieng",
        "days": "d day ngày",
        "weeks": "week tuần",
    }.items()
    for word in words.split()
}
_HOURS_OF_CLOCK = ("h", "giờ", "gio")
_TOMORROW = r"(?:tomorrow|tommorow|tomorow|tomorro|tmrw|tmr|tmw)\b"
SPOKEN = NUMBERS[1:13]  # the hours
_SPOKEN_MINUTES = {"forty five": 45, "forty-five": 45, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40}
# May follow an hour without a colon, as in "monday 930".
_END = r"$|[,.;]|(?:a\.?m|p\.?m|in the|on|to|for|and)\b|today|tomorrow"
_MONTH = rf"{MONTH}\b"
_NTH = r"\d{1,2}(?:st|nd|rd|th)?\b"
_DATE = rf"(?:the\s+)?{_NTH}\s+(?:of\s+)?{_MONTH}|{_MONTH}\s+(?:the\s+)?{_NTH}|ngày\s+\d{{1,2}}\s+tháng\s+\d{{1,2}}"
_ONES = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_COUNT = rf"(?:\d{{1,4}}|(?:{'|'.join(_TENS)})(?:[\s-](?:{_ONES}))?|(?:{_ONES}))"
_UNIT = rf"(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))})s?\b"
_GAP = r"(?:(?<=\d)\s*|[\s-]+)"  # "5m", but "am" is not "a m"
SPAN = rf"(?:half an hour|{_COUNT}{_GAP}{_UNIT})"
_DAY = (
    rf"(?:on\s+|vào\s+)?(?:today|(?:the\s+)?day\s+after\s+{_TOMORROW}|{_TOMORROW}|tonight|(?:next\s+|this\s+)?(?:"
    + "|".join(DAYS)
    + r")|(?:(?:on|next|this)\s+)(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\b|"
    rf"(?:{PART_VI}\s+)?(?:{'|'.join(DAYS_VI)})(?:\s+(?:tuần\s+)?(?:này|sau|tới))?|{_DATE}|the\s+\d{{1,2}}(?:st|nd|rd|th)\b|"
    rf"\d{{4}}-\d{{2}}-\d{{2}}|(?:(?:ngày|{PART_VI})\s+)?mai\b|(?:{PART_VI}|hôm) nay|"
    rf"ngày (?:mốt|kia)\b|{PART_VI} (?:ngày )?mốt\b|"
    r"(?:ngay|sang|chieu|toi) mai\b|(?:sang|chieu|toi|hom) nay\b)"
)
_HALF = (
    r"(?:\s*(?:a\.?m\b\.?|p\.?m\b\.?|o['’]?clock|in the (?:morning|afternoon|evening)\b|at night\b|"
    r"sáng\b|trưa\b|chiều\b|tối\b))"
)
SPOKEN_HOUR = rf"(?:{'|'.join(SPOKEN)})(?:[\s-](?:{'|'.join(_SPOKEN_MINUTES)}))?\b"
_CLOCK = (
    rf"(?:\d{{1,2}}(?!\d)(?:[:.h]\d{{2}}(?!\d)|\s*giờ(?:\s*\d{{1,2}}\b)?|h\b)?|(?:[1-9]|1[0-2])[0-5]\d(?=\s*(?:{_END}))|"
    rf"{SPOKEN_HOUR})(?:{_HALF}|(?!\s*[ap]\.?m\b))|noon|midday|midnight"
)
_AT = r"(?:(?:vào\s+)?lúc\s+|luc\s+|at\s+|by\s+|@\s*)"
_PART = r"(?:morning|afternoon|evening|night)\b"
# In a text; a day alone is found as well, so that the error says what it lacks.
TIME = (
    rf"(?<!\w)(?P<time>(?:in|after|sau|trong)\s+{SPAN}(?:\s+nữa)?|{SPAN}\s+(?:nữa|nua|from now)|"
    rf"{_DAY}(?:\s+{_PART})?(?:,?\s+{_AT}?(?:{_CLOCK}))?|"
    rf"{_AT}(?:{_CLOCK})(?:\s+{_DAY}(?:\s+{_PART})?)?|(?:noon|midday|midnight)\b(?:\s+{_DAY})?|"
    rf"{SPOKEN_HOUR}{_HALF}(?:\s+{_DAY})?|(?:[1-9]|1[0-2])[0-5]\d\s*[ap]\.?m\b(?:\s+{_DAY})?|"
    rf"\d{{1,2}}(?:[:.]\d{{2}}(?!\d){_HALF}?|\s*giờ(?:\s*\d{{1,2}}\b)?{_HALF}?|h\b{_HALF}?|{_HALF})(?:\s+{_DAY}(?:\s+{_PART})?)?|"
    rf"{SPAN}(?=\s*$))"
)
TIME_WITHIN = any_case(TIME)
# "An hour before 15:00" is another time than 15:00.
FROM_ANOTHER = any_case(
    rf"\b{SPAN}\s+(?:before|after|prior to|ahead of|past|until|till|trước|sau khi)\b|\b(?:half|quarter) (?:past|to)\b"
)
_AFTER = any_case(
    rf"(?:(?:in|after|sau|trong)\s+)?(?:(?P<half>half an hour)|(?P<count>{_COUNT}){_GAP}(?P<unit>{_UNIT}))"
    r"(?:\s+(?:nữa|nua|from now))?"
)
_WHEN = any_case(
    rf"(?P<day>{_DAY})?(?:\s+(?P<part>{_PART}))?,?\s*{_AT}?(?P<clock>{_CLOCK})"
    rf"(?:\s+(?P<later>{_DAY})(?:\s+(?P<later_part>{_PART}))?)?"
)
DAY = rf"(?:{_DAY}(?:\s+{_PART})?)"  # a day without an hour
_DAY_ALONE = any_case(DAY)
_PARTS_OF_CLOCK = any_case(
    r"(?P<hour>\d{1,2}?)(?:(?:[:.h]|\s*giờ\s*)(?P<minute>\d{1,2})|(?P<joined>\d\d))?\D*"
)
_HALVES = {
    "am": ("am", "a.m", "a.m.", "morning", "sáng"),
    "pm": ("pm", "p.m", "p.m.", "afternoon", "evening", "night", "trưa", "chiều", "tối"),
}
_FIRST_HOUR_OF_NIGHT = 6
_FIRST_SURE_HOUR = 7  # "tomorrow at 3" may be in the night or in the afternoon


def moment(text: str, now: datetime) -> datetime:
    """The moment that a text means: ``15:00``, ``3 pm on Friday``, ``2026-11-20 15:00``, ``in 10 minutes``, ISO 8601.

    A time of day that is past is tomorrow's. ``now`` has a time zone, which the text's times are in.

    Raises InvalidRequestError for a text that is no time, has no hour, or a date that is past.
    """
    written = in_plain_words(" ".join(text.split()))
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
    if unit in _HOURS_OF_CLOCK and text.lower() == f"{count}{text[len(count) : -len(unit)]}{unit}":
        return None  # "7 giờ" and "7h" are hours of the day, "in 7h" is not
    number = (
        int(count) if count.isdigit() else sum(_NUMBERS.get(word) or _TENS[word] for word in _words(count))
    )
    return now + timedelta(**{_UNITS.get(unit) or _UNITS[unit.removesuffix("s")]: number})


def _clock(text: str, now: datetime) -> datetime | None:
    match = _WHEN.fullmatch(text)
    if match is None:
        return None
    day = " ".join((match["day"] or match["later"] or "").lower().split())
    try:
        found = _at(
            match["clock"].lower(), now, day=day, part=(match["part"] or match["later_part"] or "").lower()
        )
        return None if found is None else _on(day, found, now)
    except ValueError:
        return None


def _on(day: str, found: datetime, now: datetime) -> datetime:
    """The time ``found`` of today on a day. Raises ValueError for a date that does not exist."""
    if not day:
        return found if found >= now else found + timedelta(days=1)
    last = day.split()[-1]
    if last in ("mốt", "kia") or "after" in day:
        return found + timedelta(days=2)
    if last == "mai" or re.fullmatch(_TOMORROW, last):
        return found + timedelta(days=1)
    weekday = _day_number(last)
    if weekday is None:
        weekday = next((number for number, name in enumerate(DAYS_VI) if name in day), None)
    if weekday is not None:
        of_next_week = "tuần sau" in day or "tuần tới" in day
        ahead = 7 - now.weekday() + weekday if of_next_week else (weekday - now.weekday()) % 7
        return found + timedelta(days=ahead or (0 if found >= now else 7))
    if (month := re.search(_MONTH, day)) or "tháng" in day:
        numbers = [int(each) for each in re.findall(r"\d{1,2}", day)]
        of_year = month_number(month[0]) if month else numbers[1]
        dated = found.replace(month=of_year, day=numbers[0])
        return dated if dated >= now else dated.replace(year=now.year + 1)
    if nth := re.fullmatch(r"(?:on )?the (\d{1,2})\w\w", day):
        return _next_nth(int(nth[1]), found, now)
    if last[0].isdigit():
        date = datetime.fromisoformat(last)
        return found.replace(year=date.year, month=date.month, day=date.day)
    return found


def _day_number(name: str) -> int | None:
    return next((number for number, day in enumerate(DAYS) if day.startswith(name)), None)


def _next_nth(number: int, found: datetime, now: datetime) -> datetime:
    """The next day of that number. Raises ValueError where no month has it."""
    if not 1 <= number <= 31:
        raise ValueError(number)
    while found.day != number or found < now:
        found += timedelta(days=1)
    return found


def _at(clock: str, now: datetime, *, day: str, part: str) -> datetime | None:
    """A time of today; None for a number that may be no time, or either half of the day."""
    if clock in ("noon", "midday", "midnight"):
        return now.replace(hour=0 if clock == "midnight" else 12, minute=0, second=0, microsecond=0)
    match = _PARTS_OF_CLOCK.fullmatch(_in_digits(clock))
    assert match is not None
    hour, minute = int(match["hour"]), match["minute"] or match["joined"]
    half = next((name for name, words in _HALVES.items() if clock.endswith(words)), "")
    if not half and part:
        half = "am" if part == "morning" else "pm"
    if (part == "night" or clock.endswith("night")) and not _FIRST_HOUR_OF_NIGHT <= hour < 12:
        return None  # of this day or the next
    if clock.endswith("trưa") and hour == 11:
        half = "am"
    if day.startswith(("tonight", "chiều", "tối", "đêm", "chieu", "toi")) and not half and hour <= 12:
        half = "pm"
    if not (
        minute
        or half
        or "giờ" in clock
        or clock.endswith(("h", "clock"))
        or (day and hour >= _FIRST_SURE_HOUR)
    ):
        return None
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return now.replace(hour=hour, minute=int(minute or 0), second=0, microsecond=0)


def _in_digits(clock: str) -> str:
    """An hour that is written in words, "eight thirty", as "8:30"."""
    spoken = re.match(SPOKEN_HOUR, clock)
    if spoken is None:
        return clock
    hour, *rest = _words(spoken[0])
    minute = _SPOKEN_MINUTES.get(" ".join(rest), 0)
    return f"{SPOKEN.index(hour) + 1}{f':{minute}' if rest else ''}{clock[spoken.end() :]}"


def _words(text: str) -> list[str]:
    return text.replace("-", " ").split()


def day_meant(text: str, now: datetime) -> date | None:
    """The day that a text means: today or later; None if it is no day."""
    written = " ".join(text.lower().split())
    last = now.replace(hour=23, minute=59, second=59)
    if numbers := re.fullmatch(r"(?:on )?(\d{1,2})/(\d{1,2})", written):
        month, day = (int(number) for number in numbers.groups())
        if max(month, day) <= 12 and month != day:
            return None  # either may be the month
        written = f"{MONTHS[month - 1]} {day}" if month <= 12 else f"{MONTHS[day - 1]} {month}"
    of_week = re.fullmatch(r"next week on (\w+day)|(\w+day) of next week", written)
    if of_week and (weekday := _day_number(of_week[1] or of_week[2])) is not None:
        return now.date() + timedelta(days=7 - now.weekday() + weekday)
    written = re.sub(r"^(?:on )?(?:\w+day|today),? (?=the \d)", "", written)
    if nth := re.fullmatch(
        r"(?:on )?(?:next month on the (\d{1,2})\w\w|the (\d{1,2})\w\w of next month)", written
    ):
        first = (now.replace(day=1) + timedelta(days=31)).replace(day=1)
        return _next_nth(int(nth[1] or nth[2]), first, first).date()
    if of_year := re.fullmatch(r"(?P<date>.+?),? (?P<year>\d{4})", written):
        found = day_meant(of_year["date"], now)
        with contextlib.suppress(ValueError):
            dated = found.replace(year=int(of_year["year"])) if found is not None else None
            return dated if dated is not None and dated >= now.date() else None
        return None
    if not _DAY_ALONE.fullmatch(written):
        return None
    try:
        return _on(re.sub(rf"\s+{_PART}$", "", written), last, now).date()
    except ValueError:
        return None
