"""GBNF for numbers within bounds. Decimals have so few digits that a program reads exactly what is written."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

LARGEST_INTEGER = 10**16 - 1
# 16 digits and two of an exponent: every such number is finite.
ANY_NUMBER = r'"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?'
_WHOLE_DIGITS, _DECIMALS = 9, 6  # within bounds: 15 digits in all, which floating point keeps apart


class NoNumberError(ValueError):
    """No number lies between the bounds, or none that can be written; the message says which."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number must lie between; None: no bound. ``open`` ones are excluded themselves."""

    low: Fraction | None = None
    high: Fraction | None = None
    low_open: bool = False
    high_open: bool = False

    def holds(self, number: int | float) -> bool:
        """Whether a number lies between them."""
        value = Fraction(number)
        above = self.low is None or (value > self.low if self.low_open else value >= self.low)
        below = self.high is None or (value < self.high if self.high_open else value <= self.high)
        return above and below

    def scaled(self, by: int) -> tuple[int | None, int | None]:
        """The least and the greatest whole number that lies between ``by`` times the bounds."""
        low, high = (None if bound is None else bound * by for bound in (self.low, self.high))
        least = None if low is None else -(-low.numerator // low.denominator)
        most = None if high is None else high.numerator // high.denominator
        if least is not None and self.low_open and least == low:
            least += 1
        if most is not None and self.high_open and most == high:
            most -= 1
        return least, most


def integer(bounds: Bounds) -> str:
    """Every whole number between the bounds, of at most sixteen digits. Raises NoNumberError."""
    least, most = bounds.scaled(1)
    low = -LARGEST_INTEGER if least is None else max(least, -LARGEST_INTEGER)
    high = LARGEST_INTEGER if most is None else min(most, LARGEST_INTEGER)
    if low > high:
        raise NoNumberError(f"allows no integer: the range is {low} to {high}")
    ways = []
    if low < 0:
        ways += [f'"-" ({" | ".join(_naturals(max(1, -high), -low))})']
    if high >= 0:
        ways += _naturals(max(0, low), high)
    return " | ".join(ways)


def number(bounds: Bounds) -> str:
    """Numbers between the bounds, with up to six decimals. Raises NoNumberError."""
    if bounds == Bounds():
        return ANY_NUMBER
    scale: int = 10**_DECIMALS
    limit = 10**_WHOLE_DIGITS * scale - 1
    least, most = bounds.scaled(scale)
    low = -limit if least is None else max(least, -limit)
    high = limit if most is None else min(most, limit)
    if low > high:
        raise NoNumberError(
            f"allows no number of at most {_WHOLE_DIGITS} digits and {_DECIMALS} decimals in its range"
        )
    ways = []
    if low < 0:
        ways.append(f'"-" ({_decimals(max(1, -high), -low, scale)})')
    if high >= 0:
        ways.append(_decimals(max(0, low), high, scale))
    return " | ".join(ways)


def _naturals(low: int, high: int) -> list[str]:
    """Digits of every number from ``low`` ≥ 0 to ``high``, by length."""
    ways, whole = [], []
    for length in range(len(str(low)), len(str(high)) + 1):
        least, most = 10 ** (length - 1) if length > 1 else 0, 10**length - 1
        if low <= least and most <= high and length > 1:
            whole.append(length - 1)  # every number of this length
        else:
            ways += _same_length(str(max(low, least)), str(min(high, most)))
    return [*ways, f"[1-9] [0-9]{{{whole[0]},{whole[-1]}}}"] if whole else ways


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


def _decimals(low: int, high: int, scale: int) -> str:
    """Every decimal from ``low`` ≥ 0 to ``high``, both given times ``scale``."""
    (first, above), (last, below) = divmod(low, scale), divmod(high, scale)
    digits = len(str(scale)) - 1
    if first == last:
        return f'"{first}" {_fraction(above, below, digits)}'
    ways = [f'"{first}" {_fraction(above, scale - 1, digits)}', f'"{last}" {_fraction(0, below, digits)}']
    if last - first > 1:
        ways.append(f"({' | '.join(_naturals(first + 1, last - 1))}) {_fraction(0, scale - 1, digits)}")
    return " | ".join(ways)


def _fraction(low: int, high: int, digits: int) -> str:
    """What may stand behind the whole part: nothing, or a point and up to ``digits`` digits."""
    behind = _tail(f"{low:0{digits}}", f"{high:0{digits}}")
    nonempty = f'"." ({behind})'
    return nonempty if low else f"({nonempty})?"


def _tail(low: str, high: str) -> str:
    """One digit or more; with zeros behind them they lie from ``low`` to ``high``."""
    if not low.strip("0") and not high.strip("9"):
        return f"[0-9]{{1,{len(low)}}}"
    ways = []
    for digit in range(int(low[0]), int(high[0]) + 1):
        rest_low = low[1:] if digit == int(low[0]) else "0" * (len(low) - 1)
        rest_high = high[1:] if digit == int(high[0]) else "9" * (len(high) - 1)
        if not rest_low:
            ways.append(f'"{digit}"')
        else:
            inner = _tail(rest_low, rest_high)
            ways.append(f'"{digit}" ({inner})' if rest_low.strip("0") else f'"{digit}" ({inner})?')
    return " | ".join(ways)
