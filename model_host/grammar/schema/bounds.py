"""Numbers of a schema: `minimum`, `maximum` and their exclusive kin."""

from __future__ import annotations

import json
import math
from fractions import Fraction

from model_host.grammar.schema.numbers import Bounds, NoNumberError, integer, number
from model_host.grammar.schema.parts import Part


def numbers_of(parts: list[Part], kind: str) -> str:
    """The expression for the numbers that all ``parts`` allow; ``kind`` is integer or number."""
    bounds = bounds_of(parts)
    try:
        return integer(bounds) if kind == "integer" else number(bounds)
    except NoNumberError as error:
        keys = [(part, key) for part in parts for key in part.schema if "imum" in key]
        part, key = keys[-1] if keys else (parts[-1], None)
        raise part.error(str(error), key) from None


def bounds_of(parts: list[Part]) -> Bounds:
    """The strictest bounds. Of two that are equal the excluded one is stricter."""
    low: list[tuple[Fraction, bool]] = []
    high: list[tuple[Fraction, bool]] = []
    for part in parts:
        for key, found, is_open in (
            ("minimum", low, False),
            ("exclusiveMinimum", low, True),
            ("maximum", high, False),
            ("exclusiveMaximum", high, True),
        ):
            if key in part.schema:
                found.append((_fraction(part, key), is_open))
    least = max(low, default=(None, False))
    most = min(high, key=lambda bound: (bound[0], not bound[1]), default=(None, False))
    return Bounds(least[0], most[0], least[1], most[1])


def _fraction(part: Part, key: str) -> Fraction:
    value = part.schema[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise part.error(f"has {json.dumps(value)[:40]} for `{key}`; it must be a number", key)
    return Fraction(str(value))  # a bound of 0.1 means that, not the binary number next to it
