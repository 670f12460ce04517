"""Read the request in a chat's last message, with the messages that it answers a question about. Pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.base.patterns import any_case
from gateway.memory.learning.plain import FILLERS, plain_clauses
from gateway.runs.planning.beyond import RECURRING
from gateway.runs.planning.lists import ListRequest, list_requests
from gateway.runs.planning.reminders import Reminder, reminders_in
from gateway.runs.planning.vietnamese import in_plain_words
from gateway.runs.planning.when import DAY, SPAN, TIME, TIME_WITHIN, day_meant, moment

# A longer message was pasted, and is no request.
_LONGEST = 400
_MOST_WORDS = 15
_TIME = any_case(rf"(?:for |at |on |in |to )?(?:{TIME})")
_SPAN = any_case(rf"(?:for |in )?(?P<time>{SPAN})")
DAY_WITHIN = any_case(DAY)
_HALF = any_case(r"(?:in the )?(?P<half>morning|afternoon|evening|am|pm|a\.m\.?|p\.m\.?)")
_NUMBER = any_case(r"\d{1,2}(?:[:.]\d\d)?")
_REFUSED = any_case(
    r"\W*(?:no|nope|never ?mind|cancel|stop|forget (?:it|that)|nothing|don['’]?t|thôi|không|bỏ đi|hủy)\b.*"
)
# Behind a message about the list: "I returned the books."
_THE_REST = any_case(
    r"\W*(?:(?:and|so|ok|okay) )*(?:what(?:['’]?s| is| else is) (?:still )?(?:left|open|on it|there)|"
    r"(?:is there )?anything (?:else )?left)(?: to do| on (?:it|there))?\W*|"
    r"\W*(?:(?:còn|vậy còn) (?:việc )?gì nữa(?: không)?|(?:việc |những |cái )?gì còn lại|"
    r"còn lại (?:việc )?gì)\W*"
)
_UNDO = any_case(
    r"\W*(?:(?:no|sorry|oh|oops|please|actually)\W+)*(?:cancel|delete|remove|forget|undo|scrap)(?: about)? "
    r"(?:it|that|this|that one|the last one)(?: again|,? please)?\W*|"
    r"\W*(?:hủy|huỷ|bỏ|xóa|xoá)(?: cái đó| việc đó| nó)? đi\W*"
)
# "and eggs", behind what was put on the list
_MORE = any_case(
    r"\W*(?:(?:oh|ah)\W+)?(?:(?:and|plus|also|some|a few|và|thêm)\s+)+"
    r"(?P<what>(?:[\w'’-]+ ){0,3}?[\w'’-]+?)(?:,? (?:please|pls|too|as well|nữa|nhé))*\W*"
)
# "Actually make it Thursday", "no, at 11:30", "push it back an hour", behind a reminder that was set
_INSTEAD = (
    r"(?:no|nope|oops|wait|sorry|actually|hm+|rather|better|(?:i|we) mean(?:t)?|ý (?:tôi|mình|em) là|không|thôi|nhầm|"
    r"xin lỗi)"
)
_MOVE = (
    r"(?:(?:make|move|change|set|shift|switch|push|bring|postpone|delay|reschedule) "
    r"(?:it|that|this|the (?:reminder|alarm|timer|time|hour|day))(?: back| forward)?(?: to be)?|"
    r"(?:đổi|dời|chuyển|sửa|lùi)(?: lại| nó| giờ| lịch)*(?: (?:sang|thành|qua|đến|tới))?)"
)
_MOVES = any_case(
    r"\W*(?:(?:oh|ok|okay|please|and|but|can you|could you|à|ờ)\b\W*)*"
    rf"(?:{_INSTEAD}\b\W*)*(?:{_INSTEAD}|{_MOVE})\b\W*"
    r"(?:(?:to|for|at|on|by|lúc|vào) )*(?P<time>\S.*?)"
    r"(?:[\s,]+(?:instead|please|pls|then|rather|earlier|later|nhé|nha|đi|ạ))*\W*"
)
_EARLIER = any_case(r"\b(?:earlier|sớm hơn|(?:bring|move) (?:\w+ ){1,2}forward)\b")
_LATER = any_case(r"\b(?:by|back|later|postpone|delay|muộn hơn|lùi)\b")
# "Remind me an hour before", behind a message with the time of something
_AHEAD = any_case(
    rf"(?P<span>{SPAN}) (?:before|ahead|prior|earlier|in advance|beforehand)(?: (?:it|that|then|the \w+))?"
    r"(?: (?:starts?|begins?))?|trước(?: đó)? (?P<span_vi>\d+ ?\w+)|(?P<before_vi>\d+ ?\w+) trước đó"
)
_HAVING = any_case(
    r"\W*(?:(?:i|we)(?:['’]ve)? (?:have|got|need)(?: to)?|there(?:['’]s| is)|mình có|tôi có|em có)\s+(?:an? |my )?"
)
_LEADING = any_case(r"(?:(?:ok|okay|yes|please|to|remind me to|about|it['’]s|để|là)\s+)+")


# Does not answer the question for a title.
_NO_THING = any_case(
    r"(?:i['’]?(?:m|ve|d|ll)?|you|what|who|whose|when|where|which|why|how|is|are|was|do|does|did|can|could|tell|show|hi|"
    r"hello|thanks?|thank you|ok|okay|yes|tôi|mình|bạn)\b.*",
    re.S,
)


# "…, oh and remind me at 7 to call mum" asks for it beside something else.
_AND_REMIND = any_case(
    r"(?:,|,?\s+oh)\s+(?:(?:oh|also|btw|please)\b[,\s]*)*(?:and|và)\s+"
    r"(?=(?:also\s+|please\s+)*(?:remind|wake|set an?)\b|(?:nhớ\s+)?nhắc\b)"
)
_FILLER = any_case(rf"\A\W*(?:(?:{FILLERS}|by the way|one more thing|nhân tiện)\b[\s,:]*)+")


class ParsedRequest(Struct, frozen=True, kw_only=True):
    """``completes`` is the index of the message that lacked what this one adds, or -1."""

    lists: list[ListRequest] = []
    reminders: list[Reminder] = []
    repeats: bool = False
    completes: int = -1


def understood(texts: Sequence[str], now: datetime) -> ParsedRequest | None:
    """Request of a user's last message, if it asks for nothing else."""
    *earlier, last = texts
    if len(last) > _LONGEST:
        return None
    lists = list_requests(last)
    reminders = [] if lists else reminders_in(last)
    if len(reminders) == 1 and (ahead := _AHEAD.fullmatch(reminders[0].text)) and not reminders[0].time:
        reminders = [_ahead(reminders[0], earlier, ahead, now)]
    if lists or reminders:
        repeats = bool(reminders and RECURRING.search(last))
        return ParsedRequest(lists=lists, reminders=reminders, repeats=repeats)
    more = _MORE.fullmatch(last)
    if more and earlier and not _NO_THING.fullmatch(more["what"]):
        put = understood(earlier, now)
        if put and put.lists and put.lists[-1].op == "add":
            return ParsedRequest(lists=[msgspec.structs.replace(put.lists[-1], what=more["what"])])
    if (moves := _MOVES.fullmatch(last)) and (moved := _moved(earlier, moves, now)):
        return moved
    answer = last.strip(' \t\n.!,"')
    is_answer = "?" not in last and len(answer.split()) <= _MOST_WORDS and not _REFUSED.fullmatch(answer)
    before = understood(earlier, now) if earlier and answer and is_answer else None
    if before is None and earlier and is_answer and (within := reminder_within(earlier[-1], now)):
        before = ParsedRequest(reminders=[within])
    if before is None or not is_open(before, now):
        return None
    completes = before.completes if before.completes >= 0 else len(earlier) - 1
    if before.lists:
        request = _completed_list(before.lists[0], answer)
        return ParsedRequest(lists=[request], completes=completes) if request else None
    reminder = _completed(before.reminders[0], answer, repeats=before.repeats)
    return ParsedRequest(reminders=[reminder], completes=completes) if reminder else None


