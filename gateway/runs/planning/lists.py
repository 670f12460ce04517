"""Read requests about the list of tasks, in English or Vietnamese: put on it, take off it, show it. Pure."""

from __future__ import annotations

import re

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.runs.planning import list_words
from gateway.runs.planning.reminders import POLITE_END, without_wish

_DAY = any_case(rf"\b(?:(?:for|on|of) )?(?P<day>(?:{list_words.SOME_DAY})(?:,? \d{{4}})?)\b")
_OF_YOU = any_case(r"(?!.*\bremind me\b).*\b(?:(?:do|did|have|are|were) you|your|you (?:complete|do|have))\b")
_PUT_OR_TAKEN = any_case(rf"(?:add|put|{list_words.TAKE})\b")
_PART_OF_TODAY = any_case(r"\bthis (?:morning|afternoon|evening)\b")
# Without a day it asks for advice.
_ADVICE = any_case(r"what (?:(?:must|should) i do\b|am i supposed to do$)|.*\babout (?:it|this|that|them)\b")
_WEEK = any_case(r"(?:next|this) (?:week|month|year|weekend)")
_CALENDAR = any_case(r"\b(?:calendar|schedule|planner|diary|lịch)\b")
_REMINDERS = any_case(r"\b(?:reminders?|alarms?|timers?|remember)\b")
_ENTRIES = any_case(
    r"\b(?:appointments?|meetings?|events?|tasks?|to-?dos?|reminders?|alarms?|timers?|chores?|errands?|scheduled|planned|"
    r"due|việc|lịch)\b"
)
_PARTS = any_case(
    rf"\s*(?:,|;|\.)?\s+(?:and|then|also|và|rồi)\s+(?:also |then |while you['’]re at it,? )?"
    rf"(?:please )?(?=(?:{list_words.PUT}|{list_words.TAKE})\b)"
)
# "Add milk for Monday and bread for Friday" lacks a verb.
_ANOTHER_DAY = any_case(
    rf"(?P<day>\b(?:for|on) (?:{list_words.SOME_DAY})),? (?:and|và) (?!{list_words.PUT}\b|{list_words.TAKE}\b)"
    rf"(?=\S[^,]{{1,80}} (?:for|on) (?:{list_words.SOME_DAY})$)"
)
_ITEMS = any_case(r"\s*,\s*(?:and |và )?|\s+(?:and|và|với|&)\s+")
_FEW_WORDS = 3
_SENTENCES = re.compile(r"[;!?]|\.\s")
_VAGUE = any_case(
    r"(?:it|that|this|them|these|those|something|some ?things?|one|"
    r"(?:this|that|the) (?:event|item|task|entry|thing|appointment|meeting)|"
    r"(?:an? )?(?:new )?(?:items?|tasks?|things?|events?))"
)
_INTRODUCED = any_case(
    r"(?:(?:remember|task) to|reminder (?:to|for|about|of)|the task (?:of|to)|"
    r"an? (?:task|todo|to-do|reminder) (?:to|for|of)|"
    r"(?:i|we) (?:have|put|added|need|want)|(?:told|asked) you to (?:add|put)|(?:already )?(?:got|added|put)|"
    r"gotten around to (?:adding|putting))\s+"
)


class ListRequest(Struct, frozen=True, kw_only=True):
    """``what`` has the things as written, ``day`` the day; a ``has`` with ``adds`` puts on the list what is not there.

    ``reminders`` limits what is shown to these. What is shown may not be the list that is meant if it is not ``named``:
    "what else do I need to do?"
    """

    op: list_words.Op
    what: str = ""
    day: str = ""
    adds: bool = False
    reminders: bool = False
    named: bool = True
    of_shopping: bool = False

    @property
    def titles(self) -> list[str]:
        """Titles put on the list: one, or one for each short thing."""
        return things_in(self.what, short=self.of_shopping)


