"""Passwords by their shape alone, where no word near them says what they are.

Only shapes that words, names, versions, file names and identifiers seldom have, and in no line of code:

- a sign between a word and digits ("Offset!77");
- capitals, small letters and digits, with digits between letters at two places or more ("fNw9tLq2Hs");
- behind an address or another name of a user, at the end of its line ("jo@example.org Gr33nKettle",
  "k.tran / mango77x").

The time is linear: each place that looks like one is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SHAPED = "password by its shape"
_LONGEST = 40
_EDGES = "'\"“”‘’`*_.,;:!?()[]…"
# Places in a token from which it may have such a shape. Patterns that begin with a set of characters are fastest.
_SIGN = re.compile(r"[!$#](?<=[^\W\d_].)(?=\w)")
_INNER = re.compile(r"[0-9](?<=[A-Za-z].)[0-9]{0,2}(?=[A-Za-z])")
_SIGNED = re.compile(
    r"(?=.{8})(?=\w*[^\W\d_]{3})(?=\D*[0-9])"
    # "there!8pm" lacks a space, "Sheet1!A1" and "US$500" are none, "lib#77" is an issue
    r"(?![A-Za-z]+[0-9]*![$]?[A-Z]{1,3}[$]?[0-9]+$)(?!\w+!\d+(?:[ap]m|h|st|nd|rd|th|x|k|g|kg|min|s)\d*$)(?![A-Z]{1,3}\$)"
    r"\w{3,24}(?<=[^\W\d_])(?:[!$](?:[\w-]{2,24}|(?<=\w{6}[!$])[0-9])|#(?=[^\W\d])\w{2,24})"
)
_MIXED = re.compile(
    r"(?=[^A-Z]*[A-Z])(?=(?:[^a-z]*[a-z]){3})(?=(?:[^0-9]*[0-9]{1,3}(?=[A-Za-z])){2})(?!(?:[A-Z][a-z]?[0-9]*)+$)"
    # "Mat4x4ToVec3D" are words
    r"(?!(?:[a-z]{2,}+[0-9]{0,3}+(?:x[0-9]++)?+)?+(?:[A-Z]{1,6}+[a-z]*+[0-9]{0,3}+(?:x[0-9]++|D(?=[A-Z]))?+)+$)"
    r"[A-Za-z0-9]{8,40}"
)
_PAIRED = re.compile(r"@\w| / ")
_LONGEST_LINE = 300
_USER = re.compile(
    r"(?<![\w@/.-])(?:[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{2,32}){1,4},?\s{1,3}(?:[/|]\s{1,3})?"
    r"|[\w-]{1,32}[._][\w.-]{1,32}[ ]/[ ](?=\S*[0-9]\S*[0-9]))(?P<value>[^\s\"',;:/|()=@]{6,40})[.!]?\s*$"
)
_SPACE, _SPACES = re.compile(r"\s"), re.compile(r"(?s:.*)\s")
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"[0-9]")
# "INV-2024", "v2.3.1", "Room12", "notes2.txt"
_COMMON = re.compile(
    r"[A-Z]{1,8}[-_]?[0-9]+\w?|v?[0-9]+(?:\.[0-9]+)*\w*|[A-Z]?[a-z]{1,6}-?[0-9]{1,3}|\S+\.[A-Za-z][A-Za-z0-9]{0,4}|\S+\.[0-9]+|"
    r"[0-9-]+[a-z]{0,12}|_?[A-Za-z]+(?:_[A-Za-z0-9]+)+|.*\[redacted\].*"
)


def shaped_spans(text: str, code: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Begin and end of each value, in order; lines in which ``code`` finds something are left out."""
    found = {*_tokens(text, _SIGN, _SIGNED), *_tokens(text, _INNER, _MIXED), *_behind_users(text)}
    last = 0
    for begin, end in sorted(found):
        if begin >= last and not code.search(text, text.rfind("\n", 0, begin) + 1, _line_end(text, end)):
            yield begin, end
            last = end


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _tokens(text: str, place: re.Pattern[str], shape: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The tokens around the places that have the shape as a whole."""
    last = 0
    for match in place.finditer(text):
        if match.start() < last:
            continue
        before = _SPACES.search(text, max(0, match.start() - _LONGEST), match.start())
        after = _SPACE.search(text, match.start(), match.start() + _LONGEST)
        begin = before.end() if before else max(0, match.start() - _LONGEST)
        last = after.start() if after else min(len(text), match.start() + _LONGEST)
        if (begin and not before) or (last < len(text) and not after):
            continue  # longer tokens are data
        value = text[begin:last].rstrip(_EDGES)
        begin += len(value) - len(value.lstrip(_EDGES))
        value = value.lstrip(_EDGES)
        if shape.fullmatch(value):
            yield begin, begin + len(value)


def _behind_users(text: str) -> Iterator[tuple[int, int]]:
    end = -1
    for place in _PAIRED.finditer(text):
        if place.start() < end:
            continue
        begin, end = text.rfind("\n", 0, place.start()) + 1, _line_end(text, place.start())
        match = _USER.search(text, begin, end) if end - begin <= _LONGEST_LINE else None
        value = match["value"] if match else ""
        if match and _LETTER.search(value) and _DIGIT.search(value) and not _COMMON.fullmatch(value):
            yield match.span("value")
