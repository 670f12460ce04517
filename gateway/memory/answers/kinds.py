"""Kinds of questions, and what a statement has that answers one: a place, a time, a number, a person. Pure."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case
from gateway.memory.learning.entailment import content
from gateway.memory.learning.statements import UPPER
from gateway.memory.learning.values import MONTH

# By the question's words.
_KINDS = (
    (
        any_case(r"\bwhere\b|(?<!\w)đâu(?!\w)"),
        any_case(
            r"\b(?:in|at|near|from|to|on|under|behind|beside|next to|above|opposite|"
            r"ở|tại|từ|dưới|cạnh)\b(?! ?[0-9])"
        ),
    ),
    (
        any_case(r"\bwhen\b|\bwhat (?:time|day|date)\b|(?<!\w)(?:khi nào|bao giờ|ngày nào|mấy giờ)(?!\w)"),
        any_case(
            rf"\b(?:at|by|on|from|since|until|lúc|ngày|vào|năm) (?:the )?[0-9]|[0-9](?:[:/h]| ?[ap]m\b)|"
            r"\bthe [0-9]{1,2}(?:st|nd|rd|th)\b|\bin (?:(?:19|20)[0-9]{2}\b|[0-9]+ (?:min|hour|day|week|month|year))|"
            rf"[0-9](?:st|nd|rd|th)?(?: of)? {MONTH}|{MONTH} [0-9]|"
            r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:thứ|chủ nhật|morning|evening|noon)\b"
        ),
    ),
    (
        any_case(r"\bhow (?:old|many|much|long|tall)\b|(?<!\w)(?:bao nhiêu|mấy)(?!\w)"),
        any_case(
            r"[0-9](?![0-9]*(?:st|nd|rd|th)\b)|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twins?|"
            r"một|hai|ba|bốn|năm|sáu|bảy|tám|chín|mười)\b"
        ),
    ),
    (any_case(r"\b(?:my|our) (?:\w+ )*number(?: again)?\W*$"), re.compile(r"[0-9]")),
    (
        any_case(r"\bwhat colou?r\b|(?<!\w)màu (?:gì|nào)(?!\w)"),
        any_case(
            r"\b(?:black|white|red|green|blue|yellow|orange|purple|violet|pink|brown|gr[ae]y|beige|turquoise|silver|gold|"
            r"đỏ|xanh|vàng|trắng|đen|tím|hồng|nâu|xám|cam)\b"
        ),
    ),
    (
        any_case(r"\bhow long\b|(?<!\w)bao lâu(?!\w)"),
        any_case(
            r"\b(?:seconds?|minutes?|mins?|hours?|days?|weeks?|months?|years?|giờ|phút|ngày|tuần|tháng|năm)\b"
        ),
    ),
    (
        any_case(r"\bwho(?:['’]?s)?\b|(?<!\w)ai(?!\w)"),
        # A capital that begins no sentence.
        any_case(rf"\b(?:called|named?|tên)\b|(?-i:(?<=[\w,(] )[{UPPER}]\w)"),
    ),
)
_KINDS_OF = tuple(
    (content(named), content(kinds))
    for named, kinds in (
        (
            "pet",
            "dog cat parrot bird budgie fish hamster rabbit tortoise turtle snake pony horse kitten puppy gecko",
        ),
        ("kid child children", "son daughter kid child children boy girl twins baby"),
        ("sibling", "brother sister"),
        ("parent", "mother father mum mom dad"),
    )
)


def asks_kind(text: str) -> bool:
    """Whether a question asks for something of a kind."""
    return any(asks.search(text) for asks, _ in _KINDS)


def asks_when(text: str) -> bool:
    """Whether it asks for a time, which plans change."""
    return bool(_KINDS[1][0].search(text))


def asks_amount(text: str) -> bool:
    """Whether it asks for a number or a duration."""
    return any(_KINDS[at][0].search(text) for at in (2, 4))


def of_kind(question: str, said: str) -> bool:
    """Whether a statement has what the question asks for."""
    return all(says.search(said) for asks, says in _KINDS if asks.search(question))


def with_kinds(words: frozenset[str]) -> frozenset[str]:
    """The words, and those for what they are kinds of: a parrot is a pet."""
    return words | frozenset[str]().union(*(named for named, kinds in _KINDS_OF if kinds & words))
