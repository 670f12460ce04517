"""Questions as people type them: short forms written out, signs asked about, and messages that ask nothing."""

from __future__ import annotations

import re

from gateway.ask.text.words import is_stop_word
from gateway.base.patterns import any_case

_SHORT_FORMS = {
    **{f"{word}s": f"{word} is" for word in ("what", "who", "where", "how", "when", "why")},
    **{
        f"{word}nt": f"{word} not"
        for word in "is are was were do does did has have could would should must".split()  # noqa: SIM905
    },
    "cant": "cannot",
    "wont": "will not",
    "wanna": "want to",
    "gonna": "going to",
    "pls": "please",
    "plz": "please",
    "thx": "thanks",
    "abt": "about",
    **dict.fromkeys(("waht", "whta", "wat", "hwat"), "what"),
    **dict.fromkeys(("wich", "whcih", "whitch", "wihch"), "which"),
    **dict.fromkeys(("wehn", "whne"), "when"),
    **dict.fromkeys(("hwo",), "how"),
    **dict.fromkeys(("differnce", "diffrence", "diference", "differance", "diffrance"), "difference"),
    **dict.fromkeys(("betwen", "beetween", "bewteen"), "between"),
    **dict.fromkeys(("deos",), "does"),
    "u": "you",
    "ur": "your",
}
# Capitals make a name of it: the film "Us", the language "U". A sign beside it, a part of code or of an address.
_SHORT_FORM = re.compile(rf"(?<![^\s(\"'])(?:{'|'.join(_SHORT_FORMS)})(?=[\s,?!;:)\"']|\.?(?:\s|\Z))")
_FIRST_WORD = re.compile(r"\A\W*[A-Z][a-z]+\b")

_GREETING = (
    r"hi|hello|hey|hiya|yo|good (?:morning|afternoon|evening|day)|greetings|thanks|thank you|many thanks|bye|goodbye"
    r"|ok|okay|xin chào|chào|cảm ơn|cám ơn|tạm biệt"
)
_TO_WHOM = r"there|all|everyone|everybody|bot|hearth|you|so much|very much|a lot|again|bạn|nhé|ạ|nhiều"
_ABOUT_ITSELF = (
    r"help|help me|(?:who|what) are you|what is this|what can (?:you|i) (?:do|ask)(?: you| here)?"
    r"|what can (?:you|i) (?:answer|tell me|help(?: me)? with|ask you(?: about)?|ask about|find(?: here)?)"
    r"|what (?:is|are|does) (?:this|the) (?:wiki|site|website|database)(?: all)?(?: about| for| know| cover)?"
    r"|(?:what|which) (?:topics|subjects|questions|things)"
    r" (?:do|can|could) you (?:know|cover|answer|have)(?: about)?"
    r"|how (?:big is (?:this|the) wiki|many (?:pages?|articles?|entries|topics)"
    r" (?:do you (?:have|know)|are (?:there )?in (?:this|the) wiki|does (?:this|the) wiki have))"
    r"|what do you (?:do|know(?: about)?)|how does this work"
    r"|how do i use (?:this|you)|how are you(?: doing)?(?: today)?"
    r"|bạn là ai|bạn làm được gì|giúp tôi"
)
_ASKS_NOTHING = any_case(
    rf"(?:(?:{_GREETING})(?:[\s,]+(?:{_TO_WHOM}))*[\s,.!]*)*(?:{_ABOUT_ITSELF})?[\s.!?]*"
)


# A short sign or letter beside such a word, between spaces, or in quotation marks: the ? command, `.`.
_KEY = r"(?:command|instruction|operator|operation|key|option|flag|symbol|sign|letter|character|opcode)s?"
_SIGNS = tuple(
    any_case(pattern)
    for pattern in (
        rf"(?<!\S)(\S{{1,3}}) {_KEY}\b",
        rf"\b{_KEY} (\S{{1,3}})(?!\S)",
        r"(?<!\S)([^\w\s\"'`&/–—-]{1,3})(?=\s+\S)",
        r"[\"'`“]([^\s\"'`“”]{1,3})[\"'`”]",
    )
)
_HEAD = re.compile(r"\A\s*(?:[-*•] )?(\S{1,3}(?: \S{1,3}){0,3})(?: \||: )")


def signs(question: str) -> frozenset[str]:
    """The signs and letters that a question asks about, such as commands: `.`."""
    found = (sign.strip("\"'`“”") for pattern in _SIGNS for sign in pattern.findall(question))
    plain = (sign.rstrip(",?") or sign for sign in found)
    return frozenset(sign for sign in plain if sign and not is_stop_word(sign))


def row_signs(line: str) -> frozenset[str]:
    """The signs that a row of a table, or an item such as "w: Wait", begins with."""
    head = _HEAD.match(line)
    return frozenset(head[1].split()) if head else frozenset()


def written_out(question: str) -> str:
    """The question with its short forms written out: "whats" is "what is"."""
    lowered = _FIRST_WORD.sub(lambda first: first[0].lower(), question)
    text = lowered if _SHORT_FORM.match(lowered.lstrip()) else question
    return _SHORT_FORM.sub(lambda short: _SHORT_FORMS[short[0]], text)


def asks_nothing(question: str) -> bool:
    """Whether a message is only a greeting or thanks, or asks what it can ask."""
    return _ASKS_NOTHING.fullmatch(question.strip()) is not None


def request_about(title: str) -> str:
    """An example of a question; a title may be of a person, so "What is …?" would be wrong for some."""
    return f"Tell me about {title}."
