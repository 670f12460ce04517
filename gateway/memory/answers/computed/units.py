"""Conversions between units that a message asks for, and how a number is written. Pure, exact, English."""

from __future__ import annotations

import re
from fractions import Fraction

from msgspec import Struct

# By the size in the first unit of each kind: the names, of which the first two are shown for one and for several.
_SIZES = {
    "length": {
        "1": "metre metres meter meters m",
        "1000": "kilometre kilometres kilometer kilometers km kms",
        "0.01": "centimetre centimetres centimeter centimeters cm",
        "0.001": "millimetre millimetres millimeter millimeters mm",
        "0.0254": "inch inches in",
        "0.3048": "foot feet ft",
        "0.9144": "yard yards yd yds",
        "1609.344": "mile miles mi",
    },
    "weight": {
        "1": "gram grams g gr gramme grammes",
        "1000": "kilogram kilograms kg kgs kilo kilos",
        "0.001": "milligram milligrams mg",
        "28.349523125": "ounce ounces oz",
        "453.59237": "pound pounds lb lbs",
        "6350.29318": "stone stones",
        "1000000": "tonne tonnes",
    },
    "volume": {
        "1": "litre litres liter liters l",
        "0.001": "millilitre millilitres milliliter milliliters ml",
        "0.01": "centilitre centilitres cl",
        "0.1": "decilitre decilitres dl",
    },
    "time": {
        "1": "second seconds sec secs",
        "60": "minute minutes min mins",
        "3600": "hour hours hr hrs h",
        "86400": "day days",
        "604800": "week weeks",
    },
    "speed": {"1": "km/h km/h kmh kph", "1.609344": "mph mph"},
}
_DEGREES = dict.fromkeys(("celsius", "c", "°c"), "°C") | dict.fromkeys(("fahrenheit", "f", "°f"), "°F")


class _Unit(Struct, frozen=True):
    kind: str
    size: Fraction
    one: str
    several: str


_UNITS = {
    name: _Unit(kind, Fraction(size), *names.split()[:2])
    for kind, sizes in _SIZES.items()
    for size, names in sizes.items()
    for name in names.split()
}
_NAME = (
    rf"(?:{'|'.join(re.escape(name) for name in sorted({*_UNITS, *_DEGREES}, key=len, reverse=True))})(?!\w)"
)
_NUMBER = r"(?P<number>-?\d+(?:\.\d+)?|an?|one)"
_OF = r"(?:degrees? |° ?)?"
_ASKED = (
    re.compile(
        rf"(?:(?:(?:please|can you|could you) )*(?:convert|change|turn) |what(?:'s| is| are) |how much (?:is|are) )?"
        rf"{_NUMBER} ?{_OF}(?P<unit>{_NAME}) (?:in|to|into|as) {_OF}(?P<other>{_NAME})(?: please)?"
    ),
    re.compile(
        rf"how many (?P<other>{_NAME})(?: (?:is|are|there are|are there|make|make up))?(?: in)? {_NUMBER} ?"
        rf"(?P<unit>{_NAME})"
    ),
)
_AGAIN = re.compile(rf"(?:(?:and|what about|how about|now|ok) )+{_NUMBER}(?: ?{_OF}(?P<unit>{_NAME}))?")
_EXACT = 6  # decimals
_FIGURES = 5


class InUnits(Struct, frozen=True):
    """What a message converts, with the names of the units as it has them."""

    text: str
    unit: str
    other: str


def conversion(asked: str, last: InUnits | None = None) -> InUnits | None:
    """The conversion that a lower-case message asks for ("5 miles in km?"), or the ``last`` one again ("and 10?")."""
    asked = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", asked.rstrip(" ?.!"))
    found = next((match for pattern in _ASKED if (match := pattern.fullmatch(asked))), None)
    unit, other = (found["unit"], found["other"]) if found else ("", "")
    if found is None and last is not None and (found := _AGAIN.fullmatch(asked)):
        unit, other = found["unit"] or last.unit, last.other
    if found is None:
        return None
    number = Fraction(found["number"] if found["number"][-1].isdigit() else 1)
    text = _degrees(number, unit, other) if unit in _DEGREES else _sized(number, unit, other)
    return InUnits(text, unit, other) if text else None


def equals(value: Fraction) -> str:
    """A value behind its sign of equality: "= 7.5", or "≈ 0.33333" if it has too many decimals."""
    for places in range(_EXACT + 1):
        if (value * 10**places).denominator == 1:
            return f"= {_decimals(value, places)}"
    places = _FIGURES
    while places and abs(value) >= 10 ** (_FIGURES - places):
        places -= 1
    while abs(value) * 10 ** (places - _FIGURES + 1) < 1:
        places += 1
    return f"≈ {_decimals(value, places)}"


def _decimals(value: Fraction, places: int) -> str:
    whole, part = divmod(round(abs(value) * 10**places), 10**places)
    sign = "−" if value < 0 else ""
    return f"{sign}{whole}.{part:0{places}d}".rstrip("0").rstrip(".") if places else f"{sign}{whole}"


def _degrees(number: Fraction, unit: str, other: str) -> str:
    one, into = _DEGREES[unit], _DEGREES.get(other, "")
    if not into or into == one:
        return ""
    value = number * 9 / 5 + 32 if into == "°F" else (number - 32) * 5 / 9
    return f"{equals(number)[2:]} {one} {equals(value)} {into}."


def _sized(number: Fraction, unit: str, other: str) -> str:
    one, into = _UNITS[unit], _UNITS.get(other)
    if into is None or into.kind != one.kind:
        return ""
    value = number * one.size / into.size
    written = equals(value)
    of_one = one.one if number == 1 else one.several
    return f"{equals(number)[2:]} {of_one} {written} {into.one if written == '= 1' else into.several}."
