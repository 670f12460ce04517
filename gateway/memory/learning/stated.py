"""Facts that users state plainly about themselves, found by code with any model. Pure.

The clause is the evidence (:mod:`gateway.memory.learning.wordings`), and in the third person it is the fact's text.
Keys with a value ("allergy: peanuts") hold several facts, others the last one that was said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.memory.learning.plain import REQUESTS, PlainClause, plain_clauses
from gateway.memory.learning.statements import UPPER
from gateway.memory.learning.values import BODY, UNCLEAR
from gateway.memory.learning.wordings import SUBJECT_VI, WORDINGS

_MOST_WORDS = 24
_MOST_SLUG = 40
_MOST_KEY = 60
_LEADING = any_case(
    r"^(?:\W|(?:hi|hello|hey|there|ok|okay|so|well|btw|fyi|ps|also|actually|oh|ah|yes|no|nah|yeah|yep|right|and|but|because|since|sorry|"
    r"i mean|by the way|for context|just so you know|note that|remember that|honestly|tbh|as you know|thanks|great|"
    r"cool|hm+|um+|ugh+|argh+|omg|yo|anyway|in fact|quick (?:thing|note|one)|"
    r"(?:as|like) i (?:said|told you)(?: before| earlier)?|"
    r"(?:i (?:guess|suppose) )?(?:i )?(?:should|forgot to|(?:just )?wanted to|(?:need|have|want) to|let me)"
    r"(?: also)? (?:mention|add|note|point out)(?: that)?|i forgot to say(?: that)?|"
    r"(?:quên )?nói (?:luôn|thêm|trước|thật)(?: là)?|quên nói(?: là)?|lưu ý(?: là)?|"
    r"à|ừ|ờ|dạ|vâng|ê|ơ|chào|này|thật ra|thực ra|nhân tiện|mà|và|thì|còn|hiện tại|hiện|"
    r"bây giờ|giờ|năm nay)\b)*"
)
_TRAILING = any_case(
    r"(?:[\s,]+(?:please|pls|plz|thanks|thx|lol|haha+|btw|tho|though|too|as well|by the way|fyi|ok|okay|rn|now|"
    r"right now|in case .*|of course|(?:nhé|nha|ạ) (?:anh|chị|em|bạn|mọi người)|"
    r"nhé|nhe|nha|ạ|á|đó|nè|nhen|thôi|được rồi|rồi|đấy|cơ|ha))+\W*$|[\s.,!;…)(]+$"
)
# Subject of the next clause if it has none: "I live in Huế and work as a nurse".
_OTHER = r"(?! (?:gái|trai|chó|mèo))"
_SUBJECT = any_case(rf"^(?:i(?:['’]?m|['’]?ve)?\b|my name\b|(?P<vi>{SUBJECT_VI})\b{_OTHER})")
_DENIALS = (
    any_case(r"^(i['’]?m|i am|we['’]?re|we are) (?:no longer|not)\b|^(my name)(?: is not| isn['’]?t)\b"),
    any_case(r"^(i|we) (?:no longer|don['’]?t|do not)\b"),
    any_case(rf"^({SUBJECT_VI}) (?:không còn|không|ko|hết)\b"),
)
# These end what is known of the part or the illness, in whatever words it was told.
_FULLY = r"(?: (?:now|finally|fully|completely|all|totally))*"
_RECOVERED = (
    any_case(
        rf"my (?:(?:left|right|broken|bad|sore|sprained) )?(?P<what>{BODY})(?:['’]?s| is| are| has| have)?{_FULLY} "
        rf"(?:healed|recovered|mended|cured|back to normal|(?:much )?better|fine again|ok(?:ay)? again|"
        rf"(?:doesn['’]?t|don['’]?t) hurt any ?more)(?: (?:up|nicely|completely|fully|again))?"
    ),
    any_case(
        rf"(?:i(?:['’]?ve| have|['’]?m| am)?){_FULLY} (?:recovered from|(?:got|gotten|been) over|cured of|over) "
        r"(?:my |the )?(?P<what>[\w -]{3,40})"
    ),
    any_case(rf"{SUBJECT_VI} (?:đã )?khỏi (?:hẳn |bệnh )*(?P<what>[\w ]{{2,30}})"),
)
_ANY_MORE = any_case(r"\s+(?:any ?more|any longer|after all|at all|nữa)\W*$")
_GREETING = any_case(r"^\W*(?:hi|hello|hey|hallo)\b")
# "I'm Nora, I teach", but not "I'm German, I live in Bonn".
_INTRODUCED = any_case(
    rf"(?:i['’]m|i am|im) (?-i:[{UPPER}][^\W\d_A-Z]+)(?<!an)(?<!ese)(?<!ish)(?<!ch)(?<!sh)(?<!ss)(?<!i)(?<!eek)"
)
# "im Rosa btw": what is no name is seldom said in passing.
_IN_PASSING = any_case(r"\W(?:btw|by the way)\W*$")
_NO_INTRODUCTION = any_case(
    r"\b(?:tired|bored|sad|happy|busy|sick|ill|gay|single|married|catholic|muslim|hindu|sikh|buddhist|christian|atheist|thai|swiss|czech|arab|turk|dane|swede|pole|scot|brit|"
    r"aries|taurus|virgo|libra|scorpio|sagittarius|capricorn|aquarius|pisces)\b"
)
_GOES_ON = any_case(r"(?:and )?(?:i\b|from |an? |[1-9][0-9]\b|(?:first|second|third|final)[ -]year\b)")
_MEETS = any_case(
    r"(?:hi |hello |it['’]?s )?(?:so |very )?(?:nice|good|great|pleased|glad|lovely|happy) to (?:finally )?meet "
    r"(?:you|u)\b"
)
_THIS_TIME = any_case(r"\b(?:for|about|to|in|of) (?:the|this|that|my)\b|\b(?:this|it|here)\b")
# "We moved to ghent in august" may be about software, unless the message speaks of a home.
_WE_MOVED = any_case(r"we(?=(?:['’]ve| have)?(?: \w+)? (?:moved|relocated) )")
_HOMELY = any_case(
    r"\b(?:neighbou?rs|landlord|rent|flat|apartment|new (?:town|city|house|home|school)|"
    r"(?:know|find|need|have) (?:\w+ ){0,2}(?:people|anyone|anybody|friends|doctors?|dentists?|gp|schools?|plumbers?)"
    r"(?: around)? here)\b"
)
# Further items of a list: "… and shellfish".
_ITEM = any_case(r"^(?P<joined>(?:and|or|và|hoặc)\s+)?(?P<item>[^\W\d_][\w'’-]*(?: [\w'’-]+)?)$")
_LISTED = ("allergy", "diet", "preference", "speaks")
_HEAD = any_case(
    r"(?<!the)\s+(?:over|to|than|rather|more|better|most|best|very|a lot|in|on|at|with|for|when|because|since|every|"
    r"especially|hơn|nhất|lắm|quá|từ|ở)\b.*$|\s+(?:any ?more|any longer|nữa)$"
)
# The writer in a text, for which a name is put at last: in English, and in Vietnamese.
_EN, _VI = "\ue000", "\ue001"
_THIRD = (
    (any_case(r"^((?:my|our)(?: \w+){0,2} name)['’]s(?= )"), r"\1 is"),
    (any_case(r"^(?:i['’]?m|i am|we['’]?re|we are)\b"), f"{_EN} is"),
    (any_case(r"^(?:i['’]?ve been)\b"), f"{_EN} has been"),
    (any_case(r"^(?:i['’]?ve got|i got|(?:i|we) have)\b"), f"{_EN} has"),
    (any_case(r"^(?:i|we)(?:['’]?ve)?(?=\s)"), _EN),
    (any_case(r"^(?:my|our)\b"), f"{_EN}'s"),
    (any_case(r"\b(?:my|our)\b"), "their"),
    (any_case(r"\bme\b"), _EN),
    (any_case(r"\b(?:myself|ourselves)\b"), "themselves"),
    (any_case(r"^this is\b"), f"{_EN} is"),
    (re.compile(rf"^([{UPPER}][\w'’ -]*) here$"), rf"{_EN} is \1"),
    (any_case(r"^turned\b"), f"{_EN} turned"),
    (any_case(rf"^({_EN}) do(?= (?!not\b))"), r"\1 does"),
    (any_case(rf"(?<={_EN})(.*?)\b(?:don['’]?t|do not)\b"), r"\1does not"),
    (any_case(rf"^(nhà )?{SUBJECT_VI}\b{_OTHER}(?=\s)"), rf"\1{_VI}"),
    (re.compile(r"\b(?:mình|tôi|tớ|tao|tui|mk|mik)\b"), _VI),  # "Tao" is a name
)
_INFLECTED = any_case(
    rf"^({_EN} (?:(?:also|actually|currently|now|just|really|still|mostly|usually|always|never|only|recently|finally|"
    r"absolutely|totally|mainly)\s+)*)(live|reside|work|run|own|study|teach|speak|drive|ride|use|play|like|love|enjoy|adore|prefer|hate|volunteer|write|code|"
    r"dislike|despise|detest|loathe|eat|drink|come|have|take)\b"
)


class StatedFact(Struct, frozen=True):
    """The fact of a ``quote``; ``denied``, it ends the known fact of the key that has ``value``.

    A denied key without a value of its own ("health") stands for all of that name.
    """

    key: str
    text: str
    value: str
    quote: str
    denied: bool = False


def stated_facts(text: str, speaker: str = "") -> list[StatedFact]:
    """Facts that a user's message states about its writer; with several speakers, each names its own."""
    found: list[StatedFact] = []
    greeted = False
    subject, last = "", None  # of the sentence, and its last fact of a kind that may go on as a list
    clauses = list(plain_clauses(text))
    for at, clause in enumerate(clauses):
        said = _LEADING.sub("", _TRAILING.sub("", clause.text))
        if not clause.follows:
            subject, last = "", None
        fact = _requested(said, clause.text) if clause.polite else _read(said, clause.text)
        greets = bool(_GREETING.match(clause.text))
        if fact is None and (greets or (greeted and clause.follows)):
            fact = _match(f"hi {said}", clause.text)
        greeted = greets
        if fact is None and _INTRODUCED.fullmatch(said) and _introduces(clauses, at, said):
            fact = _match(f"hi {said}", clause.text)
        if fact is None and _WE_MOVED.match(said) and _HOMELY.search(text):
            fact = _match(_WE_MOVED.sub("I", said), clause.text)
        if fact is None and subject:
            item = _item(clauses, at) if last is not None else ""
            if last is not None and item:
                told = last.text.replace(last.value, item)
                fact = StatedFact(_key(last.key.partition(":")[0], item), told, item, clause.text)
            else:
                fact = _read(f"{subject} {said}", clause.text)
                if fact is None:  # "I'm Rosa, 34, living in Leeds", "mình là Tuấn, kỹ sư ở Đà Nẵng"
                    fact = _read(f"I'm {said}" if subject == "I" else f"{subject} là {said}", clause.text)
        if fact is None:
            last = None  # "I don't eat meat, but I do eat fish and eggs"
            continue
        begins = _SUBJECT.match(said)
        if begins and not subject:
            subject = begins["vi"] or "I"
        last = fact if fact.key.partition(":")[0] in _LISTED and not fact.denied else None
        found.append(fact)
    return [_named(fact, speaker) for fact in found if fact.key]


