"""Tasks and their changes that users state plainly, found by code with any model. Pure, for English and Vietnamese."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from typing import Literal

from msgspec import Struct

from gateway.base.patterns import LatePattern, any_case
from gateway.base.stems import stem
from gateway.memory.learning.entailment import content
from gateway.memory.learning.plain import FILLERS, plain_clauses
from gateway.memory.learning.statements import NEGATION, WORD, mistaken, stems
from gateway.memory.learning.wordings import SUBJECT_VI
from gateway.store.memory.tasks import Task

_MOST_WORDS = 20
_ROOT = 6  # letters that words of one family share: migrate, migration
_LEADING = (
    rf"\W*(?:(?:{FILLERS}|(?:can|could|would|will) (?:you|u)(?: please)?|you can|(?:note|remember) that|mai|ngày mai|"
    r"tối nay|chiều nay|lát nữa|nhớ|hãy|bạn|làm ơn|giúp)\W+)*"
)
_DATED = (
    r"\b(?:(?:by|on|before|until|till|this|next)(?: (?:the|end of))*(?: (?:mon|tues|wednes|thurs|fri|satur|sun)day| "
    r"week| weekend| month| noon| tonight| tomorrow| eod| (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*| \d)|"
    r"at (?:noon|midday|midnight|\d{1,2}(?:[:.]\d\d)?(?: ?[ap]m)?(?=\W*$))|"
    r"tomorrow|tonight|today|trước|ngày mai|chiều nay|tối nay|hôm nay|tuần (?:này|sau)|thứ \w+|chủ nhật)\b"
)
_LIST = (
    r"(?:my|the|our) (?:current )?(?:(?:to[- ]?do|tasks?|shopping|grocery|reminders?) ?)?(?:tasks|calendar|agenda|"
    r"list(?: for shopping| of (?:things to do|(?:pending )?(?:tasks|chores|reminders)(?: to \w+)?))?)"
)
_WISH = r"(?:(?:i['’]?d like|i (?:want|need|would like))(?: you)? to |(?:be|make) sure to |go ahead and )?"
_ADDED = tuple(
    LatePattern(_LEADING + pattern)
    for pattern in (
        rf"remind me(?: {_DATED}\w*)?,? (?:to|2|about|that) (?P<what>.+)",
        r"(?:make|take|keep) a (?:note|reminder)(?: for me)?(?: to|:) "
        r"(?!(?:the|my|our|i|we|it|he|she|they|this|that|there)\b)(?P<what>.+)",
        rf"(?:ghi|note|lưu)(?: lại| chú| nhớ)?(?: (?:giúp|giùm|hộ|cho))? {SUBJECT_VI}\s*(?::|là)\s*(?P<what>.+)",
        r"don['’]?t let me forget (?:to |about )?(?P<what>.+)",
        r"(?:don['’]?t|do not) forget(?: that)?,? (?:i|we)(?:['’]?ve| have)? (?:still )?(?:have to|need to|must|got to|"
        r"gotta) (?P<what>.+)",
        r"(?:i|we) (?:must(?:n['’]?t| not)|can(?:['’]?t|not)) forget to (?P<what>.+)",
        rf"{_WISH}(?:set|create|make|add|give me)(?: up)?(?: me)? an? (?:new )?reminder(?: for me)? to (?P<what>.+)",
        # "Put in the order for everything on my list" adds nothing.
        rf"{_WISH}(?:add|put|include) (?P<what>(?!in\b|together\b).+?)(?: down)? (?:to|on|onto|in) {_LIST}"
        r"(?P<when> (?:on|for|at) .+)?",
        rf"{_WISH}add(?: (?:an?|this|another))?(?: new)? (?:task|todo|to-do|item|reminder)(?: to {_LIST})?"
        rf"(?::| to| that i (?:need|have) to|,)? (?P<what>(?!(?:to )?{_LIST}).+)",
        rf"{_WISH}add to {_LIST}:? (?P<what>.+)",
        r"(?:new )?(?:todo|to-do|to do|task)(?: for (?:me|today|tomorrow))?\s*[:\-–]\s*(?P<what>.+)",
        rf"(?:i|we)(?:['’]?ve| have)? (?:really |still |also )?(?:need to|have to|got to|gotta|must|should) "
        rf"(?P<what>(?!be able to\b).*{_DATED}.*)",
        rf"(?:still |also )?(?:need to|have to|got to|gotta) (?P<what>.*{_DATED}.*)",
        rf"nhắc {SUBJECT_VI} (?:(?:là|phải|nhớ|việc) )*(?P<what>(?!lại|đến|tới).+)",
        rf"đừng để {SUBJECT_VI} quên (?P<what>.+)",
        # Typed without marks.
        r"(?:nho )?nhac (?:minh|toi|tui|em|anh|chi) (?:(?:la|phai|nho|viec) )*(?P<what>(?!lai|den|toi\b).+)",
        r"dung de (?:minh|toi|tui|em|anh|chi) quen (?P<what>.+)",
        r"them viec\s*:?\s*(?P<what>.+)",
        r"(?:thêm việc|việc cần làm|thêm vào danh sách)\s*:?\s*(?P<what>.+)",
        rf"(?:{SUBJECT_VI} )?(?:còn )?(?:phải|cần) (?P<what>.*{_DATED}.*)",
        rf"(?:hôm nay|(?:sáng|trưa|chiều|tối|ngày) (?:nay|mai)|mai) (?:{SUBJECT_VI} )?(?:còn )?(?:phải|cần) "
        r"(?P<what>.+)",
    )
)
# Several items may follow the colon.
_LISTED = any_case(
    _LEADING + r"(?:(?:new )?(?:todos?|to-dos?|to do|tasks?)(?: list)?(?: for (?:me|today|tomorrow))?|"
    r"add to (?:my|the) (?:(?:to-?do|task|shopping) ?)?list|thêm (?:việc|vào danh sách)|việc cần làm)"
    r"\s*:\s*(?P<what>.+)"
)
_BETWEEN = re.compile(r"\s*[,;]\s*(?:(?:and|và|rồi)\s+)?")
_LAST = re.compile(r"\s+(?:and|và)\s+")
# A part that says more about the one before.
_NO_ITEM = any_case(
    r"(?:by|at|on|in|for|from|to|before|after|until|because|since|with|not|no|i|we|you|he|she|they|it|this|that|which|"
    r"who|if|when|trước|lúc|vì|để|cho|với|nó|họ|không)\b|[0-9]|.*(?:\b(?:is|are|was|were)\b|['’](?:s|re)\b(?! \w))"
)
_DUTY = any_case(
    _LEADING
    + r"(?:(?:i|we)(?:['’]?ve| have)? )?(?:really |still |also )?(?:need to|have to|got to|gotta|must) (?P<what>.+)"
)
_LISTS = any_case(
    _LEADING + r"(?:put|add) (?:it|that|this) (?:on|onto|to|in) (?:my|the|our) \b.*\b(?:list|tasks)\b"
)
# "I need to email my boss that I'm ill. Can you write it?" asks for the text now.
_ASKS_TO_WRITE = any_case(
    r"\b(?:can|could|will|would) (?:you|u) (?:please |maybe )?(?:write|draft|compose|phrase|word|suggest|come up with|"
    r"help(?: me)?(?: to)? (?:with|write|draft|word|phrase))\b|\bhelp me (?:to )?(?:with|write|draft|word|phrase)\b|"
    r"\b(?:please )?(?:write|draft) (?:it|one)(?: for me)?\W*$|(?<!\w)(?:bạn )?(?:viết|soạn)(?: nó)? (?:giúp|giùm|hộ) "
)
_NO_TASK = any_case(
    r"^(?:an? (?:new )?(?:event|entry|item|task|reminder|note|appointment)$|something|anything|me|you|"
    r"it|that|this|them|him|her|what|who|how|why|when|where|which|if|know|say|admit|think|"
    r"sleep|gì|ai|sao|nó|\W*)(?:$|\s)|\b(?:you|your)\b"
)
_TRAILING = any_case(
    r"(?:[\s,]+(?:please|pls|plz|thanks|thx|ok|okay|btw|by the way|tho|though|lol|haha+|today|hôm nay|nữa|"
    r"will you|would you|can you|for me|again|too|as we speak|"
    r"(?:nhé|nha|ạ|rồi) (?:mẹ|bố|ba|má|anh|chị|em|bạn)|nhé|nhe|nha|ạ|á|đó|nè|"
    r"với|giùm|giúp|dùm|đi))+\W*$|[\s.,!;?…]+$"
)
# The change may be to come, or depends on something.
_NOT_YET = any_case(
    r"\b(?:when|once|until|till|before|after|as soon as|will|shall|should|must|need|needs|want|going to|almost|nearly|"
    r"to (?:be|get|have)|nobody|none|nowhere|else['’]s|supposed|"
    r"(?:want|need|hope|expect|refus|promis|fail|forg[eo]t)(?:s|es|ed|ten)?|"
    r"usually|normally|often|sometimes|typically|thường|hay|half|soon|next|tomorrow|later|you|he|she|they|khi|sẽ|sắp|gần|chưa|phải|cần|muốn|định|mai|hãy|nhắc|bạn)\b"
)
# Somebody else did it or has the thing, or it was another time.
_OTHERS = any_case(
    r"\b(?:everyone|everybody|anyone|someone|somebody|others?|another|last (?:year|month|summer|winter|spring|autumn)|"
    r"(?:years?|months?) ago|nó|họ|người ta|hàng xóm|nhà bên|bên kia|năm (?:ngoái|trước)|tháng trước)\b"
)
_WHOSE = any_case(r"(?:his|her|their|your|\w+['’]s|\w+s['’])")
_PART = any_case(r"(?:the )?(?!(?:all|both|most|none|lots?) )\w+ of (?:(?:the|my|our) )?(?P<of>\w+)")
# Whom a task reaches may do what its verb says.
_REACHED = any_case(
    r"(?P<verb>gọi|nhắn|hỏi|báo|gặp|trả lời|liên hệ|mời|hẹn|đón|call|ring|phone|email|text|ask|tell|meet|answer)\b"
    r"(?: (?:điện|tin|lại))?(?: (?:cho|với|back))? (?P<who>.+)"
)
_IS = any_case(r"(?:it|that|there|what|he|she|let|who|where|here)['’]s")  # no possessive
_BEFORE = any_case(
    rf"(?<!\w)(?:{SUBJECT_VI}|đã|vừa|mới|mua|cũng|vụ|việc|chuyện|mấy|cái|con|chiếc|cuốn|bộ|cuối cùng|hôm nay|"
    r"(?:sáng|trưa|chiều|tối) (?:nay|qua)|i|we|all|both|these|those|just|finally|already|so|yes|today|yesterday|"
    r"this (?:morning|afternoon|evening))(?!\w)"
)
# Not yet either, if somebody cancels it.
_FOR_NOW = any_case(r"\b(?:yet|today|now|tomorrow|tonight|until|this)\b")
_ARTICLE = any_case(r"(?:the|an?|my|our)\s")
_GENERIC = ("done", "did", "finished", "completed", "complete", "sorted", "handled", "over", "xong")
# The first one of a title's verbs that a past form stands for.
_PAST = {
    "bought": "buy", "paid": "pay", "sent": "send", "wrote": "write", "written": "write", "made": "make",
    "took": "take", "taken": "take", "brought": "bring", "got": "get", "sold": "sell", "met": "meet",
    "gave": "give", "told": "tell", "found": "find", "built": "build", "fed": "feed", "rang": "ring", "ran": "run",
}  # fmt: skip
# What one applies for is done when one has it.
_OBTAINED = ("xin", "lấy", "nhận")
_OBJECT = r"(?: with| off)? (?!from |to |at |in |on |for |about |after |before )(?P<what>.+)"
_WORDINGS: dict[Literal["cancelled", "waiting", "doing", "done"], tuple[str, ...]] = {
    "cancelled": (
        rf"{_WISH}(?:take|strike|remove|delete|erase) (?P<what>.+?) (?:off(?: of)?|from|out of) {_LIST}",
        r"(?:cancel|drop|scrap|delete|remove|skip|forget|never ?mind|strike|no need to|"
        r"(?:don['’]?t|do not) bother(?: with| to)?|(?:i|we) (?:don['’]?t|do not|no longer) (?:need|have|want) to|"
        r"(?:i|we)(?:['’]?ve| have)? (?:cancell?ed|dropped))(?: about)? (?P<what>.+)",
        rf"(?:thôi )?(?:{SUBJECT_VI} )?(?:hủy|huỷ|bỏ|xóa|xoá|thôi khỏi|khỏi|không cần)(?: (?:việc|vụ|chuyện|cái))? "
        r"(?P<what>.+)",
    ),
    "waiting": (r"(?:(?:i['’]?m|i am|we['’]?re) )?(?:still )?waiting (?:for|on) (?P<what>.+)",),
    "doing": (
        r"(?:i['’]?m|i am|we['’]?re)(?: now| currently| already| just)? (?:working on|doing|busy with) (?P<what>.+)",
        r"(?:(?:i['’]?m|i am|we['’]?re|we are|now|currently|just|still) )+(?P<verb>\w{3,}ing) (?P<what>.+)",
        r"(?:(?:i|we)(?:['’]?ve| have)? )?(?:just )?(?:started|begun|began)(?: with| on)? (?P<what>.+)",
        rf"(?:{SUBJECT_VI} )?(?:đang|bắt đầu)(?: làm)? (?P<what>.+?)(?: đây)?",
    ),
    "done": (
        rf"(?:(?:i|we)(?:['’]?ve| have|['’]?m| am|['’]re| are)? ?)?"
        rf"(?:(?:just|already|finally) )*(?P<verb>\w+){_OBJECT}",
        rf"(?P<verb>done|finished){_OBJECT}",
        r"(?:mark|tick off|check off) (?P<what>.+?)(?: as (?P<verb>done)| off)?",
        # Without "is", a thing behind the verb would be its object: "Petra sent the invoice".
        r"(?P<what>.+?)(?:(?P<passive> is| are|['’]s|['’]re| was| has been| have been|:))?"
        r"(?: now| already| finally| all)* "
        r"(?P<verb>done|finished|completed?|sorted|handled|over|\w+(?:ed|en|id|nt|ght))"
        r"(?(passive)(?:[ ,](?!(?:out|up|solid)\b).*)?|"
        r"(?:,.*| (?:to|for|at|on|in|by|via|with|now|today|yesterday|this|last|already|off)\b.*)?)",
        r"(?P<what>.+?) (?P<verb>xong)(?: r[ồo]i| xuôi)?(?: (?:hôm|sáng|trưa|chiều|tối) (?:qua|nay|kia))?(?:,.*)?",
        r"(?P<what>.+?)(?: cũng)? (?P<verb>lấy|nhận|xin) được r[ồo]i(?:,.*)?",
        r"(?P<what>.+?) r[ồo]i(?:,.*)?",
        rf"(?:{SUBJECT_VI} )?(?:đã|vừa) (?P<what>.+)",
    ),
}
_STATES = [
    (state, [LatePattern(_LEADING + pattern) for pattern in patterns])
    for state, patterns in _WORDINGS.items()
]
_REMEMBER = any_case(r"(?:remember|remind me) to ")
_CALLED_OFF = any_case(r"\W*(?:i|we)(?:['’]?ve| have)?(?: just| already| finally)* \w+ed\b")
# "Do this later" names nothing to do.
_NAMELESS = content(
    "do this that these thing things something anything it later again soon awhile while bit today one"
)
_THINGS = content("task tasks todo reminder thing item one list việc")


class Change(Struct, frozen=True):
    """A task to add, or a known one's new state; ``prompts/tasks.md`` constrains a model's proposals to this shape."""

    op: Literal["add", "add_item", "doing", "waiting", "done", "cancelled"]
    id: str
    title: str
    quote: str


def stated_changes(text: str, tasks: Sequence[Task]) -> list[Change]:
    """The changes that a user's message states, to new tasks and to ``tasks``."""
    found: list[Change] = []
    duty = ""  # "I have to renew my passport. Put it on the list."
    clauses, listed = list(plain_clauses(text, tasks=True)), 0
    writes = bool(clauses) and bool(_ASKS_TO_WRITE.search(text))
    for at, clause in enumerate(clauses):
        if at < listed:
            continue
        heads = _LISTED.fullmatch(clause.text)
        if heads:
            following = [each.text for each in takewhile(lambda each: each.follows, clauses[at + 1 :])]
            items = _items([heads["what"], *following])
            found += [Change("add", "", item, clause.text) for item in items]
            if items:
                listed = at + 1 + len(following)
                continue
        match = _DUTY.fullmatch(_TRAILING.sub("", clause.text))
        title = "" if writes else _added(clause.text)
        title = title or (duty if _LISTS.match(clause.text) else "")
        duty = _title(match["what"]) if match else ""
        if title:
            found.append(Change("add", "", title, clause.text))
            continue
        change = None if clause.polite else _changed(clause.text, tasks)
        if change is not None:
            found.append(change)
    return found


