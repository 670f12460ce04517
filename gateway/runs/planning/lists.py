"""What people say about their list of tasks, in English or Vietnamese: put on it, take off it, show it. Pure."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from gateway.runs.planning.reminders import WISH
from gateway.runs.planning.when import DAY

Op = Literal["add", "drop", "done", "clear", "show", "has"]

_OWN = r"(?:(?:my|the|our|this|today['’]s|a) )"
_KIND = r"(?:to[- ]?dos?|tasks?|shopping|grocery|groceries|reminders?|chores?|agenda|daily|buying|work)"
_LIST = (
    rf"(?:{_OWN}(?:\w+ ){{0,2}}?(?:{_KIND}[ -])+lists?|{_OWN}lists?|(?:{_KIND}[ -])+lists?|"
    rf"{_OWN}(?:to[- ]?dos?|tasks|chores|reminders|agenda|calendar|schedule|planner|diary))"
    r"(?: (?:of|for) (?:my |the |all )?"
    r"(?:groceries|tasks?|things|stuff|items|reminders|chores|shopping|to[- ]?dos?|errands)"
    r"(?: (?:to|i (?:have|need|want) to) (?:do|buy|get|complete|finish|remember))?)?"
)
_LIST_VI = (
    r"(?:danh sách|list)(?: (?:công )?việc| mua sắm| đi chợ| mua| cần làm| cần mua| nhắc| của (?:tôi|mình|em|anh|chị))*"
    r"|danh sach(?: viec| mua sam| di cho)?|lịch(?: của (?:tôi|mình|em|anh|chị))?"
)
_SOME_DAY = (
    rf"{DAY}|\d{{1,2}}/\d{{1,2}}|next month on the \d{{1,2}}\w\w|the \d{{1,2}}\w\w of next month|"
    r"(?:next|this) (?:week|month|year|weekend)|(?:black|good) friday|christmas(?: day| eve)?|easter|"
    r"new year['’]?s(?: day| eve)?"
)
_DAYS = rf"(?:,? (?:(?:for|on|of) )?(?:the )?(?P<day>{_SOME_DAY}))"
_END = (
    r"(?:,? (?:as well|too|again|now|right away|at the moment|out loud|please|(?:be)?cause .+|so .+|"
    r"if (?:it|they)(?:['’]?s|['’]re| is| are)(?: not|n['’]t)(?: already)?(?: (?:on|in) it| there| on there)?))*"
)
_PUT = (
    r"(?:add|put|include|write(?: down)?|enter|place|insert|stick|throw|get|note(?: down)?|jot(?: down)?|schedule|"
    r"mark|log)"
)
_TAKE = (
    r"(?:remove|take|nix|delete|drop|cross|scratch|strike|erase|eliminate|get rid of|cancel|clear|pull|kick|wipe|"
    r"omit)"
)
_NEED = r"(?:i (?:need|want)|i(?:['’]d| would) like) "
_ALL = (
    r"(?:everything|all(?: of)?(?: (?:my|the|it|of it))?(?: (?:items?|tasks?|things|entries|events|appointments))?|"
    r"it all)"
)
_PUT_VI = r"(?:thêm|ghi|cho|bỏ|đưa|them|viết)"
_FORMS: tuple[tuple[Op, str], ...] = (
    ("clear", rf"(?:clear|empty|wipe|erase|delete|reset|blank|flush|clean|trash)(?: out| off)? {_LIST}{_DAYS}?"),
    ("clear", rf"{_TAKE}(?: out| off)? {_ALL} (?:from|off|off of|on|in|out of) {_LIST}{_DAYS}?"),
    ("clear", rf"(?:clear|wipe|erase|empty)(?: out| off)? {_ALL} (?:from|off|on|in) {_LIST}{_DAYS}?"),
    ("clear", rf"make {_LIST} (?:blank|empty|clear)"),
    ("clear", rf"(?:xóa|xoá|xoa) (?:hết|sạch|tất cả|toàn bộ)(?: (?:việc|mọi thứ))?(?: (?:trong|khỏi))? (?:{_LIST_VI})"),
    (
        "has",
        r"(?:(?:please )?(?:check|see|look|tell me|let me know)(?: (?:on )?(?:my|the) .*?list)? ?"
        r"(?:if|whether|to see if) |is |are |do i have |have i got |did i (?:put|add|write|have|include) )"
        rf"(?P<what>.+?)(?: is| are)?(?: already)?(?: listed| included)? (?:on|in|to) {_LIST}{_DAYS}?"
        r"(?P<add>(?:,| and)? .*\badd\b.*)?",
    ),
    (
        "has",
        rf"(?:check|look at|look on) {_LIST} (?:to see if|and see if|and tell me if|for|if) (?P<what>.+?)"
        r"(?: (?:is|are) (?:on|in) (?:it|there))?",
    ),
    (
        "has",
        rf"(?:on|in) {_LIST}{_DAYS}?,? (?:did i|do i|have i|is there|are there) "
        r"(?:(?:have|put|add|got|any) )*(?P<what>.+)",
    ),
    (
        "has",
        rf"(?:does|do) {_LIST} (?:have|include|contain|consist of|list|show|say) "
        rf"(?P<what>.+?)(?: on it| in it)?{_DAYS}?",
    ),
    (
        "has",
        r"(?:do i have|have i got|is there|did i set|have i set) (?:an?|any) (?:reminder|alarm|task)s?(?: set)? "
        r"(?:for|about|to|of) (?P<what>.+)",
    ),
    (
        "drop",
        r"(?:cancel|delete|remove|stop|turn off|disable|kill|end|clear|drop) (?:my |the |that )?"
        r"(?P<what>(?:[\w:]+ ){0,3}?(?:alarm|timer)|reminder (?:for|to|about|of) .+)",
    ),
    ("done", r"(?:cross|check|tick|mark) off (?P<what>.+?)(?: (?:from|on|off) " + _LIST + ")?"),
    ("done", r"(?:check|tick) (?P<what>.+?) off(?: (?:of )?" + _LIST + ")?"),
    ("done", r"mark (?P<what>.+?) (?:as )?(?:done|complete|completed|finished)(?: (?:on|in) " + _LIST + ")?"),
    (
        "drop",
        rf"{_TAKE}(?: out| off)? (?P<what>.+?)(?: out| off)? (?:from|off|off of|on|in|out of) {_LIST}{_DAYS}?"
        r"(?: for .+)?",
    ),
    (
        "drop",
        rf"{_TAKE}(?: out| off)? (?P<what>.+?) (?:i (?:have|had|['’]ve) )?(?:scheduled|planned|set)(?: for)?{_DAYS}",
    ),
    ("drop", rf"(?:xóa|xoá|xoa|bỏ|gạch) (?P<what>.+?) (?:khỏi|khoi|ra khỏi|trong) (?:{_LIST_VI})"),
    ("add", rf"{_PUT}(?: down| in)? (?:on|onto|to|in|into) {_LIST}{_DAYS}?:? (?P<what>.+?)"),
    ("add", rf"(?:on|to|for|in) {_LIST}{_DAYS}?,? (?:please )?{_PUT} (?P<what>.+?)"),
    ("add", rf"{_PUT}(?: down| in)? (?P<what>.+?) (?:on|onto|to|in|into) {_LIST}{_DAYS}?"),
    (
        "add",
        r"(?P<what>.+?)(?: (?:needs? to be|to be|should be|must be|has to be))? (?:put|added|placed|written|included) "
        rf"(?:on|onto|to|in) {_LIST}{_DAYS}?",
    ),
    ("add", rf"{_NEED}(?!to |you )(?P<what>.+?) (?:on|onto|to|in) {_LIST}{_DAYS}?"),
    ("add", rf"{_PUT_VI} (?P<what>.+?) (?:vào|vô|lên|vao|vo|trong) (?:{_LIST_VI})(?: (?:cho |ngày )?(?P<day>{DAY}))?"),
    ("add", rf"{_PUT_VI} (?:vào|vô|vao|vo) (?:{_LIST_VI})\s*:? (?P<what>.+)"),
)  # fmt: skip
_PATTERNS = tuple((op, re.compile(words + _END, re.I | re.S)) for op, words in _FORMS)
_LISTED = re.compile(_LIST, re.I)
_OF_LIST = re.compile(rf"{_LIST}|{_LIST_VI}", re.I)
_DAY = re.compile(rf"(?:(?:for|on|of) )?(?P<day>(?:{DAY})|\d{{1,2}}/\d{{1,2}}\b)", re.I)
# Everything that a question for the list may have beside the list and a day.
_SHOWN = re.compile(
    r"(?:what|what['’]?s|whats|which|is|are|was|were|on|in|do|did|does|have|has|had|got|i|i['’]ve|you|me|my|of|all|the|a|an|"
    r"any|anything|everything|something|things?|items?|tasks?|stuff|events?|entries|appointments?|reminders?|alarms?|"
    r"show|list|read|tell|give|repeat|say|name|recite|describe|check|display|state|hear|see|view|know|pull|bring|go|walk|"
    r"run|look|open|let|get|through|over|up|off|out|loud|aloud|back|again|to|for|at|from|with|and|that|those|these|they|"
    r"them|it|there|currently|now|right|moment|far|so|still|left|yet|else|open|pending|remaining|due|planned|scheduled|"
    r"going|happening|coming|want|wanted|wants|need|needed|like|will|would|be|can|could|like|looks?|say|says|said|"
    r"included?|put|add(?:ed)?|wr[io]te(?: down)?|written|down|contents?|today|this|time|remind(?:ed)?|remember|"
    r"include|contains?|according|some|try|trying|tried|were|note|overview|whole|entire|full|please|about|should|must|supposed|buy|complete|finish|do|"
    r"done|full|been|much|long|timers?|take|i['’]d|rundown|summary|our|we|schedule|calendar|agenda|day|how)(?:['’]s)?",
    re.I,
)
_ASKS = re.compile(
    r"\b(?:what|what['’]?s|whats|which|show|list|read|tell|give|repeat|name|recite|describe|check|display|state|hear|"
    r"see|view|go (?:through|over)|walk|run|do i have|have i|is there|are there|did i|remind|pull up|bring up|look|"
    r"anything|how (?:much|long))\b",
    re.I,
)
# A question for what there is to do, though it names no list.
_OPEN = re.compile(
    r"\bwhat(?: all| else)?(?:['’]s| is| are| do| did| have| was| were)?\b.*\b"
    r"(?:(?:have|need|supposed|got|left) to do|planned|scheduled|i have going on|to remember|due)\b|"
    r"\bwhat\b.*\blooks? like\b|\bwhat tasks\b|\bthings (?:that )?i have for\b|"
    r"\b(?:show|read|list|tell|give|what|which|go through|hear|how (?:much|long))\b.*\b(?:reminders|alarms|timers?)\b|"
    r"\b(?:wanted|trying|tried|needed) to remember\b|"
    r"\b(?:tasks?|things) (?:that )?(?:i|we)(?: have|['’]ve)? (?:yet|left|still)\b",
    re.I,
)
_VI_SHOWN = re.compile(
    rf"(?:(?:cho (?:tôi|mình|em) )?(?:xem|đọc|coi|liệt kê) )?(?:{_LIST_VI})"
    r"(?: (?:có|còn|gồm|hôm nay|những|gì|việc|của|mình|tôi))*",
    re.I,
)
_OF_YOU = re.compile(r"\b(?:(?:do|did|have|are|were) you|your)\b", re.I)
_REMINDERS = re.compile(r"\b(?:reminders?|alarms?|timers?|remember)\b", re.I)
_PARTS = re.compile(
    rf"\s*(?:,|;|\.)?\s+(?:and|then|also|và|rồi)\s+(?:also |then )?(?:please )?(?=(?:{_PUT}|{_TAKE})\b)", re.I
)
_ITEMS = re.compile(r"\s*,\s*(?:and |và )?|\s+(?:and|và|với|&)\s+", re.I)
_FEW_WORDS = 3
_POLITE = re.compile(
    r"(?:[\s,.!?]+(?:please|pls|plz|thanks|thank you|thx|for me|will you|nhé|nha|ạ|với|giùm|giúp))*[\s,.!?]*$",
    re.I,
)
_VAGUE = re.compile(
    r"(?:it|that|this|them|these|those|something|some ?things?|one|"
    r"(?:an? )?(?:new )?(?:items?|tasks?|things?|events?))",
    re.I,
)


_INTRODUCED = re.compile(
    r"(?:(?:remember|task) to|reminder (?:to|for|about|of)|the task (?:of|to)|"
    r"an? (?:task|todo|to-do|reminder) (?:to|for|of)|"
    r"(?:i|we) (?:have|put|added|need|want))\s+",
    re.I,
)


class ListRequest(Struct, frozen=True, kw_only=True):
    """``what`` has the things as written, ``day`` the day; a ``has`` with ``adds`` puts on the list what is not there.

    ``reminders`` limits what is shown to these.
    """

    op: Op
    what: str = ""
    day: str = ""
    adds: bool = False
    reminders: bool = False
    of_calendar: bool = False
    of_shopping: bool = False


def list_requests(text: str) -> list[ListRequest]:
    """What a text asks of the list, in order, if it asks for nothing else; otherwise nothing."""
    plain = _bare(text)
    whole = _request(plain, _polite_only(text))
    if whole and (whole.adds or whole.op == "show" or not _PARTS.search(plain)):
        return [whole]
    found: list[ListRequest] = []
    for part in _PARTS.split(plain):
        request = _request(_bare(part), part)
        if request is None and found:  # "… and put papayas on it", "… and add carrots"
            again = re.sub(r"\s+(?:on|to|from|off)\s+(?:it|there|that)$", "", _bare(part))
            way = "off" if re.match(_TAKE, again, re.I) else "on"
            request = _request(f"{again} {way} my list", "")
        if request is None:
            return []
        found.append(request)
    return found


def things_in(what: str, *, short: bool) -> list[str]:
    """The things that are listed, each short; one text is one thing."""
    parts = [part.strip() for part in _ITEMS.split(what) if part.strip()]
    few = all(len(part.split()) <= _FEW_WORDS for part in parts)
    return parts if few and (short or len(parts) > 2) else [what]


def _polite_only(text: str) -> str:
    return _POLITE.sub("", " ".join(text.split()).strip())


def _bare(text: str) -> str:
    said = _polite_only(text)
    wish = WISH.match(said)
    return said[wish.end() :] if wish and wish.end() < len(said) else said


def _request(plain: str, said: str) -> ListRequest | None:
    if shown := _shown(plain):
        return shown
    for op, pattern in _PATTERNS:
        match = pattern.fullmatch(plain) or pattern.fullmatch(said)
        if match is None:
            continue
        groups = match.groupdict()
        what = _INTRODUCED.sub("", groups.get("what") or "")
        return ListRequest(
            op=op,
            what="" if _VAGUE.fullmatch(what.strip()) else _unquoted(what.strip(" ,.:")),
            day=groups.get("day") or _day_within(what, plain),
            adds=bool(groups.get("add")),
            of_calendar=_is_calendar(plain),
            of_shopping=bool(re.search(r"\b(?:shopping|grocer(?:y|ies)|mua sắm|đi chợ|mua)\b", plain, re.I)),
        )
    return None


def _unquoted(what: str) -> str:
    quoted = re.fullmatch(r"['\"“‘](?P<inner>.+)['\"”’]", what)
    return quoted["inner"] if quoted else what


def _day_within(what: str, plain: str) -> str:
    """The day that the text of a calendar's entry has: "the meeting on 1 March"."""
    found = _DAY.search(what) if _is_calendar(plain) else None
    return found["day"] if found else ""


def _is_calendar(text: str) -> bool:
    return bool(re.search(r"\b(?:calendar|schedule|planner|diary|lịch)\b", text, re.I))


def _shown(plain: str) -> ListRequest | None:
    if _VI_SHOWN.fullmatch(plain):
        return ListRequest(op="show")
    if (
        _OF_YOU.search(plain)
        or not _ASKS.search(_LISTED.sub(" ", plain))
        or not (_LISTED.search(plain) or _OPEN.search(plain))
    ):
        return None
    day = next(_DAY.finditer(plain), None)
    if re.search(r"\blooks? like\b", plain, re.I) and day is None and not _LISTED.search(plain):
        return None
    rest = plain[: day.start()] + " " + plain[day.end() :] if day else plain
    words = re.findall(r"[\w'’-]+", _LISTED.sub(" ", rest))
    if not all(_SHOWN.fullmatch(word) for word in words):
        return None
    return ListRequest(
        op="show",
        day=day["day"] if day else "",
        reminders=bool(_REMINDERS.search(plain)),
        of_calendar=_is_calendar(plain),
    )