def is_stated(quote: str, texts: Sequence[str]) -> bool:
    """Whether code has read the words of a model's quote in one of the users' texts."""
    wanted = " ".join(quote.split()).casefold()
    stated = (" ".join(fact.quote.split()).casefold() for text in texts for fact in stated_facts(text))
    return any(wanted in each or each in wanted for each in stated)


def _introduces(clauses: Sequence[PlainClause], at: int, said: str) -> bool:
    """Whether "I'm X" gives a name, by what follows."""
    passing = _IN_PASSING.search(clauses[at].text) and not _NO_INTRODUCTION.search(said)
    goes_on = any(
        each.follows and (_GOES_ON.match(each.text) or _MEETS.match(each.text))
        for each in clauses[at + 1 : at + 2]
    )
    met = at > 0 and clauses[at].follows and bool(_MEETS.match(clauses[at - 1].text))
    return bool(passing) or goes_on or met


def _item(clauses: Sequence[PlainClause], at: int) -> str:
    """The list item that a clause is, if a conjunction stands before it or before the next one."""
    items = [_ITEM.match(each.text) for each in clauses[at : at + 3] if each.follows]
    for item in items:
        if item is None or UNCLEAR.search(item["item"]):
            return ""
        if item["joined"]:
            return str(items[0]["item"]) if items[0] else ""
    return ""


