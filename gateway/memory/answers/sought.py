"""Questions about what was said before, whoever it was about, and the messages that answer them. Pure.

English and Vietnamese. The answer quotes its writer's messages: "when does Odette arrive?", "what did I say about
Gerald?". A small model would invent one. When in doubt there is none, and the model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.redact import MARK
from gateway.memory.answers import questions
from gateway.memory.answers.kinds import asks_kind, of_kind
from gateway.memory.answers.notices import SECRETS_UNSTORED
from gateway.memory.history import DECIDED
from gateway.memory.learning.entailment import content
from gateway.memory.learning.statements import HYPOTHETICAL, REPORTED, UPPER
from gateway.memory.learning.values import PEOPLE, PERSON, PERSON_VI
from gateway.memory.learning.wordings import OF_SEVERAL, OF_SEVERAL_VI, ONE, ONE_VI, SUBJECT_VI
from gateway.memory.summaries.extract import CORRECTS

MOST_QUOTES = 3
_SHORT = 10  # words of a message that only goes on with the one before
_SAYS_ONE = 14  # words of a message that says one thing
_MENTIONS = (
    any_case(
        r"(?:(?:(?:what|which things|anything|everything|something)(?: else| all)? )?(?:did|have|had) (?:i|we)|"
        r"(?:what|which things|anything|everything)(?: else| all)? (?:i|we)(?:['’]ve| have)?) "
        r"(?:(?:ever|already|just) )*"
        r"(?:(?:sa(?:y|id)|tell you|told you|talk(?:ed)?|wr[io]te) (?:to you )?"
        r"(?:anything |something |earlier |before )*(?:about|regarding)|mention(?:ed)?(?: anything about)?) "
        r"(?P<what>.+)"
    ),
    any_case(r"what do (?:you|u) (?:know|remember) about (?P<what>(?:my|our) .+)"),
    any_case(
        rf"(?:(?:hồi nãy|lúc nãy|hôm trước|trước đó) )?{SUBJECT_VI} (?:(?:đã|có|từng) )*(?:nói|kể|nhắc)"
        r"(?: (?:với|cho) bạn)?(?: (?:những|điều))* gì (?:về|đến|tới) (?P<what>.+)"
    ),
)
# "What did my husband say?"
_WORDS_OF = (
    any_case(
        r"what (?:did|does|do|has|have|was|is|were|are) "
        r"(?P<who>(?!(?:i|we|you|u|he|she|they|it|people|one|this|that)\b)"
        r"[\w'’.]+(?: [\w'’.]+){0,2}?) (?:always |keep |just |even )?(?:say|said|saying|tell (?:me|us)|told (?:me|us))"
        r"(?: (?:about|regarding) (?P<what>.+)| (?:to (?:me|us)|every \w+|all the time|again))?"
    ),
    any_case(
        rf"(?P<who>(?!(?:bạn|{SUBJECT_VI}|ai|người ta|nó|họ) )\w+(?: \w+){{0,2}}?)(?: {SUBJECT_VI})?"
        r"(?: đã| có| hay| mới)? (?:nói|bảo|dặn)(?: với \w+)?(?: là| những)? gì(?: về (?P<what>.+))?"
    ),
)
# "What does Josh study?"
_DOES = any_case(
    rf"what (?:does|did) (?:(?:my|our) \w+|(?-i:[{UPPER}])[\w'’]+) (?!do\b|mean|stand|think|want|need|look)\w+(?: .+)?"
)
# "What does Ben do?", and what may follow his name
_OCCUPATION = any_case(
    rf"what (?:does|did) (?P<who>(?-i:[{UPPER}])[\w'’]+|(?:my|our) \w+) do(?: for (?:a living|work|money))?\b"
)
_WORKS = any_case(
    r",? (?:who )?(?:(?:is|was) (?:an?|the|our|my|head|in charge)|(?:(?:still|now) )?(?:works?|worked|writes|"
    r"teaches|runs|manages|leads|designs|builds|studies|sells|drives|develops|tests|cooks|repairs|does))\b"
)
_MINE = any_case(r"(?:my|our)\b")
_TRAILING = any_case(
    r"(?:[\s,]+(?:earlier|before|again|so far|yet|today|yesterday|please|pls|không|ko|chưa|rồi|vậy|thế|nhỉ|nữa|"
    r"ấy))+\W*$|\W+$"
)
_WH = any_case(
    r"(?:and |so |but )?(?:(?:when|where|who|how (?:old|many|much|long|tall|big|far|heavy)|what (?:time|day|date))"
    r"(?:['’]?(?:s|re))?\b|what(?:['’]?s| is| was| are) (?:the|our|my) )"
)
_WH_VI = any_case(
    r"(?<!\w)(?:khi nào|bao giờ|mấy giờ|bao nhiêu|bao lâu|mấy|(?:ở )?đâu|ai|tên (?:là )?gì|làm (?:nghề )?gì|\w+ nào|"
    rf"của {SUBJECT_VI} là gì)(?!\w)"
)
# "Which book are we reading?": the message may name the book without the word.
_WHICH = any_case(
    r"(?:and |so )?(?:what|which) (\w+) (?=(?:am|are|is|was|were|will|do|did|does|have|has|had)\b)|"
    r"^(?:and |so )?which (?!(?:am|is|are|was|were|of|one|way|means?|reminds?|i|we)\b)(\w+) (?=\w+ )|"
    r"(?<!\w)(\w+) nào(?!\w)"
)
# "Which platform?", which a message with its number or name answers
_WHICH_ALONE = any_case(
    r"(?:and |so )?(?:which|what) (?P<thing>(?!(?:time|day|date|colou?r|one|kind|else|now|about|do|does|is|are|was|if|"
    r"for)\b)\w{3,20})(?: number| name)?"
)
_NUMBERED = (
    r"(?:['’]s)?(?: (?:is|was|number|no\.?|called|named))* ?(?-i:[0-9“\"]|[A-Z][0-9A-Z]*\b|[A-Z][a-z])"
)
_WHICH_WAS_IT = any_case(r"(?:and |so )?(?:what|which) \w+ was (?:it|that)")
# Being there is said without these: "the runner is under my desk".
_STANDS = any_case(r"(?<=^where )((?:do|does|did|is|are) .+?) (?:stand|sit|lie|hang|located|kept)$")
# No sign of another kind of question.
_PLAIN = any_case(r"\b(?:will|going to|gonna|sẽ|khi(?= nào))\b")
# Implied subjects of questions of this kind.
_OF_KIND = content(
    "appointment time day date hour number place color giờ ngày hôm lúc số cái chiếc tấm người con màu"
)
# "When does my flight leave?" asks for the time of the flight.
_HAPPENS = any_case(r"(?<!\bi )(?<!\bwe )(?:leave|depart|start|begin|happen|take place)\W*$")
# What is planned comes, and is due.
_SCHEDULED = any_case(
    r"\b(?:booked|scheduled|planned|set for|moved|shifted|due|deadline|comes?|coming|arriv\w+|deliver\w*|only do)\b"
)
_COMES = content("come due arrive planned scheduled booked")
# Said in any such question.
_EMPTY = content("name called old now today tên tuổi nghề")
_ASKS_NAME = any_case(r"\b(?:called|named?|names)\b|(?<!\w)tên (?:là )?gì")
_NAMED = any_case(rf"\b(?:called|named?|names|tên)\b|['’]s name\b|(?<!\w)là (?-i:[{UPPER}])")
# "His name was Rufus", behind "my dog died"
_NAMES_THEM = any_case(
    rf"\W*(?:(?:his|her|its|their) names? (?:is|was|are|were)|(?:he|she|it|they)(?:['’]s| is| was|['’]re| are| were) "
    rf"(?:called|named)|tên (?:của )?nó là|nó tên(?: là)?) (?-i:[{UPPER}])"
)
# Something that both have in mind.
_DEFINITE = any_case(rf"\b(?:they|he|she|it|we|i|my|our|the|his|her|their|this|that|{SUBJECT_VI})\b|['’]s\b")
_BEFORE_NAME = re.compile(rf"(\w+)(?: của)?(?: (?i:{SUBJECT_VI}))?[,:]? \(?(?=([{UPPER}]\w+))")
_ASKS_AGE = any_case(r"\bhow old\b|(?<!\w)tuổi(?!\w)")
_WHAT_IS_THE = any_case(r"\W*(?:(?:and|so|but|ok)\W+)?what(?:['’]?s| is| was) ")
_THE_ONE = any_case(r"\b(?:the|our|my) (\w+)\b|\b(\w+)(?:['’]s|:| (?:is|was)\b)")
_NAME = re.compile(rf"(?<=\w )[{UPPER}]\w")
_AGED = any_case(
    r"\b[0-9]{1,3} ?(?:tuổi|years?|yrs?|y/?o|months?|weeks?)\b|"
    r"(?:\b(?:is|am|are|turn(?:s|ed|ing)?|aged?|im|theyre|hes|shes)|['’](?:m|s|re)) (?:\w+ )?[0-9]{1,3}\b(?!:)"
)
_WHEN = any_case(r"(?:when|what (?:time|day|date))(?:['’]?s| is| are) ")
# A name or a number may be the thing that is asked for.
_PARTICULAR = re.compile(rf"[0-9“\"]|(?<=[\w,(] )[{UPPER}]\w")
_WHO_IS = any_case(r"(?:who(?:['’]?s| is| was)) (?P<who>\w+)|(?P<vi>\w+) là ai")
# "She is called Agnieszka" says who she is with the message before.
_POINTS_BACK = any_case(r"\W*(?:(?:and|oh|ok|so|btw)\W+)?(?:she|he|they)\b")
_ASKS = any_case(
    r"^\W*(?:(?:hi|hey|hello|ok|so|and|also)\W+)*(?:what|which|who|whose|where|when|why|how|can|could|do|does|did|is|are|"
    r"should|would|will|any)\b|\?\W*$|\bwonder\w* (?:if|whether|what|who|how|when|where|why)\b|"
    r"(?<!\w)(?:gì|sao|mấy giờ|bao nhiêu|bao giờ|khi nào|ai|nào|không|ko|chưa|nhỉ)\W*$"
)
_GOES_ON_SAYING = any_case(
    rf"\W*(?:(?:and|but|then|so|mà|rồi)\W+)?(?:he|she|they|nó|ổng|bả|họ)\b(?=.*(?:{REPORTED.pattern}))"
)
_ON = any_case(
    r"\W*(?:it['’]?s?|its|they(?:['’]?re)?|he['’]?s?|she['’]?s?|that['’]?s?|this|the first(?: one)?|on|at|from|around|"
    r"about|in|by|ngày|lúc|vào|nó|tầm|khoảng|ở|từ|hôm|[0-9]\S*)(?!\w)"
)
# "Hm no, they moved it to the 8th" is about what was said right before.
_REJECTS = any_case(
    r"\W*(?:(?:hm+|oh|ah|ok|well|sorry|um+|à|ờ|ừ)\W+)*(?:no|nope|nah|actually|not|không|đổi|dời)\b|\b(?:it|that|nó)\b"
)
# "I paid him back 20", behind "I owe Peter 50 euros"
_ASKS_AMOUNT = any_case(r"\bhow (?:much|many)\b|(?<!\w)bao nhiêu(?!\w)")
_OF_THEM = any_case(r"\W*(?:(?:and|but|then|so)\W+)?(?:i|we|he|she|they)\b.{1,30}\b(?:him|her|them|it|me)\b")
_AGREES = any_case(r"\W*(?:ok(?:ay)?|yeah|yes|right|fine|lets|let['’]s|ừ|ok|thôi|vậy|chốt)\b")
_SOMEBODY = rf"(?:{ONE}|{OF_SEVERAL}|{PERSON}|{PEOPLE})".replace("?P<who>", "?:")
_SOMEBODY_VI = rf"(?:{ONE_VI}|{OF_SEVERAL_VI}|{PERSON_VI})".replace("?P<who>", "?:")
# What a list has, and what nobody says of themselves.
_NO_THING = (
    r"(?:task|to-?do|reminder|meeting|appointment|plan|event|alarm|timer|errand|chore|time|idea|chance|choice|reason|"
    r"right|question|message|option|problem|point|case|thing)"
)
# Only what its writer has said can answer it.
_OWN = any_case(
    r"(?:what(?:['’]?s| is| was) my name|who am i|what am i called|how old am i|where do (?:i|we) (?:live|work)|"
    r"when(?:['’]?s| is) my birthday|"
    rf"(?:what|who|where|how old|when)(?:['’]?s| is| are| was) (?:my|our) (?:\w+ )?{_SOMEBODY}(?:['’]?s)?"
    r"(?: (?:name|called|named|birthday|age|job|from|again|now))*|"
    rf"where does (?:my|our) {_SOMEBODY} (?:live|work)|"
    rf"do (?:i|we) have (?:an?|any) (?:\w+ )?{_SOMEBODY}s?|do i have (?:an?|any) (?:\w+ )?(?!{_NO_THING}s?\b)\w+|"
    r"am i (?:allergic|married|vegetarian|vegan)\b.*|"
    rf"{SUBJECT_VI} (?:tên (?:là )?gì|là ai|bao nhiêu tuổi|(?:sống|ở|làm việc) (?:ở )?đâu)|"
    rf"{_SOMEBODY_VI} (?:của )?{SUBJECT_VI} (?:tên (?:là )?gì|bao nhiêu tuổi|làm (?:nghề )?gì)|"
    rf"{SUBJECT_VI} có (?:nuôi )?{_SOMEBODY_VI} (?:không|ko))\W*"
)
_ABOUT_WRITER = any_case(rf"\b(?:am|do) (?:i|we)\b(?! have)|^\W*{SUBJECT_VI}\b")
_OF_OTHERS = any_case(rf"\b(?:my|our) (?:\w+ )?{_SOMEBODY}\b|{_SOMEBODY_VI} (?:của )?{SUBJECT_VI}\b")
_WRITER = any_case(rf"\b(?:i|i['’]m|i['’]ve|im|we)\b|(?:^|[,.] ?){SUBJECT_VI}\b")
_HAS = any_case(r"\bdo (?:i|we) have\b")
_NOT_HAD = any_case(
    r"\b(?:wish|want|would|wanna|might|plan|planning|think(?:ing)? (?:about|of)|look(?:ing)? (?:for|at)|going to|gonna|"
    r"need|used to|sold|lost|died)\b|['’]d like\b"
)
_NOTHING = (
    "I do not find that in what you have told me.",
    "Mình không tìm thấy điều đó trong những gì bạn đã nói.",
)
ANSWERS = (*questions.OPENINGS, *_NOTHING)


class HistoryQuestion(Struct, frozen=True):
    """``words`` that the message has; with ``mentions`` any message, otherwise one that says what is asked for.

    Nothing but such a message can answer an ``own`` question. One is ``loose`` if a word of it may be missing.
    """

    text: str
    terms: str  # to search for
    words: frozenset[str]
    mentions: bool = False
    own: bool = False
    loose: bool = False
    reported: bool = False  # it asks for what somebody said


def sought(asked: str) -> HistoryQuestion | None:
    """Words that a message, being only a question, looks for in the history; None if it may ask for something else."""
    said = asked.strip()
    if not said or len(said) > questions.LONGEST or "\n" in said or questions.asks_nothing(said):
        return None
    lead = questions.LEAD.match(said)
    rest = _TRAILING.sub("", said[lead.end() :] if lead else said)
    if lead and lead[0].strip() and _MINE.match(rest):  # "do you remember my locker's code"
        rest = f"what is {rest}"
    for pattern in _MENTIONS:
        found = pattern.fullmatch(rest)
        if found:
            words = content(found["what"])
            return HistoryQuestion(said, found["what"], words, mentions=True) if words else None
    for pattern in _WORDS_OF:
        found = pattern.fullmatch(rest)
        if found:
            words = content(f"{found['who']} {found['what'] or ''}")
            return (
                HistoryQuestion(said, f"{found['who']} {found['what'] or ''}", words, reported=True)
                if words
                else None
            )
    if occupation := _OCCUPATION.fullmatch(rest):
        return HistoryQuestion(said, occupation["who"], content(occupation["who"]))
    if alone := _WHICH_ALONE.fullmatch(rest):
        return (
            HistoryQuestion(said, alone["thing"], content(alone["thing"]))
            if content(alone["thing"])
            else None
        )
    own = bool(_OWN.fullmatch(rest))
    who = _WHO_IS.fullmatch(rest)
    which = _WHICH.search(rest)
    if not (own or which or _WH.match(rest) or _WH_VI.search(rest) or _DOES.fullmatch(rest)):
        return None
    rest = _PLAIN.sub(" ", _STANDS.sub(r"\1", rest))
    if not own and questions.OTHERWISE.search(rest):
        return None
    terms = questions.ASKED.sub(" ", rest)
    words = content(terms) - _EMPTY
    if asks_kind(said):
        words = words - _OF_KIND - content(happens[0] if (happens := _HAPPENS.search(rest)) else "") or words
    if which and not asks_kind(said):
        thing = content(which[1] or which[2] or which[3])
        if len(words - thing) > 1:
            return HistoryQuestion(said, terms, words - thing, loose=True)
        return (
            HistoryQuestion(said, terms, words) if len(words) > 1 or _WHICH_WAS_IT.fullmatch(rest) else None
        )
    if _DOES.fullmatch(rest) and len(words) < 2:
        return None
    aged = _ASKS_AGE.search(rest) and _NAME.search(rest)
    terms = " ".join(word for word in terms.split() if content(word) & words) or terms
    meant = len(words) > 1 or who or aged or _DEFINITE.search(rest) or _WHEN.match(rest)
    if not own and not (words and meant):
        return None
    return HistoryQuestion(said, terms, words, own=own)


def says(question: HistoryQuestion, text: str, following: str = "") -> bool:
    """Whether a user's message, with the one that goes on ``following`` it, answers the question."""
    said = content(text) | (_COMES if _SCHEDULED.search(text) else frozenset())
    if (
        not question.words & content(text)
        or _ASKS.search(text)
        or (HYPOTHETICAL.search(text) and not (question.mentions or question.reported))
    ):
        return False
    if (
        not (question.mentions or question.reported)
        and _ABOUT_WRITER.search(question.text)
        # "My friend says she lives in Rome", "my sister lives in Oslo"
        and (REPORTED.search(text) or (_OF_OTHERS.search(text) and not _WRITER.search(text)))
    ):
        return False
    if _HAS.search(question.text) and _NOT_HAD.search(text):
        return False
    if occupation := _OCCUPATION.search(question.text):
        who = re.compile(rf"\b{re.escape(occupation['who'])}\b", re.IGNORECASE)
        return any(_WORKS.match(text, named.end()) for named in who.finditer(text))
    if alone := _WHICH_ALONE.fullmatch(_TRAILING.sub("", question.text)):
        return bool(re.search(rf"(?i:\b{re.escape(alone['thing'])}){_NUMBERED}", text))
    if question.reported:
        return question.words <= said and bool(REPORTED.search(text) or _GOES_ON_SAYING.match(following))
    [word, *others] = question.words
    if not others and _WHAT_IS_THE.match(question.text) and not _defined(word, text):
        return False
    # Longer messages without a name or a number are about something else.
    if question.loose and not (_PARTICULAR.search(text) or len(text.split()) <= _SAYS_ONE):
        return False
    if question.words <= said:
        if question.mentions:
            return True
        if _ASKS_NAME.search(question.text):
            return _names(question, text) or bool(_NAMES_THEM.match(following))
        if _ASKS_AGE.search(question.text) and not (_AGED.search(text) or _AGED.search(following)):
            return False
        kind = of_kind(question.text, text)
        return kind or bool(_ON.match(following) and of_kind(question.text, following))
    return asks_kind(question.text) and _completes(question, said, following)


