"""Sums that a message asks for, and what goes on from the last one. Pure, exact, English.

Small models guess at them. When in doubt, nothing is computed, and the model is asked.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from msgspec import Struct

from gateway.base.calendar import NUMBERS
from gateway.base.patterns import any_case
from gateway.memory.answers.computed.units import InUnits, conversion, equals
from gateway.memory.learning.plain import FILLERS

_LONGEST = 120  # characters
_MOST_POWER = 64
_MOST_DIGITS = 30
_EACH = r"(\d+) [a-z-]+(?: [a-z-]+){0,3} (\d+(?:\.\d+)?)(?: pounds)? (?:each|apiece|a piece)"
# "What's seven times eight?" as "7 * 8".
_WRITTEN: tuple[tuple[re.Pattern[str], str], ...] = (
    *((re.compile(rf"\b{word}\b(?![-.])"), str(number)) for number, word in enumerate(NUMBERS)),
    *(
        (re.compile(pattern), written)
        for pattern, written in (
            (r"(?<=\d),(?=\d{3}(?!\d))", ""),
            (r"[$€£](?=\d)|(?<=\d) ?(?:€|euros?\b|dollars?\b)", ""),
            (r"\bcộng(?: với)?\b", "+"),
            (r"\btrừ(?: đi)?\b", "-"),
            (r"\bnhân(?: với)?\b", "*"),
            (r"\bchia(?: cho)?\b", "/"),
            (r"(?<=%) của\b", " of"),
            (r"\b(?:a )?dozen\b", "12"),
            (r"\b(?:[1a] )?half of\b", "50% of"),
            (r"\b[1a] third of\b", "1/3 of"),
            (r"\b[1a] quarter of\b", "25% of"),
            (r"(\d+(?:\.\d+)?%) off (\d+(?:\.\d+)?)$", r"\2 - \1 of \2"),
            (r"(?<=%) (?:tip |tax |vat )?on\b", " of"),
            (
                r"^(?:and )?(?:with|including|plus|add) (?:an? )?(\d+(?:\.\d+)?%)"
                r"(?: (?:sales )?(?:tax|tip|vat|service))?$",
                r"+ \1",
            ),
            # 650 g / 12
            (r"^(\d+(?:\.\d+)?) ?(?:k?g|[mcd]?l|[kcm]?m|oz|lbs?) ?([*/]) ?(\d+(?:\.\d+)?)$", r"\1 \2 \3"),
            (r"\b(?:twice|double)\b", "2 *"),
            (r"\b(?:the )?(?:square )?root of ", "√"),
            (r"^(?:the )?sum of (\S+) and (\S+)$", r"\1 + \2"),
            (r"^(?:the )?product of (\S+) and (\S+)$", r"\1 * \2"),
            (r"^add (\S+) (?:and|to) (\S+)$", r"\1 + \2"),
            (r"^subtract (\S+) from (\S+)$", r"\2 - \1"),
            (r"^multiply (\S+) (?:by|and|with) (\S+)$", r"\1 * \2"),
            (
                r"^(?:divide|split|share) (?:a bill of )?(\S+)(?: \w+)? (?:equally )?(?:by|between|among|into) (\S+)"
                r"(?: (?:people|of us|friends|ways|parts|kids|children))?$",
                r"\1 / \2",
            ),
            # "We have 24 cookies for 6 kids, how many does each get?"
            (
                r"^\D{0,30}\b(\d+) [a-z]+ (?:for|between|among) (\d+) [a-z]+\W+how (?:many|much)\b\D*"
                r"\b(?:each|everyone|everybody|per (?:person|head|child|kid))\b\D*$",
                r"\1 / \2",
            ),
            # "I bought 3 notebooks at 2.50 each, how much was that?"
            (rf"^{_EACH}$|^\D{{0,40}}\b{_EACH}\W+(?:how much|what)\b\D*$", r"\1\3 * \2\4"),
            (r"\bsquared\b", "^ 2"),
            (r"\bcubed\b", "^ 3"),
            (r"\bto the power of\b|\*\*", "^"),
            (r"\bplus\b", "+"),
            (r"\bminus\b|[−–]", "-"),
            (r"\bdivided by\b|÷", "/"),
            (r" ?\bper ?cent\b", "%"),
            (
                r"\b(?:multiplied by|times)\b|(?<=[\d)])[x×](?=[\d(])|(?<=[\d)] )[x×](?= [\d(])|(?<=%) of\b|"
                r"(?<=/\d) of\b",
                "*",
            ),
        )
    ),
)
_LEAD = re.compile(
    rf"(?:(?:{FILLERS}|then|now|(?:can|could) you (?:tell me|calculate|compute|work out)|tell me|calculate|compute|"
    r"work out|solve|what(?:'?s| is| are| do you get if you)?|how (?:much|many)(?: is| are| do you get if you)?)\b"
    r"[,:]? ?)*"
)
_TAIL = re.compile(
    r"(?: ?(?:[=?!,]|\.(?!\d)|\b(?:equals?|makes?|is|again|in total|altogether|please|"
    r"(?:bằng|là)(?: mấy| bao nhiêu)?|thì sao)\b))*$"
)
# Numbers with only such signs between them may be hours, a score, a date, a size or a code: "4-4-1-9".
_ASKS = re.compile(
    r"\b(?:what|how|calculate|compute|work out|solve|tell|equals?|divide|split|share|subtract|bằng|bao nhiêu|mấy)|="
)
_UNCLEAR = re.compile(r"[\d.]+(?: ?[-/x] ?[\d.]+)+")
_NO_SUM = re.compile(r"\d+([/.-])\d+\1\d+|24/7|9/11|7/11|50[/-]50|80/20")
_THANKS = any_case(rf"\W*(?:(?:{FILLERS}|thank you|thx|got it|perfect|nice|super)\W*)+")
_GOES_ON = re.compile(r"(?:(?:that|it) ?)?(?P<op>[-+*/^]) ?(?P<rest>.+)|(?P<share>[\d./%]+ ?\*) (?:that|it)")
_PERCENT = re.compile(r"\d+(?:\.\d+)?%")
# "80 + 20%" is 96.
_MORE_OR_LESS = re.compile(r"(?P<of>\d+(?:\.\d+)?|\(.{1,60}\)) ?(?P<sign>[-+]) ?(?P<share>\d+(?:\.\d+)?%)")
_EXPRESSION = re.compile(r"(?=.*(?:[\d)%] ?[-+*/^]|√))[-\d.+*/^%()√ ]+")
_OPERATIONS: dict[type, Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_SHOWN = {"%*": "% of ", "*": " × ", "/": " ÷ ", "-": " − ", "+": " + "}
NO_DIVISION = "Nothing can be divided by zero."
# "Which is bigger, 3/4 or 2/3?"
_COMPARES = re.compile(
    r"\W*(?:(?:what|which)(?: (?:number|one|fraction))?(?:'?s| is) (?P<how>bigger|larger|greater|more|smaller|less)"
    r"[,:]? (?P<one>\d[\d./%]*) or (?P<other>\d[\d./%]*?))[\s?.]*"
)
_LESS = ("smaller", "less")
_KIND = re.compile(r"\W*is (?P<number>\d{1,9}) (?:an? )?(?P<kind>prime|even|odd)(?: number)?\W*")


class _Sum(Struct, frozen=True):
    text: str
    written: str
    value: Fraction


def sum_answer(asked: str, before: Sequence[str] = ()) -> str:
    """The sum or conversion that a message asks for; it may go on with that of the message before, thanks aside."""
    last: _Sum | InUnits | None = None
    for said in (*(each for each in before if not _THANKS.fullmatch(each)), asked):
        text = " ".join(said.casefold().replace("’", "'").split())
        converted = last if isinstance(last, InUnits) else None
        counted = last if isinstance(last, _Sum) else None
        if said is asked and (judged := _compared(text) or _kind(text)):
            return judged
        last = None if len(text) > _LONGEST else conversion(text, converted) or _sum(text, counted)
    return last.text if last is not None else ""


def _compared(text: str) -> str:
    """Which of two numbers is larger or smaller; "" for any other message."""
    found = _COMPARES.fullmatch(text)
    if found is None:
        return ""
    try:
        first, second = ((each, _value(each)) for each in (found["one"], found["other"]))
    except (ValueError, SyntaxError, ZeroDivisionError):
        return ""
    (more, most), (less, least) = sorted((first, second), key=lambda each: -each[1])
    if most == least:
        return f"{more} is as much as {less} ({equals(most)[2:]})."
    if found["how"] in _LESS:
        more, most, less, least = less, least, more, most
    return f"{more} is {found['how']} than {less} ({equals(most)[2:]} and {equals(least)[2:]})."


def _kind(text: str) -> str:
    """Whether a number is prime, even or odd; "" for any other message."""
    found = _KIND.fullmatch(text)
    if found is None:
        return ""
    number, kind = int(found["number"]), found["kind"]
    if kind != "prime":
        own = "odd" if number % 2 else "even"
        return f"{'Yes' if own == kind else 'No'}, {number} is {own}."
    divisor = next((each for each in range(2, math.isqrt(number) + 1) if number % each == 0), 0)
    if number > 1 and not divisor:
        return f"Yes, {number} is prime."
    return f"No, {number} is not prime{f': {divisor} × {number // divisor}' if divisor else ''}."


def _sum(text: str, last: _Sum | None) -> _Sum | None:
    lead = _LEAD.match(text)
    core = _TAIL.sub("", text[lead.end() if lead else 0 :])
    for pattern, written in _WRITTEN:
        core = pattern.sub(written, core)
    core, asks = core.strip(), bool(_ASKS.search(text))
    if last is not None:
        percent = _PERCENT.match(last.written)
        if percent and _PERCENT.fullmatch(core):
            core += last.written[percent.end() :]
        elif (on := _GOES_ON.fullmatch(core)) is not None:
            whole = str(last.value) if last.value.denominator == 1 else f"({last.written})"
            core, asks = (
                (f"{on['share']} {whole}" if on["share"] else f"{whole} {on['op']} {on['rest']}"),
                True,
            )
    if share := _MORE_OR_LESS.fullmatch(core):
        core = f"{share['of']} {share['sign']} {share['share']} * {share['of']}"
    if (
        not _EXPRESSION.fullmatch(core)
        or _NO_SUM.fullmatch(core)
        or (not asks and (_UNCLEAR.fullmatch(core) or _UNCLEAR.fullmatch(text)))
    ):
        return None
    try:
        value = _value(core)
    except ZeroDivisionError:
        return _Sum(NO_DIVISION, "0", Fraction(0))
    except (ValueError, SyntaxError):
        return None
    shown = re.sub(r" ?(%\*|(?<=[\d)%])[-+*/]) ?", lambda sign: _SHOWN[sign[1]], core.replace(" ", ""))
    return _Sum(f"{shown} {equals(value)}.", core, value)


def _value(written: str) -> Fraction:
    """The value of a sum in digits and signs. Raises ValueError, SyntaxError, ZeroDivisionError for what has none."""
    code = re.sub(r"√ ?(\d+(?:\.\d+)?)", r"root(\1)", written).replace("^", "**").replace("%", "/100")
    return _of(ast.parse(code.strip(), mode="eval").body)


def _of(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_of(operand)
        case ast.Call(args=[inner]):
            value = _of(inner)
            root = math.isqrt(int(value))
            return Fraction(root) if root * root == value else Fraction(math.sqrt(value))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            base, power = _of(left), _of(right)
            if power.denominator > 1 or not 0 <= power <= _MOST_POWER:
                raise ValueError(power)
            return _small(base**power.numerator)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _small(_OPERATIONS[type(op)](_of(left), _of(right)))
    raise ValueError(node)


def _small(value: Fraction) -> Fraction:
    if max(abs(value.numerator), value.denominator) >= 10**_MOST_DIGITS:
        raise ValueError(value)
    return value
