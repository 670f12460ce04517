"""Questions of users about themselves, and which of what they have said answers one. Pure.

English and Vietnamese. When in doubt, nothing does, and the model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.stems import stem
from gateway.memory.answers.kinds import of_kind, with_kinds
from gateway.memory.learning.entailment import content
from gateway.memory.learning.plain import FILLERS, plain_clauses
from gateway.memory.learning.statements import NEGATION, UPPER
from gateway.memory.learning.wordings import SUBJECT_VI
from gateway.store.memory.facts import Fact
from gateway.store.stop_words import VIETNAMESE, speaks

LONGEST = 120  # characters of a question: a longer one says more than that
_MOST = 3  # facts that one question means; of more, it means none in particular
LEAD = any_case(
    rf"\W*(?:(?:{FILLERS})\W+)*"
    r"(?:(?:do|can|could) (?:you|u) (?:still |even |also )?(?:remember|recall|know|tell me|remind me)(?: of)?|"
    r"(?:any (?:idea|chance you (?:know|remember))|you (?:still )?(?:know|remember))|"
    r"(?:please )?(?:tell|remind) me(?: again)?(?: of)?|"
    r"(?:bạn )?(?:còn )?(?:có )?(?:nhớ|biết)|nhắc lại(?: (?:giúp|cho))?)?\W*"
)
_I = r"\b(?:i|my|me|our|we)\b"
_ME_VI = rf"(?<!\w){SUBJECT_VI}(?!\w)"
_YOU_VI = r"bạn(?! (?:gái|trai|thân|cùng|học|đời)\b)"
# Vietnamese words of questions that ask nothing: "mấy năm nay", "ai cũng vui", "không có gì".
_INDEFINITE_VI = any_case(
    r"(?<!\w)(?:mấy (?:năm|tháng|tuần|ngày|hôm|bữa) (?:nay|rồi|qua|trước|liền)|(?:ai|gì|đâu|nào) cũng|"
    r"(?:không|chẳng|chả|ko)(?: \w+){0,3} (?:gì|ai|đâu|nào)(?: (?:cả|hết|đâu|luôn|nữa))*\W*$)(?!\w)"
)
_ABOUT_ME = any_case(
    r"(?:(?:what|which things|anything|everything)?(?: else)? ?(?:do|did|have|can)? ?(?:you|u)? ?"
    r"(?:know|remember|learn(?:ed|t)?|noted|stored) (?:so far )?about me|"
    r"(?:what|everything)(?: (?:have|did))? i(?:['’]ve)? (?:told|tell) you(?: so far)?(?: about (?:me|myself))?|"
    rf"(?:bạn )?(?:đã |đang )?(?:biết|nhớ)(?: được)?(?: những)? ?gì về {SUBJECT_VI}|"
    rf"{SUBJECT_VI} (?:đã )?(?:nói|kể)(?: với| cho)?(?: bạn)?(?: những)? gì)(?: so far| yet| now|rồi)?\W*"
)
_OWN = any_case(
    # "Tabs or spaces, what do I prefer?"
    r"(?:[\w' -]{3,30}, )?(?:who|what|when|where|which|how (?:old|many|much|long|tall))(?:['’]?s)?\b"
    rf"(?=.*{_I})|"
    rf"(?=.*{_ME_VI}).*(?<!\w)(?:gì|đâu|ai|nào|mấy|bao nhiêu|bao giờ|tên(?=\W*$|.*\?))(?!\w)"
)
# They are answered by facts alone: of what else was said, the words do not tell.
_WHETHER = any_case(rf"(?:do|does|am|is|are|have|was) {_I}|{_ME_VI} (?:có|bị|đã) .+ (?:không|ko|chưa)\b")
_MINE = any_case(r"(?:my|our)\b|tên " + _ME_VI)  # behind "do you remember"
_AND_WHAT_I_SAID = any_case(
    r"\b(?:did|have) i (?:(?:ever|already) )?(?:sa(?:y|id)|tell you|told you|mention(?:ed)?)(?: about|(?: that)? i)?\b|"
    r"\bi (?:said|told you|mentioned)(?: (?:that )?i)?\b"
)
# Advice, plans and knowledge of the world.
OTHERWISE = any_case(
    r"\b(?:should|shall|could|can|would|will|might|may|must|if|because|recommend|suggest|think|mean|tomorrow|"
    r"we know|(?<!like )(?<!love )(?<!enjoy )doing|going|happen\w*|wrong|right|better|"
    r"best(?! (?:man|friend|mate)\b)|good|you|your|nên|nếu|khi|"
    rf"{_YOU_VI})\b"
)
ASKED = any_case(
    r"['’]s\b|\b(?:what (?:time|day|date)|how (?:much|many|long|tall)|"
    r"(?:who|what|when|where|how)s?|which|again|exactly|called|named?|names|"
    r"remember|recall|know|tell|remind|still|got|get|doing|any|anything|something|"
    r"(?:cái )?gì|đâu|ai|nào|mấy|bao|nhiêu|giờ|nhớ|biết|còn|thế|vậy|nhỉ|ấy|"
    rf"rồi|hả|nha|đang|nhà(?= {_ME_VI})|{_YOU_VI}|(?:không|ko|chưa)(?=\W*$))\b"
)
_NAME = any_case(r"\b(?:names?|tên|who am i|tôi là ai|mình là ai)\b")
# A name that no fact has is told by one of these words.
_CALLED = any_case(r"\b(?:called|named?|names|tên)\b|['’]s name")
_WHICH_ONE = any_case(
    r"\b(?:what|which) (?:kinds? of |types? of )?(\w+) (?:have|had|do|did|am|was|are|were)\b"
)
# "I read a long book" does not say which, "a book about bees" does.
_SOME = frozenset("a an any many another some other several few more new this that these those".split())  # noqa: SIM905
_SAYS_WHICH = frozenset({"about", "by", "called", "named", "on"})
_SAYS_LITTLE = content("my old new own first last current other")  # "my old car" does not say which
_OF_NAMED = content("read watch learn study drive speak")
_NAME_NEXT = re.compile(rf"\s+(?:(?:an?|the|my)\s+)?(?:[a-z]+\s+)?[{UPPER}0-9“\"]")
_ADDS = re.compile(r"(?:\w+ ){0,2}[\w-]*[0-9][\w-]*")  # "…, spot 27"
_HOW_OLD = any_case(r"\bhow old\b")
# Questions in plainer words.
_PLAINER = (
    (any_case(r"\bdo (?:i|we) do for (?:a living|work|money)\b"), "is my job"),
    (
        any_case(r"\bwhere (?:am i|are we|do (?:i|we) come)(?: originally)? from\b"),
        "what is my hometown",
    ),
    (any_case(rf"(?<!\w)nhà (?={SUBJECT_VI} ở đâu)"), "sống "),
    (
        any_case(rf"^(?:(?:bây giờ|hiện (?:tại|nay|giờ)|giờ) )?({SUBJECT_VI}) (?:đang )?ở đâu"),
        r"\1 sống ở đâu",
    ),
    (any_case(r"\b(?:these days|at the moment|right now|currently)\b"), " "),
    (
        any_case(
            r",? (?:(?:do|can|could) (?:you|u) (?:still )?(?:remember|recall|know|tell me)|"
            r"(?:bạn|em) (?:(?:còn|có) )*(?:nhớ|biết)(?: không| ko)?)\W*$"
        ),
        "",
    ),
)
# Other words for what a key is about.
_WORDS_FOR = {
    key: frozenset(map(stem, words.split()))
    for key, words in {
        "age": "age tuổi",
        "allergy": "allergy allergic dị ứng",
        "birthday": "birthday born bday date sinh nhật ngày",
        "boss": "manager",
        "boyfriend": "partner",
        "dad": "father",
        "diet": "eat food diet ăn",
        "kind of diet": "eat food diet meat fish vegetarian vegan ăn thịt cá chay",
        "father": "dad",
        "girlfriend": "partner",
        "health": "illness condition disease health bệnh",
        "hobby": "play hobby instrument sport chơi",
        "home_city": "live city town place address home sống ở nhà thành phố",
        "hometown": "come hometown quê",
        "husband": "partner spouse",
        "job": "job work profession occupation làm nghề nghiệp việc",
        "manager": "boss",
        "medication": "medicine medication pill drug take thuốc uống",
        "mom": "mum mother",
        "mother": "mum mom",
        "mum": "mom mother",
        "preference": "like love enjoy prefer hate dislike stand food drink thích ghét ăn uống món",
        "skill": "language learn",
        "speaks": "language speak",
        "studies": "study degree subject major course field university ngành trường học",
        "uses": "use editor ide browser phone laptop os distro tool database dùng máy điện thoại",
        "vehicle": "car bike motorbike vehicle drive ride xe đi chạy lái",
        "wife": "partner spouse",
        "workplace": "work job company employer office làm việc công ty",
    }.items()
}
# The owner of a thing or relation of a person, up to the verb: "the user's sister Fiona", "con mèo của mình".
_KIN_VI = r"(?! ?(?:gái|trai|chó|mèo)\b)"
_THEIRS = any_case(
    r"(?:the user['’]s|their|my|our) (?:[\w-]+ ){0,3}?[\w-]+"
    r"(?=['’]s\b| (?:is|are|was|has|lives?|works?|called|\w+s)\b| (?-i:[A-Z])|\W*$)|"
    rf"(?!người dùng\b|{SUBJECT_VI}\b{_KIN_VI})(?:\w+ ){{1,3}}?(?:của )?(?:người dùng|{SUBJECT_VI})\b{_KIN_VI}"
)
_BEFORE = any_case(rf"^\W*(?:(?:{FILLERS}|but|because|since|also|mà|và|thì|nhưng|năm nay|hiện|bây giờ)\W+)*")
_I_AM = any_case(rf"(?:i|we|i['’]?m|i['’]ve|we['’]re|we['’]ve|{SUBJECT_VI}{_KIN_VI})\b")
_WITHOUT_SUBJECT = any_case(
    r"(?:\w+ing|work|live|study|play|drive|take|have|love|like|hate|use|sống|làm|học|thích|ở|đi|dùng)\b"
)
OPENINGS = ("You told me", "Bạn đã nói")
_YOU = (
    ("The user is ", "you are "),
    ("The user's ", "your "),
    ("The user has ", "you have "),
    ("Người dùng ", "bạn "),
)
_JOINED = any_case(r"^(?:and|but|so|because|và|nhưng|vì)\s+")


class OwnQuestion(Struct, frozen=True):
    """A user's question about themselves: ``words`` that the statement has; without any, everything or the name."""

    text: str
    words: frozenset[str] = frozenset()
    key: str = ""
    everything: bool = False
    whether: bool = False