def is_task(title: str) -> bool:
    """Whether a title names something to do."""
    return bool(content(title) - _NAMELESS) and not _NO_TASK.search(title)


def is_asked(quote: str, texts: Sequence[str]) -> bool:
    """Whether code has added the task of a model's quote from one of the users' texts."""
    wanted = " ".join(quote.split()).casefold()
    asked = (each.quote.casefold() for text in texts for each in stated_changes(text, []))
    return any(wanted in each or each in wanted for each in asked)


def _items(clauses: Sequence[str]) -> list[str]:
    """The titles of the tasks that the clauses behind a colon list; none if they are one task."""
    *first, last = _BETWEEN.split(", ".join(clauses))
    parts = [*first, *(_LAST.split(last, maxsplit=1) if first else [last])]
    parts = [re.sub(r"^(?:and|và|rồi) ", "", part) for part in parts]
    words = [len(part.split()) for part in parts]
    alike = min(words) > 1 if words[0] > 1 else max(words) < 4
    titles = [_title(part) for part in parts]
    return titles if len(parts) > 1 and alike and all(titles) and not any(map(_NO_ITEM.match, parts)) else []


def _added(said: str) -> str:
    for pattern in _ADDED:
        # "Today" may be what tells a task from a sigh.
        for plain in dict.fromkeys((_TRAILING.sub("", said), said.strip(" .!"))):
            match = pattern.fullmatch(plain)
            title = _title(match["what"] + (match.groupdict().get("when") or "")) if match else ""
            if title:
                return title
    return ""


