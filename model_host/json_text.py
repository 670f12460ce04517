"""GBNF for the texts of JSON: strings, patterns, formats, numbers. Pure.

Everything here stands for valid JSON: a string never contains a bare quote, backslash, control character or lone
surrogate, whatever a pattern says.
"""

from __future__ import annotations

import json
import re
from typing import Any

from model_host.gbnf.parser import MAX_REPETITION
from model_host.gbnf.syntax import GrammarError

# One character of a string as it stands in JSON: no control characters, and no escaped half of a surrogate pair.
CHARACTER = (
    r"[\x20-\x21\x23-\x5B\x5D-\uD7FF\uE000-\U0010FFFF]"
    r' | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F] [0-9a-fA-F])'
)
# 16 digits and two of an exponent: every such number is finite, and a JSON parser reads it.
NUMBER = r'"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?'
LARGEST_INTEGER = 10**16 - 1

_DATE = r'[0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01])'
_TIME = (
    r'([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{3})?'
    r' ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])'
)
FORMATS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f'{_DATE} "T" {_TIME}',
    "uuid": ' "-" '.join(f"[0-9a-f]{{{n}}}" for n in (8, 4, 4, 4, 12)),
}

_PATTERN_PART = re.compile(
    r"""(?P<set>\[(?:\\.|[^\]\\])*\])
      | (?P<escape>\\.)
      | (?P<group>\((?:\?:)?|\)|\|)
      | (?P<repeat>[*+?]|\{[0-9]+(?:,[0-9]*)?\})
      | (?P<any>\.)
      | (?P<literal>[^\\()\[\]{}|*+?.^$])""",
    re.VERBOSE | re.DOTALL,
)
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}
_ANY = r"[\x20-\x21\x23-\x5B\x5D-\uD7FF\uE000-\U0010FFFF]"


def literal(text: str) -> str:
    """Exactly this text."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def constant(value: Any) -> str:
    """Exactly this JSON value, spaced as Python and most models write it."""
    return literal(json.dumps(value, ensure_ascii=False))


def pattern(expression: str) -> str:
    """The inside of a string that matches a regular expression anchored at both ends. Raises GrammarError."""
    if len(expression) < 2 or expression[0] != "^" or expression[-1] != "$":
        raise GrammarError("`pattern` must begin with ^ and end with $")
    body, parts, at, depth = expression[1:-1], ["("], 0, 0
    while at < len(body):
        match = _PATTERN_PART.match(body, at)
        repeats_nothing = match is not None and match["repeat"] is not None and parts[-1] in {"(", "|"}
        if match is None or repeats_nothing:
            raise GrammarError(f"`pattern` is not supported at {body[at : at + 20]!r}")
        parts.append(_pattern_part(match))
        depth += (parts[-1] == "(") - (parts[-1] == ")")
        if depth < 0:
            break
        at = match.end()
    if depth != 0:
        raise GrammarError("`pattern` has unbalanced parentheses")
    return " ".join([*parts, ")"])


def _pattern_part(match: re.Match[str]) -> str:
    part = match[0]
    if match["set"] is not None:
        return _set(part[1:-1])
    if match["escape"] is not None:
        return f"[{_CLASSES[part[1]]}]" if part[1] in _CLASSES else _character(_unescape(part[1]))
    if match["group"] is not None:
        return part[0]
    if match["repeat"] is not None:
        return part
    return _ANY if match["any"] is not None else _character(part)


def _character(character: str) -> str:
    return literal(json.dumps(character, ensure_ascii=False)[1:-1])


def _unescape(character: str) -> str:
    if character.isalnum():
        raise GrammarError(f"`pattern` uses \\{character}, which is not supported")
    return character


def _set(inside: str) -> str:
    """A character set; it may list what stands in JSON as it is, or ranges of that."""
    if not inside or inside[0] == "^":
        raise GrammarError("`pattern` uses an empty or negated set, which is not supported")
    parts: list[str] = []
    at = 0
    while at < len(inside):
        match = re.compile(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", re.DOTALL).match(inside, at)
        if match is None:
            raise GrammarError("`pattern` has a set that does not parse")
        first, last = match[1], match[2]
        at = match.end()
        if first[0] == "\\" and first[1:] in _CLASSES and last is None:
            parts.append(_CLASSES[first[1:]])
            continue
        low, high = (ord(_unescape(c[1]) if c[0] == "\\" else c) for c in (first, last or first))
        if low > high or low < 0x20 or any(low <= ord(c) <= high for c in '"\\'):
            raise GrammarError(f"`pattern` has the range {match[0]!r}, which JSON cannot hold unescaped")
        parts.append(rf"\U{low:08X}-\U{high:08X}")
    return f"[{''.join(parts)}]"


def integer(low: int | None, high: int | None) -> str:
    """Every integer from ``low`` to ``high``, both included; None is sixteen digits. Raises GrammarError."""
    low = -LARGEST_INTEGER if low is None else max(low, -LARGEST_INTEGER)
    high = LARGEST_INTEGER if high is None else min(high, LARGEST_INTEGER)
    if low > high:
        raise GrammarError(f"no integer is allowed: the range is {low} to {high}")
    ways = []
    if low < 0:
        ways += [f'"-" ({" | ".join(_naturals(max(1, -high), -low))})']
    if high >= 0:
        ways += _naturals(max(0, low), high)
    return " | ".join(ways)


def _naturals(low: int, high: int) -> list[str]:
    """Digits of every number from ``low`` ≥ 0 to ``high``, by length."""
    ways = []
    for length in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (length - 1) if length > 1 else 0)
        ways += _same_length(str(first), str(min(high, 10**length - 1)))
    return ways


def _same_length(low: str, high: str) -> list[str]:
    rest = len(low) - 1
    if low[1:] == "0" * rest and high[1:] == "9" * rest:
        return [f"[{low[0]}-{high[0]}]" + (f" [0-9]{{{rest}}}" if rest else "")]
    if low[0] == high[0]:
        return [f'"{low[0]}" ({" | ".join(_same_length(low[1:], high[1:]))})']
    ways = [f'"{low[0]}" ({" | ".join(_same_length(low[1:], "9" * rest))})']
    if int(high[0]) - int(low[0]) > 1:
        ways.append(f"[{int(low[0]) + 1}-{int(high[0]) - 1}] [0-9]{{{rest}}}")
    return [*ways, f'"{high[0]}" ({" | ".join(_same_length("0" * rest, high[1:]))})']


def repeated(item: str, least: int, most: int | None) -> str:
    """``item``, a rule name, from ``least`` to ``most`` times."""
    if max(least, most or 0) > MAX_REPETITION:
        raise GrammarError(f"a repetition of {max(least, most or 0)} is over the limit of {MAX_REPETITION}")
    if most is not None and most < least:
        raise GrammarError(f"the least number {least} is over the greatest {most}")
    if most is None:
        return f"{item}*" if least == 0 else f"{item}{{{least},}}"
    return f"{item}{{{least},{most}}}" if most else ""