def asks_nothing(said: str) -> bool:
    """Whether Vietnamese words of a question stand in a statement."""
    return "?" not in said and bool(_INDEFINITE_VI.search(said))


def own_question(asked: str) -> OwnQuestion | None:
    """The question about its writer that a message consists of; None if it is none."""
    said = asked.strip()
    if not said or len(said) > LONGEST or "\n" in said or asks_nothing(said):
        return None
    lead = LEAD.match(said)
    rest = said[lead.end() :] if lead else said
    for pattern, plain in _PLAINER:
        rest = pattern.sub(plain, rest)
    if _ABOUT_ME.fullmatch(rest) or _ABOUT_ME.fullmatch(said):
        return OwnQuestion(said, everything=True)
    whether = not _OWN.match(rest) and bool(_WHETHER.match(rest))
    remembered = lead is not None and bool(lead[0].strip()) and _MINE.match(rest)
    if not (_OWN.match(rest) or whether or remembered):
        return None
    rest = _AND_WHAT_I_SAID.sub(" my ", rest)
    if OTHERWISE.search(rest):
        return None
    words = content(ASKED.sub(" ", rest))
    if _NAME.search(rest) and words <= {"tên"}:
        return OwnQuestion(said, key="name")
    if _NAME.search(rest):
        words -= {"tên"}
    if _HOW_OLD.search(rest):
        words -= {"old"}
        if not words:
            return OwnQuestion(said, key="age")
    return OwnQuestion(said, words, whether=whether) if words else None