def _title(what: str) -> str:
    what = _REMEMBER.sub("", _TRAILING.sub("", what.partition(": ")[0]))
    return what[:1].upper() + what[1:] if is_task(what) and len(what.split()) <= _MOST_WORDS else ""


def _changed(said: str, tasks: Sequence[Task]) -> Change | None:
    plain = _TRAILING.sub("", said)
    for state, patterns in _STATES:
        for pattern in patterns:
            match = pattern.fullmatch(plain)
            if match is None or not content(match["what"]):
                continue
            task = _named(plain, match["what"], tasks)
            refused = _FOR_NOW if state == "cancelled" else _NOT_YET
            rest = _without(plain, task.title) if task is not None else plain
            if refused.search(rest) or (state != "cancelled" and NEGATION.search(rest)):
                return None
            if task is None or (
                state != "cancelled" and (_OTHERS.search(rest) or _of_others(plain, task.title))
            ):
                continue
            if state == "cancelled" and _CALLED_OFF.match(plain) and next(stems(task.title)) in stems(plain):
                continue  # "I cancelled the gym" does the task of cancelling it
            if state == "cancelled" and len(content(match["what"]) - content(task.title) - _THINGS) > 1:
                continue
            groups = match.groupdict()
            before = state == "done" and (not groups.get("verb") or match.start("what") < match.start("verb"))
            if before and not groups.get("passive") and _acts(match["what"], task.title, groups.get("verb")):
                continue
            if (state == "done" or groups.get("verb")) and not _fits(
                state, groups.get("verb"), task.title, plain
            ):
                continue
            return Change(state, task.id, task.title, said) if task.state != state else None
    return None


