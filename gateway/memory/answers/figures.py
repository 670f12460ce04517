"""Later figures of what was told, without its words: "ccache helped, 3 minutes now" after "the build takes 20 minutes".

English and Vietnamese. Pure. When in doubt there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.base.patterns import any_case
from gateway.base.stems import stem
from gateway.memory.answers.kinds import asks_amount
from gateway.memory.learning.statements import HYPOTHETICAL

# Units are letters behind a number; signs of money count as one.
_FIGURE = r"(?:[$€£]\s?)?[0-9][0-9.,]*(?:k\b)?"
_MEASURED = re.compile(
    rf"(?<![\w.,:/-])(?P<figure>{_FIGURE})(?![0-9]*(?:st|nd|rd|th)\b|:[0-9])\s?(?P<unit>[^\W\d_]+|[%€$£])?"
)
_CLAUSE = re.compile(r"\s*(?:[,;.!?…](?=\s|$)|\s[-–]\s|\b(?:and|so|but|nên|mà|nhưng)\s)\s*")
_MONEY = frozenset(
    {"$", "€", "£", "euro", "eur", "quid", "pound", "dollar", "usd", "gbp", "buck", "kronor", "krona"}
    | {"nghìn", "triệu", "đồng", "tr"}
)
_NO_UNIT = any_case(
    r"(?:on|in|at|for|to|and|or|of|from|by|per|an?|each|is|are|was|more|now|instead|after|these|so|today|cho|ở|thì|là|nha|"
    r"rồi|thôi)"
)
_PER = r"(?:\s(?:an?|per|each|every|mỗi|một)\b.{0,20})?"
_LATELY = r"(?:now|instead|in the end|after all|these days|at the moment|so far|today|nha|rồi|thôi)"
_SUBJECT = (
    r"(?:(?:hm+|ok|well|oh|ah|actually|update)\W+)?(?:(?:it|that|this|they|she|he|we|i)(?:['’]?(?:s|re|ve)|\s(?:is|are|was|got|get|went|takes?|costs?|weighs?|needs?|"
    r"pay|can do|could do|do))?\s)?"
)
# A clause whose only thing is the figure, and that says that it is a new one.
_CHANGED = any_case(
    rf"{_SUBJECT}(?:(?:only|just|about|around|at|for|is|are)\s)*{_FIGURE}(?:\s[^\W\d_]+)??(?:\s[^\W\d_]+)?{_PER}\s{_LATELY}\W*|"
    rf"{_SUBJECT}(?:now|actually|(?:went|is|are|came|come|got|get|dropped|fell|rose|cut|put|brought|raised|lowered)?\s?(?:it\s)?"
    rf"(?:down|up) to|dropped to|fell to|rose to)\s(?:only\s|just\s|about\s)?{_FIGURE}.{{0,20}}|"
    rf"(?:\w+\s){{0,2}}(?:found|got|saw|took)\s(?:one|it|them|another|some)(?:\s\w+){{0,2}}?\s(?:for|at)\s{_FIGURE}.{{0,40}}|"
    rf"(?:\w+\s){{0,5}}(?:bớt|giảm|tăng|hạ|lên giá|xuống giá)(?:\s\w+){{0,4}}?\s(?:còn|xuống|lên|thành|tới)\s"
    rf"(?:còn\s)?{_FIGURE}.{{0,30}}|"
    rf"(?:\w+\s){{0,3}}(?:giờ|bây giờ)\s(?:chỉ\s)?(?:còn|là|lên|xuống)\s(?:còn\s)?{_FIGURE}.{{0,30}}"
)


def newer_figures(question: str, told: str, later: Sequence[str]) -> list[int]:
    """Which of the ``later`` messages of its writer change the figure in ``told`` that a question asks for, by number.

    None does behind a message in which something else has a figure of the same unit, and one without a unit only if no
    other figure was told in between.
    """
    units = {*_units(told)}
    if not (units and asks_amount(question)):
        return []
    found: list[int] = []
    alone = True  # no other figure was told since
    for number, text in enumerate(later):
        changed = other = False
        for clause in _CLAUSE.split(text):
            same = [unit for unit in _units(clause) if unit in units or (alone and not unit)]
            if same and _CHANGED.fullmatch(clause) and not HYPOTHETICAL.search(text):
                changed = True
            else:
                other = other or any(same)
        if changed:
            found.append(number)
        elif other:
            break
        else:
            alone = alone and not _units(text)
    return found


def _units(text: str) -> list[str]:
    """The units of its figures, in singular; "" for a figure without one."""
    return [
        "money" if match["figure"][0] in _MONEY else _unit(match["unit"] or "")
        for match in _MEASURED.finditer(text)
    ]


def _unit(word: str) -> str:
    if _NO_UNIT.fullmatch(word):
        return ""
    unit = stem(word.casefold())
    return "money" if unit in _MONEY else unit