def recalled_facts(question: OwnQuestion, facts: Sequence[Fact]) -> Sequence[Fact]:
    """The facts that say it; none if no fact surely does."""
    if question.everything:
        return facts
    if question.key:
        return [fact for fact in facts if fact.key == question.key]
    words = question.words
    fitting = [
        fact
        for fact in facts
        if of_kind(question.text, fact.text)
        # "I've got two cats" names none of them.
        and not (
            fact.key.startswith("has:") and _CALLED.search(question.text) and not _CALLED.search(fact.text)
        )
        and all(_is_about_theirs(words, said, fact.key.partition(":")[0]) for said in (fact.text, fact.quote))
    ]
    found = [fact for fact in fitting if words <= with_kinds(content(fact.text)) | _key_words(fact.key)]
    found = [fact for fact in found if _key_words(fact.key) <= words] or found
    if not found:
        meant = [fact for fact in fitting if words <= content(fact.text) | _meant_by(fact.key)]
        found = [fact for fact in meant if question.whether or _agrees(question, fact)]
    return found if len(found) <= _MOST else []


def recalled_answer(question: OwnQuestion, facts: Sequence[Fact], later: Sequence[str] = ()) -> str:
    """The user's words of the facts, and later ones that change the decision."""
    return quoted(question.text, [*map(_words_of, facts), *(f"“{text}”" for text in later)])


def told_in(question: OwnQuestion, message: str) -> str:
    """The clause of a user's message that says what the question asks for; "" if none does."""
    if (
        not question.words
        or question.whether
        or (_CALLED.search(question.text) and not _CALLED.search(message))
    ):
        return ""
    which = _WHICH_ONE.search(question.text)
    verb = question.words - content(which[1]) if which else frozenset[str]()
    verb = verb if verb <= _OF_NAMED else frozenset()
    writers = False  # whether the sentence is about its writer so far
    clauses = list(plain_clauses(message))
    for at, clause in enumerate(clauses):
        about, said = _about_writer(question.words, clause.text), content(clause.text)
        writers = about if about is not None else writers and clause.follows
        # "I'm reading Dune" says which book without the word.
        named = bool(verb) and verb <= said and _names_behind(verb, clause.text)
        if writers and (question.words <= said or named) and _tells(question, clause.text):
            more = clauses[at + 1] if at + 1 < len(clauses) and clauses[at + 1].follows else None
            adds = more is not None and _ADDS.fullmatch(more.text)
            return f"{clause.text}, {more.text}" if more is not None and adds else clause.text
    return ""


