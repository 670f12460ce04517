"""The text of a grammar to its tree, with errors that say where."""

from __future__ import annotations

import re
from functools import cached_property

from model_host.grammar.gbnf.syntax import (
    ANYTHING,
    MAX_CODE_POINT,
    Alternatives,
    Characters,
    Concatenation,
    GrammarError,
    Literal,
    Node,
    Range,
    Reference,
    Repeat,
    Rules,
    Token,
    joined,
    others,
)

MAX_NESTING = 64  # parentheses
MAX_REPETITION = 2000  # llama.cpp's own limit

_TOKEN = re.compile(
    r"""(?P<skip>(?:\s+|\#[^\n\r]*)+)
      | "(?P<text>(?:\\.|[^"\\])*)"
      | \[(?P<set>(?:\\.|[^\]\\])*)\]
      | (?P<token>!?<(?:\[[0-9]+\]|[^>\n]*)>)
      | (?P<any>\.)
      | (?P<rule>[A-Za-z0-9-]+)(?P<head>\s*::=)?
      | (?P<bar>\|) | (?P<open>\() | (?P<close>\))
      | (?P<repeat>[*+?]|\{\s*[0-9]*\s*(?:,\s*[0-9]*\s*)?\})""",
    re.DOTALL | re.VERBOSE,
)
_CHARACTER = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([tnr\\\"\[\]-]))|([^\\])", re.DOTALL
)
_NUMBERED = re.compile(r"<\[[0-9]+\]>")
_SHORT = {"t": "\t", "n": "\n", "r": "\r"}


def parse(grammar: str) -> Rules:
    """The rules by name, ``root`` among them; every reference has its rule. Raises GrammarError."""
    if "\0" in grammar:
        raise GrammarError("the grammar contains a NUL character")
    return _Parser(grammar).rules()


class _Level:
    """A rule or a pair of parentheses while it is read."""

    def __init__(self) -> None:
        self.alternatives: list[Node] = []
        self.items: list[Node] = []

    def end_alternative(self) -> None:
        self.alternatives.append(self.items[0] if len(self.items) == 1 else Concatenation(tuple(self.items)))
        self.items = []

    def node(self) -> Node:
        self.end_alternative()
        return self.alternatives[0] if len(self.alternatives) == 1 else Alternatives(tuple(self.alternatives))


class _Parser:
    def __init__(self, grammar: str) -> None:
        self._grammar = grammar
        self._at = 0  # where the token begins that is being read
        self._rules: Rules = {}
        self._rule: str | None = None
        self._levels: list[_Level] = []
        self._references: dict[
            str, tuple[str | None, int]
        ] = {}  # name → the rule and place that first use it
        self._sets: dict[str, Characters] = {}

    def rules(self) -> Rules:
        while self._at < len(self._grammar):
            match = _TOKEN.match(self._grammar, self._at)
            if match is None:
                raise self._error(f"does not parse at {self._grammar[self._at : self._at + 20]!r}")
            if match["skip"] is None:
                self._read(match)
            self._at = match.end()
        self._end_rule("at the end of the grammar")
        if "root" not in self._rules:
            raise GrammarError("the grammar has no rule `root`")
        for name, place in self._references.items():
            if name not in self._rules:
                self._rule, self._at = place
                raise self._error(f"uses the rule `{name[:60]}`, which is not defined")
        return self._rules

    def _read(self, match: re.Match[str]) -> None:
        if match["head"] is not None:
            self._begin_rule(match["rule"])
            return
        if not self._levels:
            raise self._error("does not begin with a rule `name ::= …`")
        level = self._levels[-1]
        if match["bar"] is not None:
            level.end_alternative()
        elif match["open"] is not None:
            self._open()
        elif match["close"] is not None:
            self._close()
        elif match["repeat"] is not None:
            if not level.items:
                raise self._error(f"has nothing before `{match['repeat']}` to repeat")
            level.items[-1] = self._repeated(level.items[-1], match["repeat"])
        else:
            level.items.append(self._symbol(match))

    # ------------------------------------------------------------------ rules and groups

    def _begin_rule(self, name: str) -> None:
        self._end_rule(f"before the rule `{name[:60]}`")
        if name in self._rules:
            raise self._error(f"defines the rule `{name[:60]}` twice")
        self._rule = name
        self._rules[name] = Concatenation(())  # its place among the rules
        self._levels = [_Level()]

    def _end_rule(self, where: str) -> None:
        if len(self._levels) > 1:
            raise self._error(f"lacks a `)` {where}")
        if self._rule is not None:
            self._rules[self._rule] = self._levels[0].node()

    def _open(self) -> None:
        if len(self._levels) > MAX_NESTING:
            raise self._error(f"is nested deeper than {MAX_NESTING} parentheses")
        self._levels.append(_Level())

    def _close(self) -> None:
        if len(self._levels) == 1:
            raise self._error("has a `)` without a `(`")
        node = self._levels.pop().node()
        self._levels[-1].items.append(node)

    # ------------------------------------------------------------------ symbols

    def _symbol(self, match: re.Match[str]) -> Node:
        if match["text"] is not None:
            return Literal("".join(map(chr, self._characters(match["text"]))))
        if match["set"] is not None:
            return self._set(match["set"])
        if match["token"] is not None:
            name = match["token"].removeprefix("!")
            number = name[2:-2] if _NUMBERED.fullmatch(name) else ""
            return Token(_number(number) if number else name, match["token"][0] == "!")
        if match["any"] is not None:
            return Characters(ANYTHING)
        self._references.setdefault(match["rule"], (self._rule, self._at))
        return Reference(match["rule"])

    def _set(self, inside: str) -> Characters:
        known = self._sets.get(inside)
        if known is None:
            negated = inside.startswith("^")
            ranges = self._ranges(inside[1:] if negated else inside)
            known = self._sets[inside] = Characters(others(ranges) if negated else joined(ranges))
            if not known.ranges or not ranges:
                raise self._error(f"has a set without any character: [{inside[:40]}]")
        return known

    def _ranges(self, inside: str) -> list[Range]:
        ranges: list[Range] = []
        at = 0
        while at < len(inside):
            first, at = self._character(inside, at)
            last = first
            if inside[at : at + 1] == "-" and at + 1 < len(inside):
                last, at = self._character(inside, at + 1)
            if last < first:
                raise self._error(f"has a range that ends before it begins: [{inside[:40]}]")
            ranges.append((first, last))
        return ranges

    def _characters(self, text: str) -> list[int]:
        made, at = [], 0
        while at < len(text):
            code, at = self._character(text, at)
            if joined([(code, code)]) == ():
                raise self._error(f"has half of a surrogate pair, U+{code:04X}, which no text contains")
            made.append(code)
        return made

    def _character(self, text: str, at: int) -> tuple[int, int]:
        """The code point at ``at``, and where the next one begins."""
        match = _CHARACTER.match(text, at)
        if match is None:
            raise self._error(f"has an unknown escape: {text[at : at + 10]!r}")
        *numbers, short, plain = match.groups()
        digits = next((number for number in numbers if number is not None), None)
        if digits is None:
            return ord(plain if short is None else _SHORT.get(short, short)), match.end()
        code = int(digits, 16)
        if code > MAX_CODE_POINT:
            raise self._error(f"has {match[0]}, which is beyond Unicode")
        return code, match.end()

    def _repeated(self, item: Node, sign: str) -> Node:
        least, most = self._times(sign)
        if max(least, most or 0) > MAX_REPETITION:
            raise self._error(f"repeats more than {MAX_REPETITION} times: `{sign[:40]}`")
        if most is not None and most < least:
            raise self._error(f"repeats at most {most} but at least {least} times: `{sign[:40]}`")
        return Repeat(item, least, most)

    def _times(self, sign: str) -> tuple[int, int | None]:
        if sign in "*+?":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        low, comma, high = (part.strip() for part in sign[1:-1].partition(","))
        if not low and not high:
            raise self._error(f"has a repetition without a number: `{sign}`")
        least = _number(low)
        return least, (_number(high) if high else None) if comma else least

    # ------------------------------------------------------------------ errors

    def _error(self, problem: str) -> GrammarError:
        line = self._line_starts_before
        number = sum(start <= self._at for start in line)
        column = self._at - line[number - 1] + 1
        rule = f", rule `{self._rule[:60]}`" if self._rule is not None else ""
        return GrammarError(f"the grammar {problem} (line {number}, column {column}{rule})")

    @cached_property
    def _line_starts_before(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(r"\n", self._grammar))]


def _number(digits: str) -> int:
    """Its value, or one that is beyond every limit too."""
    return int(digits.lstrip("0")[:12] or 0)