def reminder_within(text: str, now: datetime) -> Reminder | None:
    """The one reminder that a clause of a longer message asks for, if it has text and time and comes once."""
    if len(text) > _LONGEST or RECURRING.search(text):
        return None
    clauses = [part for clause in plain_clauses(text, tasks=True) for part in _AND_REMIND.split(clause.text)]
    found = [each for clause in clauses for each in reminders_in(_FILLER.sub("", clause))]
    timed = [each for each in found if lacks_of_reminder(each, now) in ("", "clock", "past")]
    return timed[0] if len(timed) == 1 else None


def following(text: str, titles: Sequence[str]) -> ParsedRequest | None:
    """Request behind a message that changed the tasks of these titles: for the rest, or to take it back."""
    if not titles or len(text) > _LONGEST:
        return None
    if _THE_REST.fullmatch(text):
        return ParsedRequest(lists=[ListRequest(op="show")])
    if _UNDO.fullmatch(text):
        return ParsedRequest(lists=[ListRequest(op="drop", what=each) for each in titles])
    return None


def shows(text: str) -> bool:
    """Whether a message only asks for the list."""
    short = len(text) <= _LONGEST
    return short and bool(_THE_REST.fullmatch(text) or any(each.op == "show" for each in list_requests(text)))


def is_open(found: ParsedRequest, now: datetime) -> bool:
    """Whether the one request lacks something, which the user is asked for."""
    if found.lists:
        [request, *others] = found.lists
        return not others and bool(lacks_of_list(request, now))
    return len(found.reminders) == 1 and bool(found.repeats or lacks_of_reminder(found.reminders[0], now))