def without_thing(question: str) -> str:
    """The question without the word for what is asked for, which its answer may lack: "what book am I reading?"."""
    return _WHICH_ONE.sub(lambda match: match[0].replace(match[1], ""), question, count=1)


def _names_behind(verb: frozenset[str], clause: str) -> bool:
    """Whether a name stands behind the verb: "I'm reading Dune", but not "I play football on Sundays"."""
    return any(
        _NAME_NEXT.match(clause, word.end())
        for word in re.finditer(r"\w+", clause)
        if content(word[0]) & verb
    )


def _tells(question: OwnQuestion, clause: str) -> bool:
    """Whether a clause says what is asked for, and not only that there is such a thing, or none."""
    # The letter is the rest of "I'm".
    about = content(_I_AM.sub("", _BEFORE.sub("", clause), count=1)) - {"m"} - _SAYS_LITTLE
    if not of_kind(question.text, clause) or about <= question.words:
        return False
    if NEGATION.search(clause) and not NEGATION.search(question.text):
        return False
    which = _WHICH_ONE.search(question.text)
    return which is None or not _is_some(content(which[1]), clause.casefold().split())


def _is_some(thing: frozenset[str], words: Sequence[str]) -> bool:
    """Whether the thing is only mentioned as one of several."""
    return any(
        content(word) & thing
        and not _SOME.isdisjoint(words[max(0, at - 2) : at])
        and not (word.endswith(":") or _SAYS_WHICH.intersection(words[at + 1 : at + 2]))
        for at, word in enumerate(words)
    )


def told_answer(question: OwnQuestion, clauses: Sequence[str], day: str) -> str:
    """Quote the user's words of an earlier ``day``, or of this one (``""``)."""
    return quoted(question.text, [f"“{_JOINED.sub('', clause)}”" for clause in clauses], day)


def in_vietnamese(text: str) -> bool:
    """Whether a short question is in Vietnamese."""
    return not speaks(("en",), text) or bool(
        VIETNAMESE.search(text.casefold()) or re.search(_ME_VI, text, re.I)
    )


def _key_words(key: str) -> frozenset[str]:
    return frozenset(map(stem, key.split("_")))


def _meant_by(key: str) -> frozenset[str]:
    name, _, value = key.partition(":")
    # Who eats no prawns may eat meat; a vegetarian does not.
    meant = "kind of diet" if name == "diet" and not value else name
    return _key_words(name) | _WORDS_FOR.get(meant, frozenset())


def _is_about_theirs(words: frozenset[str], said: str, key: str = "") -> bool:
    """Whether a statement is about the user, or about somebody or something of theirs that the question names."""
    owned = _THEIRS.match(_BEFORE.sub("", said))
    return owned is None or not words.isdisjoint(
        with_kinds(content(owned[0])) | _WORDS_FOR.get(key, frozenset())
    )


def _about_writer(words: frozenset[str], clause: str) -> bool | None:
    """Whether a clause's subject is its writer or something of theirs that is among ``words``; None without one."""
    said = _BEFORE.sub("", clause)
    if _I_AM.match(said):
        return True
    if _THEIRS.match(said):
        return _is_about_theirs(words, said)
    return None if _WITHOUT_SUBJECT.match(said) else False


def _agrees(question: OwnQuestion, fact: Fact) -> bool:
    """Whether likes answer a question for likes, and dislikes one for dislikes."""
    likes = fact.key.startswith("preference:")
    return not likes or bool(NEGATION.search(question.text)) == bool(NEGATION.search(fact.text))


def _words_of(fact: Fact) -> str:
    """The fact in the user's own words if it has several of these, or as it is stored."""
    if " " in fact.quote:
        return f"“{_JOINED.sub('', fact.quote)}”"
    return next((you + fact.text[len(they) :] for they, you in _YOU if fact.text.startswith(they)), fact.text)


def quoted(question: str, texts: Iterable[str], day: str = "") -> str:
    """What was told, below its opening, in the language of the question."""
    found = list(dict.fromkeys(texts))
    vietnamese = in_vietnamese(question)
    on = f" {'hôm' if vietnamese else 'on'} {day}" if day else ""
    told = f"{OPENINGS[vietnamese]}{on}:"
    if len(found) < 2:
        return f"{told} {found[0]}" if found else ""
    return "\n".join([told, *(f"- {text}" for text in found)])