def _defined(word: str, text: str) -> bool:
    """Whether a message speaks of the one thing of its kind: "the deadline moved", but not "time to get up"."""
    return any(content(thing[1] or thing[2]) == {word} for thing in _THE_ONE.finditer(text))


def _names(question: HistoryQuestion, text: str) -> bool:
    """Whether a message says a name: "the dog is called Rex", "my brother Tim"."""
    return bool(_NAMED.search(text)) or any(
        content(match[1]) & question.words and not content(match[2]) & question.words
        for match in _BEFORE_NAME.finditer(text)
    )


def leads_to(question: HistoryQuestion, before: str, text: str) -> bool:
    """Whether a message ``before`` says of whom the one with the name speaks."""
    return bool(_WHO_IS.search(question.text) and _POINTS_BACK.match(text) and not _ASKS.search(before))


def goes_on(question: HistoryQuestion, said: str, after: str) -> bool:
    """Whether the message ``after`` one that was found says more about it, or corrects it."""
    if _ASKS.search(after) or question.mentions:
        return False
    if question.reported:
        return bool(_GOES_ON_SAYING.match(after))
    if _ASKS_NAME.search(question.text) and _NAMES_THEM.match(after):
        return True
    kind = asks_kind(question.text) and of_kind(question.text, after)
    if CORRECTS.match(after):
        return kind or bool(content(said) & content(after))
    if not kind:
        return False
    if _ASKS_AGE.search(question.text):
        return bool(_AGED.search(after)) and not _AGED.search(said)
    if _REJECTS.match(after) or (DECIDED.search(after) and _REJECTS.search(after)):
        return True
    of_them = _ASKS_AMOUNT.search(question.text) and _OF_THEM.match(after)
    short = len(after.split()) <= _SHORT and bool(_ON.match(after) or _AGREES.match(after) or of_them)
    return short or bool(question.words & content(after))


def changes(question: HistoryQuestion, text: str) -> bool:
    """Whether a later message changes the decision about what is asked for."""
    return (
        not (question.mentions or question.loose or question.reported)
        and bool(question.words & content(text) and DECIDED.search(text))
        and of_kind(question.text, text)
        and not (_ASKS.search(text) or HYPOTHETICAL.search(text))
    )


def _completes(question: HistoryQuestion, said: frozenset[str], following: str) -> bool:
    """Whether two messages in a row have all words of the question, and the second one what it asks for."""
    return (
        question.words <= said | content(following)
        and not _ASKS.search(following)
        and of_kind(question.text, following)
    )


def sought_answer(question: HistoryQuestion, found: Sequence[tuple[str, date]], today: date) -> str:
    """Quotes with their days. Without any, say so if only the user could know the answer."""
    vietnamese = questions.in_vietnamese(question.text)
    if not found:
        return _NOTHING[vietnamese] if question.own or question.mentions else ""
    lines = [f"“{text}”" + (f" ({day.isoformat()})" if day != today else "") for text, day in found]
    answer = questions.quoted(question.text, lines)
    return f"{answer}\n{SECRETS_UNSTORED[vietnamese]}" if any(MARK in text for text, _ in found) else answer