def lacks_of_list(request: ListRequest, now: datetime) -> Literal["", "what", "day"]:
    """Missing part of a request."""
    if not request.what and request.op in ("add", "drop", "done", "has"):
        return "what"
    return "day" if request.day and day_meant(request.day, now) is None else ""


def lacks_of_reminder(reminder: Reminder, now: datetime) -> Literal["", "text", "time", "clock", "past"]:
    """Missing part of a reminder; with "clock" its time is no moment."""
    if reminder.kind == "reminder" and not reminder.text:
        return "text"
    if not reminder.time:
        return "time"
    try:
        moment(reminder.time, now)
    except InvalidRequestError as error:
        return "past" if "past" in error.message else "clock"
    return ""


def _ahead(reminder: Reminder, earlier: Sequence[str], ahead: re.Match[str], now: datetime) -> Reminder:
    """A reminder of what the newest message with one time names, by a span before it; without one, of nothing yet."""
    span = next(each for each in ahead.groups() if each)
    for text in reversed(earlier):
        times = list(TIME_WITHIN.finditer(text)) if len(text) <= _LONGEST else []
        days = [each for each in times if DAY_WITHIN.fullmatch(each["time"])]
        hours = [each for each in times if each not in days]
        with contextlib.suppress(InvalidRequestError):
            if len(hours) == 1 and len(days) <= 1:  # they may stand apart
                at = moment(" ".join(each["time"] for each in (*days, *hours)), now)
                due = at - (moment(f"in {span}", at) - at)
                rest = text
                for each in reversed(times):
                    rest = f"{rest[: each.start()]} {rest[each.end() :]}"
                what = _HAVING.sub("", " ".join(rest.split()).strip(" .,!"))
                said = f"{what} ({at:%H:%M})"
                return msgspec.structs.replace(reminder, time=f"{due:%Y-%m-%d %H:%M}", text=said)
    return msgspec.structs.replace(reminder, text="")


