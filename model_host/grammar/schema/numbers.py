"""Numbers within bounds, with so few digits that floating point keeps them apart."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterator
from fractions import Fraction

from model_host.grammar.gbnf.syntax import Characters, Node, Reference, Repeat, either, optional, row
from model_host.grammar.schema.parts import Part

_LARGEST = 10**16 - 1
_WHOLE_DIGITS, _DECIMALS = 9, 6  # 15 digits in all
_SCALE = 10**_DECIMALS
_DIGIT = Characters(((48, 57),))


_LIMITS = {
    "minimum": operator.ge,
    "exclusiveMinimum": operator.gt,
    "maximum": operator.le,
    "exclusiveMaximum": operator.lt,
}


def _limits(parts: list[Part]) -> Iterator[tuple[Part, str, Fraction]]:
    for part in parts:
        for key in _LIMITS:
            if key not in part.schema:
                continue
            value = part.schema[key]
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise part.error(f"has {json.dumps(value)[:40]} for `{key}`; it must be a number", key)
            yield part, key, Fraction(str(value))  # exactly 0.1, not the binary number next to it


def allowed(value: int | float, parts: list[Part]) -> bool:
    return all(_LIMITS[key](Fraction(value), limit) for _, key, limit in _limits(parts))


def expression(parts: list[Part], kind: str) -> Node:
    """The numbers that all ``parts`` allow: integers of at most 16 digits, or numbers with up to 6 decimals."""
    limits = list(_limits(parts))
    if kind == "number" and not limits:
        return Reference("number")
    scale = 1 if kind == "integer" else _SCALE
    high = _LARGEST if kind == "integer" else 10**_WHOLE_DIGITS * _SCALE - 1
    low = -high
    for _, key, limit in limits:
        if key.endswith("inimum"):
            low = max(low, math.ceil(limit * scale) if key == "minimum" else math.floor(limit * scale) + 1)
        else:
            high = min(high, math.floor(limit * scale) if key == "maximum" else math.ceil(limit * scale) - 1)
    if low > high:
        part, key, _ = limits[-1]
        if kind == "integer":
            raise part.error(f"allows no integer: the range is {low} to {high}", key)
        raise part.error(
            f"allows no number of at most {_WHOLE_DIGITS} digits and {_DECIMALS} decimals in its range", key
        )
    between = _naturals if kind == "integer" else _decimals
    ways = [row("-", between(max(1, -high), -low))] if low < 0 else []
    return either([*ways, between(max(0, low), high)] if high >= 0 else ways)


def _naturals(low: int, high: int) -> Node:
    """Every integer from ``low`` ≥ 0 to ``high``."""
    ways: list[Node] = []
    whole: list[int] = []  # lengths of which every number is allowed, less one
    for length in range(len(str(low)), len(str(high)) + 1):
        least, most = 10 ** (length - 1) if length > 1 else 0, 10**length - 1
        if low <= least and most <= high and length > 1:
            whole.append(length - 1)
        else:
            ways.append(_digits(str(max(low, least)), str(min(high, most))))
    if whole:
        ways.append(row(Characters(((49, 57),)), Repeat(_DIGIT, whole[0], whole[-1])))
    return either(ways)


def _decimals(low: int, high: int) -> Node:
    """Every decimal from ``low`` ≥ 0 to ``high``, both multiplied by the scale."""
    (first, above), (last, below) = divmod(low, _SCALE), divmod(high, _SCALE)
    if first == last:
        return row(str(first), _fraction_part(above, below))
    ways = [row(str(first), _fraction_part(above, _SCALE - 1)), row(str(last), _fraction_part(0, below))]
    if last - first > 1:
        ways.append(row(_naturals(first + 1, last - 1), _fraction_part(0, _SCALE - 1)))
    return either(ways)


def _fraction_part(low: int, high: int) -> Node:
    """A point and decimals; optional if they may be zero."""
    behind = row(".", _digits(f"{low:0{_DECIMALS}}", f"{high:0{_DECIMALS}}", cut=True))
    return behind if low else optional(behind)


def _digits(low: str, high: str, *, cut: bool = False) -> Node:
    """Digits from ``low`` to ``high``, which are equally long; ``cut``: trailing zeros may be left out."""
    first, last, rest = int(low[0]), int(high[0]), len(low) - 1
    zeros, nines = "0" * rest, "9" * rest
    spans = [(first, last, low[1:], high[1:])]  # of first digits, with the bounds of the others
    if first < last:
        begin, end = first + (low[1:] != zeros), last - (high[1:] != nines)
        spans = [(first, first, low[1:], nines)] if begin > first else []
        spans += [(begin, end, zeros, nines)] if begin <= end else []
        spans += [(last, last, zeros, high[1:])] if end < last else []
    ways: list[Node] = []
    for least, most, low_rest, high_rest in spans:
        digit = Characters(((48 + least, 48 + most),))
        if not rest:
            ways.append(digit)
            continue
        any_rest = (low_rest, high_rest) == (zeros, nines)
        more = Repeat(_DIGIT, 1 if cut else rest, rest) if any_rest else _digits(low_rest, high_rest, cut=cut)
        ways.append(row(digit, optional(more) if cut and low_rest == zeros else more))
    return either(ways)