def list_requests(text: str) -> list[ListRequest]:
    """Requests of a text for the list, in order; none if the text asks for anything else."""
    plain = _bare(text)
    if re.match(list_words.PUT, plain, re.IGNORECASE):
        plain = text = _ANOTHER_DAY.sub(r"\g<day> and add ", plain)
    whole = _request(plain, _polite_only(text))
    if whole and (whole.adds or whole.op == "show" or not _PARTS.search(plain)):
        return [whole]
    found: list[ListRequest] = []
    parts = _PARTS.split(plain)
    of_list = [_request(_bare(part), part) for part in parts]
    for part, request in zip(parts, of_list, strict=True):
        if request is None and any(of_list) and _PUT_OR_TAKEN.match(_bare(part)):
            # "… and put papayas on it", "… and add carrots", "remove milk and …"
            again = re.sub(r"\s+(?:on|to|from|off)\s+(?:it|there|that)$", "", _bare(part))
            way = "off" if re.match(list_words.TAKE, again, re.I) else "on"
            request = _request(f"{again} {way} my list", "")
        if request is None:
            return []
        found.append(request)
    return found


def things_in(what: str, *, short: bool) -> list[str]:
    """The things that are listed, each short; one text is one thing."""
    parts = [part.strip() for part in _ITEMS.split(what) if part.strip()]
    words = [len(part.split()) for part in parts]
    listed = short or len(parts) > 2 or ("," in what and min(words, default=0) > 1)
    return parts if listed and max(words, default=0) <= _FEW_WORDS else [what]


def _polite_only(text: str) -> str:
    return POLITE_END.sub("", " ".join(text.split()))


def _bare(text: str) -> str:
    return without_wish(_polite_only(text))


def _request(plain: str, said: str) -> ListRequest | None:
    if shown := _shown(plain):
        return shown
    for op, pattern in list_words.PATTERNS:
        match = pattern.fullmatch(plain) or pattern.fullmatch(said)
        if match is None:
            continue
        groups = match.groupdict()
        what, day = _INTRODUCED.sub("", groups.get("what") or ""), groups.get("day") or ""
        if _SENTENCES.search(what):
            continue
        if op in ("has", "show") and _WEEK.fullmatch(day):
            day = ""
        return ListRequest(
            op=op,
            what="" if _VAGUE.fullmatch(what.strip()) else _unquoted(what.strip(" ,.:")),
            day=day or _day_within(plain),
            adds=bool(groups.get("add")),
            of_shopping=bool(re.search(r"\b(?:shopping|grocer(?:y|ies)|mua sắm|đi chợ|mua)\b", plain, re.I)),
        )
    return None


def _unquoted(what: str) -> str:
    quoted = re.fullmatch(r"['\"“‘](?P<inner>.+)['\"”’]", what)
    return quoted["inner"] if quoted else what


def _day_within(plain: str) -> str:
    """The day that the text of a calendar's entry has: "the meeting on 1 March", "my friday calendar"."""
    found = _DAY.search(plain) if _CALENDAR.search(plain) else None
    return found["day"] if found else ""


def _shown(plain: str) -> ListRequest | None:
    if list_words.SHOWN_VI.fullmatch(plain):
        return ListRequest(op="show")
    plain = _PART_OF_TODAY.sub("today", plain)
    day = _DAY.search(plain)
    rest = f"{plain[: day.start('day')]} {plain[day.end() :]}" if day else plain
    if day and list_words.OF_A_DAY.fullmatch(" ".join(rest.strip(" ,.?!").split())):
        return ListRequest(op="show", day=day["day"])
    if (
        re.match(r"(?:add|put|write)\b", plain, re.I)
        or _OF_YOU.search(plain)
        or (day is None and _ADVICE.match(plain))
        or not list_words.ASKS.search(list_words.LISTED.sub(" ", plain))
        or not (list_words.LISTED.search(plain) or list_words.OPEN.search(plain))
    ):
        return None
    if re.search(r"\blooks? like\b", plain, re.I) and day is None and not list_words.LISTED.search(plain):
        return None
    words = re.findall(r"\w[\w'’-]*", re.sub(r"['’]s\b", "", list_words.LISTED.sub(" ", rest)))
    if not all(list_words.SHOWN.fullmatch(word) for word in words):
        return None
    return ListRequest(
        op="show",
        day=day["day"] if day else "",
        reminders=bool(_REMINDERS.search(plain)),
        named=bool(day or list_words.LISTED.search(plain) or _ENTRIES.search(plain)),
    )
