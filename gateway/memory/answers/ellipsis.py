"""Questions that name only what is new in them: "and Tom?" behind "where does Alex live?". Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.base.patterns import any_case
from gateway.memory.learning.statements import UPPER
from gateway.memory.learning.wordings import SUBJECT_VI

_WH = r"(?:when|where|who|what (?:time|day)|at what time|how long)"
_LONGEST = 40  # characters of such a question
_ONLY_NAMES = any_case(
    r"\W*(?:(?:and|what about|how about|còn|thế còn|vậy còn)\s+)+"
    r"(?P<what>(?:(?:my|our)\s+)?[\w'’-]+(?:\s+[\w'’-]+)?)(?:\s+(?:then|too|thì sao|thì))*\s*\?*\s*"
)
_THEIRS = any_case(rf"\b(?:my|our)\s+[\w-]+(?:\s+[\w-]+(?=['’]s\b))?|\b[\w-]+\s+(?:của\s+)?{SUBJECT_VI}\b")
_THEIR_THING = any_case(r"\b(?:my|our)\s+[\w-]+['’]s\s+[\w-]+")  # "my dog's name"
_NAME = re.compile(rf"(?<=\w )[{UPPER}][\w-]+(?:\s+[{UPPER}][\w-]+)*")
# "When?" behind "where do we meet?"
_ONLY_WORD = any_case(rf"\W*(?:and\s+)?(?P<what>{_WH})(?:\s+(?:then|again|exactly|is (?:it|that)))*\s*\?*\s*")
_ASKED = any_case(rf"\W*(?:and\s+)?(?P<what>{_WH}(?:['’]s)?)\s+(?=(?:is|are|was|were|do|does|did|will|am)\b)")
_ASKS = any_case(
    r"\?\W*$|^\W*(?:and\s+)?(?:who|what|when|where|which|how|is|are|was|were|do|does|did)\b|"
    r"(?<!\w)(?:gì|đâu|ai|nào|mấy|bao nhiêu)(?!\w)"
)
# No name, and no thing of theirs.
_POINTS = any_case(
    r"(?:you|u|me|now|then|it|this|that|him|her|them|us|today|tomorrow|yesterday|why|when|where|how|who|what|which)\b.*"
)


def names_only(asked: str) -> bool:
    """Whether a message may be such a question."""
    return len(asked) <= _LONGEST and bool(_ONLY_NAMES.fullmatch(asked) or _ONLY_WORD.fullmatch(asked))


def whole_question(asked: str, earlier: Sequence[str]) -> str:
    """``asked``, or the last of its writer's ``earlier`` messages with what ``asked`` names in place of its own."""
    if not earlier or not names_only(asked):
        return asked
    before = whole_question(earlier[-1], earlier[:-1])
    if word := _ONLY_WORD.fullmatch(asked):
        place = _ASKED.match(before)
        return f"{word['what']} {before[place.end() :]}" if place else asked
    new = _ONLY_NAMES.fullmatch(asked)
    if new is None or _POINTS.fullmatch(new["what"]):
        return asked
    what = new["what"]
    own = next((each for each in (_THEIRS, _THEIR_THING) if each.fullmatch(what)), None)
    places = list((own or _NAME).finditer(before))
    if len(places) != 1 or not _ASKS.search(before) or len(before) > 3 * _LONGEST:
        return asked
    place = places[0]
    named = what if own else what[:1].upper() + what[1:]
    return f"{before[: place.start()]}{named}{before[place.end() :]}"