def _fits(state: str, verb: str | None, title: str, said: str) -> bool:
    """Whether a past form says that the title's verb has been done; without one, the clause must have that verb."""
    words = list(stems(title))
    if verb is None:
        return words[0] in stems(said)
    verb = verb.lower()
    inflected = verb.endswith("ing") if state == "doing" else verb in _PAST or verb.endswith("ed")
    joined = [after for word, after in pairwise(words) if word in ("and", "và")]
    # "Milk" is to be bought.
    thing = verb in ("bought", "got") and content(_without(said, title)) <= content("bought got")
    bought = thing or (verb == "got" and words[0] == "buy")
    if verb in _OBTAINED:
        return words[0] in _OBTAINED
    return bought or verb in _GENERIC or (inflected and stem(_PAST.get(verb, verb)) in (words[0], *joined))


def _acts(what: str, title: str, verb: str | None) -> bool:
    """Whether a clause begins with who did it rather than what was done: "Ingmar paid", "the plumber called"."""
    names = [word.casefold() for word in title.split()[1:] if word[:1].isupper()]
    if _ARTICLE.match(what) or what.split()[0].casefold() in names:
        return True
    if reached := _REACHED.match(title):  # "thợ điện gọi" for "Gọi cho thợ điện"
        at = what.casefold().find(reached["verb"].casefold())
        acted = at < 0 and verb is not None and verb.lower() not in _GENERIC
        who = content(_BEFORE.sub(" ", what[:at] if at > 0 else what if acted else ""))
        if who and who <= content(reached["who"]):
            return True
    named, said = set(stems(title)), [*WORD.finditer(what)]
    mine = next((word.start() for word in said if set(stems(word[0])) & named), len(what))
    own = next((word for word in said if stem(word[0]) == next(stems(title))), None)
    acting = (
        own is not None
        and content(what[own.end() :]) & named
        and content(_BEFORE.sub(" ", what[: own.start()]))
    )
    return bool(acting or content(_BEFORE.sub(" ", what[:mine])))