def _requested(said: str, quote: str) -> StatedFact | None:
    """How to reply, or the name, as a clause asks politely: "could you keep it short", "can you call me Dan"."""
    fact = _match(REQUESTS.sub("", said).strip(), quote)
    wished = fact is not None and fact.key in ("reply_style", "name") and not _THIS_TIME.search(said)
    return fact if wished else None


def _read(said: str, quote: str) -> StatedFact | None:
    """The fact that a clause states or denies."""
    fact = _match(said, quote)
    if fact is not None:
        return fact
    for recovered in _RECOVERED:
        found = recovered.fullmatch(said)
        if found and not UNCLEAR.search(found["what"]):
            return StatedFact("health", _third_person(said), found["what"], quote, denied=True)
    for denial in _DENIALS:
        found = denial.match(said)
        if found:
            subject = next(filter(None, found.groups()))
            affirmed = f"{subject}{' is' if subject.lower().endswith('name') else ''}{said[found.end() :]}"
            fact = _match(_ANY_MORE.sub("", affirmed), quote)
            return msgspec.structs.replace(fact, denied=True) if fact is not None else None
    return None


def _match(said: str, quote: str) -> StatedFact | None:
    if len(said.split()) > _MOST_WORDS:
        return None
    for wording in WORDINGS:
        for pattern in wording.patterns:
            found = pattern.fullmatch(said)
            if found is None:
                continue
            value = found["what"].strip()
            if wording.refused.search(value) or (wording.wanted and not wording.wanted.search(value)):
                continue
            name = wording.key or _slug(found["who"])
            key = _key(name, value) if wording.several else name
            if key:
                return StatedFact(key, _third_person(said), value, quote)
    return None


