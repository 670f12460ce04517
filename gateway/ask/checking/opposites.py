"""Whether a statement is about the opposite of what a question asks: the highest, not the lowest; 1995, not 2005."""

from __future__ import annotations

import re
from itertools import permutations

from gateway.ask.text.words import tokens
from gateway.base.patterns import any_case
from gateway.base.stems import stem

# What is one of a line is none of its others.
_OPPOSITES = """
high higher highest | low lower lowest
large larger largest big bigger biggest | small smaller smallest
long longer longest | short shorter shortest
old older oldest | young younger youngest
early earlier earliest | late later
most | least fewest
best better | worst worse
strong stronger strongest | weak weaker weakest
fast faster fastest | slow slower slowest
hot hotter hottest warm warmer warmest | cold colder coldest cool cooler coolest
rich richer richest | poor poorer poorest
common | rare
increase increased rise rose | decrease decreased decline declined
accept accepted approve approved | reject rejected refuse refused
win won victory | lose lost
born birth | died death
similar | different
northern north | southern south
eastern east | western west
import imported imports | export exported exports
include included | exclude excluded
maximum | minimum
upper | lower
public | private
positive | negative
always | never
first | second | third | fourth | fifth | sixth | seventh | eighth | ninth | tenth
"""


def _opposed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in _OPPOSITES.strip().splitlines():
        sides = [{stem(word) for word in side.split()} for side in line.split("|")]
        for one, other in permutations(sides, 2):
            for word in one:
                found.setdefault(word, set()).update(other)
    return found


_OPPOSED = _opposed()
_PREFIX = re.compile("(?:non|un|in|im|dis)")  # that makes a word its opposite
_LEAST_ROOT = 5  # letters of that word
_YEAR = r"(?<![0-9])((?:1[0-9]|20)[0-9]{2})(?![0-9])"
_YEARS, _IN_YEAR = re.compile(_YEAR), any_case(rf"\b(?:in|of|during) {_YEAR}(?! (?:and|to)\b)")
_PERIOD = any_case(r"\b(?:since|from|after|until|till|before)\b")
# "Are dogs allowed?" is answered by "Dogs are forbidden", and "How old is the hall?" by "The new hall is from 1990".
_ASKS_FOR_SOMETHING = any_case(r".{0,60}\b(?:what|which|who|whom|whose|where|when|how (?:many|much))\b")
_NO_DEGREE = any_case(r"\bhow \w+|\bat (?:least|most)\b|\bmost of\b")
# "Which areas were not occupied?", not "What happens if it does not start?", which asks what to do.
_WHAT_IS_NOT = any_case(
    r"(?!.{0,200}\b(?:if|happens?|i|we|my|you|why)\b).{0,200}(?:\b(?:not|never)|n['’]t)\b"
)
_DENIES = any_case(
    r"\b(?:not?|cannot|never|none|nor|neither|without|except|unless|only|instead|rather|other than|unable|impossible"
    r"|few|little|rarely|hardly|un\w{3,}(?:ed|able)|exception\w*)\b|n['’]t\b"
    r"|\b(?:fail|lack|refus|reject|los[et]|prevent|forb|prohibit|ban|exclu|exempt|avoid|ignor|den[iy]|oppos|miss|stop)"
)


def opposes(question: str, statement: str) -> bool:
    """Whether a statement lacks a word of the question and has its opposite, has another year, or denies nothing."""
    if _ASKS_FOR_SOMETHING.match(question) is None:
        return False
    asked, said = (
        {stem(word) for word in tokens(_NO_DEGREE.sub(" ", text))} for text in (question, statement)
    )
    lacking, more = asked - said, said - asked
    if any(not asked & (other := _OPPOSED.get(word, set())) and said & other for word in lacking):
        return True
    if {*map(_root, lacking)} & said or {*map(_root, more)} & lacking:
        return True
    years, wanted = _YEARS.findall(statement), _IN_YEAR.findall(question)
    if years and wanted and not _PERIOD.search(statement):
        return not any(min(years) <= year <= max(years) for year in wanted)
    return _WHAT_IS_NOT.match(question) is not None and _DENIES.search(statement) is None


def _root(word: str) -> str | None:
    """A word without the prefix that makes it the opposite of another one."""
    root = _PREFIX.sub("", word, count=1)
    return root if _PREFIX.match(word) and len(root) >= _LEAST_ROOT else None