def _without(said: str, title: str) -> str:
    """The clause without words of the title, which say nothing about its state."""
    words = set(stems(title))
    return WORD.sub(lambda word: "" if set(stems(word[0])) & words else word[0], said)


def _of_others(said: str, title: str) -> bool:
    """Whether a thing of the title is said to be somebody else's: "my neighbour's shed"."""
    things = content(title) - {next(stems(title))}
    words = said.split()
    part = _PART.match(said)
    if part and set(stems(part["of"])) & things:
        return True
    return any(
        _WHOSE.fullmatch(whose)
        and not _IS.fullmatch(whose)
        and whose.casefold() not in title.casefold()
        and any(set(stems(word)) & things for word in words[at + 1 : at + 3])
        for at, whose in enumerate(words)
    )


def _roots(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:_ROOT] for word in words)


def _named(said: str, what: str, tasks: Sequence[Task]) -> Task | None:
    """The unfinished task that a clause names best: by its id, most of its words, one of two, or only by its words."""
    spoken, told = _roots(stems(said)), _roots(content(_BEFORE.sub(" ", what)) - _THINGS)
    best: list[tuple[float, Task]] = []
    for task in tasks:
        if task.state in ("done", "cancelled"):
            continue
        if task.id.casefold() in said.casefold():
            return task
        words = _roots(content(task.title))
        if mistaken(task.title, said):
            continue
        doing = next(iter(stems(task.title)))[:_ROOT]
        if told - words and words - spoken - {doing}:
            continue  # it names another thing: "I ordered new shoes" for "Order new tyres"
        shared = len(words & spoken)
        if shared and (shared * 2 > len(words) or len(words) == 2 or (told and told <= words)):
            best.append(((doing in told) + shared / len(words), task))
    best.sort(key=lambda each: -each[0])
    return None if not best or (len(best) > 1 and best[0][0] == best[1][0]) else best[0][1]
