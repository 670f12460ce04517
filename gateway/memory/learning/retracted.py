"""Messages that take back what their writer said just before. Pure, for English and Vietnamese."""

from __future__ import annotations

from gateway.base.patterns import any_case
from gateway.memory.learning.entailment import content
from gateway.memory.learning.wordings import SUBJECT_VI

_OPENING = (
    r"\W*(?:(?:ok|okay|well|hm+|oh|o+ps|ah|(?:ha){2,}h?|he(?:he)+|lo+l|lmao|sorry|actually|wait|hang on|no|nah|um+|uh|"
    r"à|ý|ừ|ờ|ủa|xin lỗi|thật ra|thôi|mà)\W+)*"
)
_JOKE = any_case(
    _OPENING
    + r"(?:(?:i['’]?m |i am |i was |was )?(?:just |only )?(?:kidding|joking|jk|messing with (?:you|u))\b|"
    r"(?:that(?:['’]?s| was| is)|it was|thats) (?:just )?(?:a joke|sarcasm)\b|i (?:made (?:that|it) up|lied)\b|"
    rf"(?:{SUBJECT_VI} )?(?:nói |mới )?(?:đùa|giỡn|xạo|dua|gion)(?=\W*$|[,.!]| (?:thôi|thoi|đấy|đó|day|do|tí|chút|chơi|"
    r"choi|mà|á|ấy|haha*|nha|nhé)))"
)
_MISTAKE = any_case(
    _OPENING
    + r"(?:(?:no,? wait|wait,? no)\b|(?:scratch|strike) that\b|ignore (?:that|what i (?:just )?said|my last message)\b|"
    r"i (?:misspoke|take (?:that|it) back|meant to say)\b|"
    r"(?:that(?:['’]?s| is| was)|thats) [^,.!?\n]{1,40}?,? not me\b|"
    rf"(?:{SUBJECT_VI} )?(?:nói |viết |gõ |ghi )?(?:nhầm|lộn)(?=\W*$|[,.!:]| (?:rồi|tí|chút|tẹo|á|ấy|mà)\b)|"
    rf"{SUBJECT_VI} rút lại\b)"
)
# These may answer the assistant instead, unless they name what was said.
_DOUBT = any_case(
    _OPENING
    + r"(?:(?:maybe|perhaps) not\b|not (?:exactly|quite|really|that)\b|(?:i|we) mean\b|chắc (?:là )?không\b)"
)


def is_joke(text: str) -> bool:
    """Whether a message says that the one before it was not meant."""
    return bool(_JOKE.match(text))


def takes_back(text: str, before: str) -> bool:
    """Whether a message says that what its writer wrote ``before`` was not meant, a mistake or too much."""
    doubts = _DOUBT.match(text) and content(text) & content(before)
    return bool(is_joke(text) or _MISTAKE.match(text) or doubts)
