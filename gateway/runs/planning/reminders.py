"""Reminders, alarms and timers that people ask for in English or Vietnamese, whole or in part. Pure."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from gateway.base.patterns import LatePattern, any_case
from gateway.runs.planning.vietnamese import in_plain_words
from gateway.runs.planning.when import DAY, SPAN, SPOKEN, SPOKEN_HOUR, TIME, TIME_WITHIN

Kind = Literal["reminder", "alarm", "timer"]

_ME_VI = r"(?:tôi|mình|tui|tớ|em|anh|chị|toi|minh)"
_MAKE_VI = (
    r"(?:(?:đặt|cài(?: đặt)?|hẹn|tạo|thêm|bật|lập|gửi|rung|lên lịch|xếp lịch|thiết lập)\s+)?"
    rf"(?:(?:cho(?: {_ME_VI})?|một|cái|chiếc|thêm|chuông|đồng hồ)\s+)*"
)
_FOR_VI = rf"(?:\s+(?:mới|cho {_ME_VI}|(?:trên|vào) lịch(?: của {_ME_VI})?|đồng hồ))*"
_ABOUT_VI = r"(?:\s+(?:là|phải|nhớ|việc|về|rằng|để|cho))*"
_MAKE = (
    r"(?:(?:set(?:ting)?|create|make|add|put|start|schedule|have|get|give|need|want|arrange|begin|run|place|use|activate|"
    r"initiate|turn|play|provide|request|enable)(?: (?:me|us|up|on|in|my|an?|the|another|brand|new|one|two|both))*\s+)?"
)
# Openings of a request.
_WISH = any_case(
    r"(?:(?:hey|hi|hello|oh|btw|ok|okay|so|and|please|pls|plz|kindly|now|also|just|then|can (?:you|u)|could (?:you|u)|"
    r"would you(?: mind)?|will you|(?:can|could|may|shall) (?:i|we)|we (?:can|could|should|need to)|maybe|"
    r"go ahead and|let['’]?s|do me a favor(?: and)?|hurry up(?: and)?|how about|may i suggest|you need to|if you could|"
    r"you (?:can|may)|i(?:['’]?d| would) love to|is it possible (?:for you )?to|would you be willing to|"
    r"are you able to|"
    r"help(?: me)?(?: to)?(?= (?:set|add|remind|create|make))|remember to(?= (?:remind|set))|assist me by|"
    r"i (?:must|wish(?: to)?)|i(?:['’]?ve)? got to|"
    r"i(?:['’]?d| would) (?:really )?like(?: (?:for )?you)?(?: to)?(?: have)?|"
    r"i(?:['’]?ll| will| shall)(?: need)?(?: you)?(?: to)?|"
    r"i (?:really )?(?:need|want|wanna|gotta|want for)(?: you)?(?: to)?(?: have)?|i have to|"
    r"(?:do not|don['’]?t) forget to(?= (?:set|make|create|add|put))|"
    r"make sure(?: to| you)?(?= (?:set|remind|add|put|take|remove|my|the|an?)\b)|be sure to|"
    r"hãy|làm ơn|vui lòng|giúp (?:tôi|mình|em|anh|chị)|nhờ|ê|này|bạn ơi|bạn(?: (?:có thể|làm ơn|vui lòng))*|có thể|"
    rf"(?:{_ME_VI} )?(?:muốn|cần)(?: (?:bạn|có|được))*|(?:đừng quên|nhớ)(?= (?:nhắc|đặt|cài)))\b[\s,]*)+"
)
POLITE_END = any_case(
    r"(?:[\s,.!?]+(?:please|pls|plz|thanks|thank you|thx|for me|will you|would you|can you|ok|okay|"
    r"(?<!from )(?:right )?now|"
    rf"nhé|nha|ạ|với|được không|được chứ|cho {_ME_VI}|(?:bạn có thể (?:đặt |nhắc )?)?(?:giùm|dùm|hộ|giúp)(?: {_ME_VI})?"
    rf"(?: (?:được )?không)?))*[\s.,!?\"]*$"
)
# "Remind me of the date", "remind me what we said": not of something to do.
_QUESTION = r"(?:what|who|whose|when|where|which|why|how|if|whether)\b"
_ABOUT = r"(?:\s*,?\s*(?:to|that|about|of|for|:|là|rằng|việc)\s+|\s*:\s*|\s+(?=\S))"
_FORMS: dict[Kind, tuple[str, ...]] = {
    "timer": (
        rf"{_MAKE}(?:(?:an?|the|my|another|new)\s+)*(?:timers?|countdown)"
        r"(?:\s+(?:to be|be|that is|that['’]s|set|to go off|going|started|on|exactly|please))*"
        r"(?:\s+(?:for|to|called|named)(?:\s+(?P<text>.+))?)?",
        r"(?:(?:start|begin|do)(?:\s+an?)?\s+)?(?:counting|count)(?:\s+me)?\s*down",
        r"(?:tell|notify|alert) me (?:when|after|once)(?:\s+(?:have|has|is|are)\s+(?:passed|over|up|gone))",
        r"let me know",
        r"(?:hẹn giờ|bấm giờ|đếm ngược)(?: (?:tới|đến|vào|lúc))?",
    ),
    "alarm": (
        rf"{_MAKE}(?:(?:an?|the|my|another|new|two|both)\s+)*alarms?(?:\s+clock)?"
        r"(?:\s+(?:is|to be|be|set|on|up|for|to|go(?:es)? off|goes|ring|sound|wake me(?: up)?|please))*"
        r"(?:\s+(?:for|to|called|named|labell?ed|about)\s+(?P<text>.+))?",
        r"(?:wake|get) me(?:\s+up)?(?:\s+(?:for|to|so)\s+(?P<text>.+))?|help me (?:to )?get up",
        r"(?:wake|get|help) me(?:\s+(?:wake\s+)?up)? with an alarm",
        r"be woken(?: up)?|ring (?:me|my phone)",
        rf"{_MAKE_VI}(?:chuông )?(?:báo thức|chuông){_FOR_VI}(?:{_ABOUT_VI}\s+(?P<text>.+))?",
        rf"(?:đánh thức {_ME_VI}(?: dậy)?|(?:gọi|kêu) {_ME_VI}(?: thức)? dậy)(?:{_ABOUT_VI}\s+(?P<text>.+))?",
    ),
    "reminder": (
        rf"{_MAKE}(?:(?:an?|the|my|another|new|one)\s+)*reminders?(?:\s+(?:alarm|set|up|on|in|made|please|for me))*"
        rf"(?:{_ABOUT}(?P<text>.+))?",
        rf"(?:remind|ping|nudge|alert) me(?: of it)?(?:{_ABOUT}(?!{_QUESTION})(?P<text>.+))?",
        r"help me (?:to )?remember to (?P<text>.+)",
        rf"(?:i )?(?:don['’]?t|do not|dont) (?:let me|want to|wanna) forget(?:{_ABOUT}(?P<text>.+))?",
        r"tell me to (?P<text>.+)",
        rf"be (?:reminded|notified)(?:{_ABOUT}(?P<text>.+))?",
        r"(?:(?:to|that|(?:i\s+)?(?:need|have|got|must)(?:\s+to)?)\s+)?(?!(?:do|don['’]?t|not|never|you|he|she|they|it|this|that|who|what|why|how|when)\b)"
        r"(?P<text>.+?),?\s+(?:(?:so|and)\s+)?(?:(?:please|pls|can you)\s+)*(?:remind me|ping me)"
        r"(?:\s+(?:about|of|to do) (?:it|that))?",
        rf"(?:(?:đến|tới)\s+)?(?:nhớ\s+)?(?:nhắc|nho nhac|nhac)(?:\s+nhở)?\s+{_ME_VI}{_ABOUT_VI}(?:\s+(?P<text>.+))?",
        rf"(?:(?:đến|tới)\s+)?(?:nhớ\s+)?báo (?:cho )?{_ME_VI}{_ABOUT_VI}(?:\s+(?P<text>.+))?",
        r"nhớ việc (?P<text>.+)",
        rf"{_MAKE_VI}(?:lời nhắc|nhắc nhở|cảnh báo nhắc nhở){_FOR_VI}(?:{_ABOUT_VI}\s+(?P<text>.+))?",
        rf"(?:{_ME_VI} có (?:một )?)?(?P<text>.+?),?\s+(?:(?:hãy|vui lòng|làm ơn|nhớ|đừng quên)\s+)+"
        rf"nhắc(?: nhở)? {_ME_VI}",
    ),
}
_WORDINGS = tuple((kind, LatePattern(words, re.S)) for kind, forms in _FORMS.items() for words in forms)
# Nothing to be reminded of.
_VAGUE = any_case(
    r"(?:(?:to|about|of|for)\s+)?(?:it|that|this|something(?: (?:later|for me))?|some ?things?|me|us|myself|again|"
    r"please|later|"
    r"(?:at )?(?:a|some) (?:later|other)? ?(?:time|date|point)|in a (?:bit|while)|soon|for me|"
    r"(?:get|do) something(?: done)?|"
    r"(?:gì|việc) (?:đó|này))"
)
_DANGLING = any_case(
    r"(?:\s*\b(?:every|each|mỗi|hàng|for|at|on|by|from|starting|of|to go off|vào|lúc|cho|đến|tới|den))+\s*$"
)
_SPAN = any_case(rf"(?:(?:for|of|from|in|after|trong)\s+)?(?P<time>{SPAN})(?:\s+(?:from now|nữa))?")
_DAY = any_case(DAY)


# In English and Vietnamese.
_NAMES: dict[Kind, tuple[str, str]] = {"alarm": ("alarm", "báo thức"), "timer": ("timer", "hẹn giờ")}


class Reminder(Struct, frozen=True, kw_only=True):
    """A request for a reminder; ``time`` and ``text`` are "" where the words lack them."""

    kind: Kind
    time: str
    text: str
    vietnamese: bool = False

    @property
    def says(self) -> str:
        """Its text, "alarm", or "timer: 10 minutes"."""
        if self.text or self.kind == "reminder":
            return self.text
        name = _NAMES[self.kind][self.vietnamese]
        return f"{name}: {self.time.removeprefix('in ')}" if self.kind == "timer" else name


def without_wish(said: str) -> str:
    """A request without what people put before it."""
    wish = _WISH.match(said)
    return said[wish.end() :].strip() if wish and wish.end() < len(said) else said


def in_one_language(text: str) -> str:
    """``text`` with the English words for an alarm and a timer: one may be set in one language and ended in another."""
    for english, vietnamese in _NAMES.values():
        text = re.sub(vietnamese, english, text, flags=re.IGNORECASE)
    return text


def reminder_in(text: str) -> Reminder | None:
    """The one reminder, alarm or timer that a text asks for, and nothing else; None if it is anything else."""
    plain = _plain(text)
    is_timer = bool(_TIMER.search(plain))
    if _RECALLS.match(plain):
        return None
    spans = list(_SPAN.finditer(plain)) if is_timer else []
    times = spans or [m for m in TIME_WITHIN.finditer(plain) if not _DEADLINE.search(plain[: m.start()])]
    for chosen in [*_choices(times), []]:
        rest, time = _plain(_without(plain, chosen)), " ".join(match["time"] for match in chosen)
        for kind, words in _WORDINGS:
            match = words.fullmatch(rest)
            if match is None:
                continue
            if _TIMED_ONLY.match(rest) and not (spans or (time and kind == "reminder")):
                return None
            about = _OF_REMINDING.sub("", (match.groupdict().get("text") or "").strip(" ,."))
            if kind == "alarm" and _MORNING.fullmatch(time):
                time = f"{time} am" if "wake" in rest.lower() or "get" in rest.lower() else time
            if _NO_TEXT.match(about):
                continue
            if kind != "reminder" and _HOUR.fullmatch(about):
                about, time = "", f"{time} at {about}".strip()  # "an alarm for 9 tomorrow"
            if kind != "reminder" and (TIME_WITHIN.search(about) or _NUMBERED.match(about)):
                return None  # several
            time = f"in {time}" if spans and time else time
            vietnamese = bool(_VIETNAMESE.search(plain))
            if kind == "timer" and vietnamese and time and not spans:
                kind = "alarm"  # "hẹn giờ tới 7 giờ tối"
            text = "" if _VAGUE.fullmatch(about) else about
            return Reminder(kind=kind, time=time, text=text, vietnamese=vietnamese)
    return None


def reminders_in(text: str) -> list[Reminder]:
    """The reminders that a text asks for, and nothing else: one, one a part, or one for each of two times."""
    if one := reminder_in(text):
        return [one]
    plain = _plain(text)
    parts = [reminder_in(part) for part in _PARTS.split(plain)]
    plain = _ONE_OF.sub(" for", _ANOTHER.sub(" and ", plain))
    two = _TWO_TIMES.search(plain)
    if len(parts) < 2 and two is not None:
        first, second = two["first"], two["second"]
        parts = [reminder_in(plain.replace(two[0], each, 1)) for each in (first, second)]
    found = [part for part in parts if part is not None and part.time]
    return found if len(found) == len(parts) else []


_PARTS = any_case(
    r",?\s+(?:and|và)\s+"
    r"(?=(?:(?:an?|the|another|one)\s+)?(?:other\s+)?(?:alarm|timer|reminder)|(?:remind|wake) me\b|nhắc\b)"
)
# "An alarm for 9 am and another one for 11 am", "two alarms, one at 9 and the next at 11".
_ANOTHER = any_case(
    r",?\s+and\s+(?:another|one|an?|an?\s+second|the\s+(?:next|other|second))(?:\s+(?:one|alarm))?"
    r"(?:\s+(?:set|to\s+go\s+off))*\s+(?:for|at)\b"
)
_ONE_OF = any_case(r",?\s+one\s+(?:for|at)\b")
_TWO_TIMES = any_case(
    TIME.replace("?P<time>", "?P<first>") + r"\s+(?:and|và)\s+" + TIME.replace("?P<time>", "?P<second>")
)
_VIETNAMESE = any_case(
    rf"\b(?:báo thức|hẹn giờ|bấm giờ|đếm ngược|đánh thức|nhắc|nhac|dậy|chuông|nhớ việc|báo (?:cho )?{_ME_VI})\b"
)
_TIMER = any_case(
    r"\b(?:timers?|countdown|count(?:ing)?(?: me)? down|tell me (?:when|after|once)|let me know (?:in|after)|"
    r"hẹn giờ(?! (?:tới|đến|vào|lúc)\b)|bấm giờ|đếm ngược)\b"
)
_RECALLS = any_case(r"remind me (?:again )?of (?!(?:it|this|that|something)\b)")
# Without a time it is no reminder: "nhớ việc hôm đó không?"
_TIMED_ONLY = any_case(r"tell me to|let me know|nhớ việc|nhớ báo|báo")
# "Before Friday" is no time to be reminded at.
_DEADLINE = any_case(r"\b(?:before|until|till|trước|trước khi)\s*$")
_NO_TEXT = any_case(r"at\b|.*(?:[;!?]|\.\s|\bbut$)", re.S)
_OF_REMINDING = any_case(
    r"(?:(?:alert|remind|notify|tell) me (?:(?:when|that) it['’]s time )?to|"
    r"so (?:that )?i (?:do not|don['’]?t) forget(?: to| about)?)\s+"
)
_HOUR = any_case(rf"\d{{1,2}}(?:[:.]\d\d)?|{SPOKEN_HOUR}")
_NUMBERED = any_case(rf"\d|{SPOKEN_HOUR}")
# "Quarter past six" is 6:15.
_PAST_HOUR = any_case(
    rf"(?:a )?(?P<part>quarter|half) (?:past|after) (?P<hour>{'|'.join(SPOKEN)}|\d{{1,2}})\b"
)
_MORNING = any_case(r"(?:.*\s)?(?:at\s+)?(?:[4-9]|1[01]|four|five|six|seven|eight|nine|ten|eleven)")


def _plain(text: str) -> str:
    said = POLITE_END.sub("", in_plain_words(" ".join(text.split()).strip(' "“”')))
    return without_wish(_PAST_HOUR.sub(_in_digits, said))


def _in_digits(found: re.Match[str]) -> str:
    hour = found["hour"].lower()
    number = SPOKEN.index(hour) + 1 if hour in SPOKEN else hour
    return f"{number}:{'15' if found['part'].lower() == 'quarter' else '30'}"


def _choices(times: list[re.Match[str]]) -> list[list[re.Match[str]]]:
    """The times to try: a day and an hour that stand apart, or else the last time and then the first one."""
    if len(times) == 2 and any(_DAY.fullmatch(match["time"]) for match in times):
        return [times]
    return [[match] for match in dict.fromkeys([*times[-1:], *times[:1]])]


def _without(text: str, times: list[re.Match[str]]) -> str:
    for match in reversed(times):
        before = _DANGLING.sub("", text[: match.start()])
        text = f"{before.rstrip(' ,')} {text[match.end() :].lstrip(' ,')}".strip()
    return _DANGLING.sub("", text)