def _moved(earlier: Sequence[str], request: re.Match[str], now: datetime) -> ParsedRequest | None:
    """The one reminder that the last message before set, for another time; None if there is none, or it is no time."""
    at = next((at for at in range(len(earlier) - 1, -1, -1) if not shows(earlier[at])), -1)
    before = understood(earlier[: at + 1], now) if at >= 0 else None
    if before is None and at >= 0 and (within := reminder_within(earlier[at], now)):
        before = ParsedRequest(reminders=[within])
    if before is None or len(before.reminders) != 1 or is_open(before, now):
        return None
    [reminder] = before.reminders
    time = _other_time(reminder, request["time"], request[0], now)
    moved = msgspec.structs.replace(reminder, time=time)
    return (
        ParsedRequest(reminders=[moved], completes=at) if time and not lacks_of_reminder(moved, now) else None
    )


def _other_time(reminder: Reminder, to: str, request: str, now: datetime) -> str:
    """The time of a reminder that a request moves ``to`` another day, hour, or by a span; "" if that is unclear."""
    before, to = moment(reminder.time, now), in_plain_words(to)
    if span := _SPAN.fullmatch(to):
        if to != span["time"] or _SPAN.fullmatch(reminder.time):
            return f"in {span['time']}"
        by = moment(f"in {to}", before) - before
        earlier, later = _EARLIER.search(request), _LATER.search(request)
        return f"{before - by if earlier else before + by:%Y-%m-%d %H:%M}" if earlier or later else ""
    found = _TIME.fullmatch(f"at {to}" if _NUMBER.fullmatch(to) else to)
    if found is None or reminder.kind == "timer":
        return ""
    if DAY_WITHIN.fullmatch(found["time"]):
        return f"{found['time']} {before:%H:%M}"
    day = DAY_WITHIN.search(reminder.time)
    time = f"{day[0]} {found['time']}" if day and not DAY_WITHIN.search(found["time"]) else found["time"]
    half = f"{time} {before:%p}".lower()  # of the hour before: "at 5 pm" and "no, at 6"
    lacks = lacks_of_reminder(msgspec.structs.replace(reminder, time=time), now)
    return half if lacks == "clock" else time


def _completed_list(request: ListRequest, answer: str) -> ListRequest | None:
    if not request.what and request.op in ("add", "drop", "done", "has"):
        thing = _LEADING.sub("", answer)
        return None if _NO_THING.fullmatch(answer) else msgspec.structs.replace(request, what=thing)
    return msgspec.structs.replace(request, day=answer) if request.day else None


def _completed(reminder: Reminder, answer: str, *, repeats: bool) -> Reminder | None:
    """The reminder with what the answer adds; None if that is nothing of it."""
    if half := _HALF.fullmatch(answer):
        clock = (
            f"{reminder.time} in the {half['half']}"
            if len(half["half"]) > 4
            else f"{reminder.time} {half['half']}"
        )
        return msgspec.structs.replace(reminder, time=clock) if reminder.time else None
    if _NUMBER.fullmatch(answer):
        answer = f"at {answer}"
    found = _SPAN.search(answer) if reminder.kind == "timer" else _TIME.search(answer)
    if found is None:
        text = "" if repeats else _LEADING.sub("", answer)
        is_thing = bool(text) and not reminder.text and not _NO_THING.fullmatch(answer)
        return None if not is_thing else msgspec.structs.replace(reminder, text=text)
    rest = f"{answer[: found.start()]} {answer[found.end() :]}".strip(" ,")
    rest = _LEADING.sub("", f"{rest} ").strip()
    if rest and reminder.text:
        return None
    day = DAY_WITHIN.search(reminder.time)
    span = f"in {found['time']}" if reminder.kind == "timer" else found["time"]
    time = span if day is None or DAY_WITHIN.search(found["time"]) else f"{day[0]} {found['time']}"
    return msgspec.structs.replace(reminder, time=time, text=reminder.text or rest)