def _key(name: str, value: str) -> str:
    """A key with its value, "" when that has no Latin letters: "has: dog" for one dog and several."""
    slug = value.removesuffix("s") if name == "has" and value.isascii() else _slug(_HEAD.sub("", value))
    return f"{name}: {slug}" if slug else ""


def _slug(text: str) -> str:
    """Latin letters and digits, without marks and articles."""
    plain = (
        unicodedata.normalize("NFKD", text.casefold().replace("đ", "d")).encode("ascii", "ignore").decode()
    )
    words = re.findall(r"[a-z0-9]+", plain)
    telling = [word for word in words if word not in ("a", "an", "any", "the", "my", "our")]
    return "_".join(telling or words)[:_MOST_SLUG].strip("_")


def _third_person(said: str) -> str:
    """The clause with a place for the writer's name as its subject."""
    text = _LEADING.sub("", said)
    for pattern, told in _THIRD:
        text = pattern.sub(told, text)
    others = {"have": "has", "study": "studies", "teach": "teaches"}
    return _INFLECTED.sub(lambda found: found[1] + others.get(found[2].lower(), f"{found[2]}s"), text) + "."


def _named(fact: StatedFact, speaker: str) -> StatedFact:
    text = fact.text.replace(_EN, speaker or "the user").replace(_VI, speaker or "người dùng")
    text = text[:1].upper() + text[1:]
    if not speaker:
        return msgspec.structs.replace(fact, text=text)
    name, _, value = fact.key.partition(": ")
    value = "_".join(filter(None, (_slug(speaker), value)))[:_MOST_KEY]
    text = text if text.startswith(speaker) else f"{speaker}: {text}"
    return msgspec.structs.replace(fact, key=f"{name}: {value}", text=text)
