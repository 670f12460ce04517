"""The text of a grammar to its tree, with errors that say where."""

from __future__ import annotations

import re
from collections.abc import Callable

from model_host.gbnf.syntax import (
    ANYTHING,
    MAX_CODE_POINT,
    MAX_NESTING,
    Characters,
    GrammarError,
    Literal,
    Node,
    Range,
    Reference,
    Repeat,
    Rules,
    Token,
    either,
    joined,
    others,
    repetition,
    row,
)

_SKIP = re.compile(r"(?:\s+|\#[^\n\r]*)*+")
_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*")
      | (?P<set>\[(?:\\.|[^\]\\])*\])
      | (?P<token>!?<(?:\[[0-9]+\]|[^>\n]*)>)
      | (?P<any>\.)
      | (?P<head>[A-Za-z0-9-]+\s*::=)
      | (?P<rule>[A-Za-z0-9-]+)
      | (?P<bar>\|) | (?P<open>\() | (?P<close>\))
      | (?P<repeat>[*+?]|\{\s*[0-9]*\s*(?:,\s*[0-9]*\s*)?\})
      | (?P<end>\Z)""",
    re.DOTALL | re.VERBOSE,
)
_CHARACTER = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([tnr\\\"\[\]-]))|([^\\])", re.DOTALL
)
_NUMBERED = re.compile(r"<\[([0-9]+)\]>")
_SHORT = {"t": "\t", "n": "\n", "r": "\r"}


def parse(grammar: str, token_of: Callable[[int | str], int] = int) -> Rules:
    """The rules by name, ``root`` among them; every reference has its rule.

    ``token_of`` gives the id of a token written ``<[7]>`` or ``<name>``. Raises GrammarError.
    """
    if "\0" in grammar:
        raise GrammarError("the grammar contains a NUL character")
    return _Parser(grammar, token_of).rules()


class _Parser:
    def __init__(self, grammar: str, token_of: Callable[[int | str], int]) -> None:
        self._grammar = grammar
        self._token_of = token_of
        self._rule = ""
        self._references: dict[str, tuple[str, int]] = {}  # name → the rule and place that first use it
        self._sets: dict[str, Characters] = {}
        self._end = 0
        self._next()

    def _next(self) -> None:
        """Read the next token: its kind, its text, and where it begins."""
        skipped = _SKIP.match(self._grammar, self._end)
        assert skipped is not None, "matches nothing too"
        self._at = skipped.end()
        match = _TOKEN.match(self._grammar, self._at)
        if match is None:
            raise self._error(f"does not parse at {self._grammar[self._at : self._at + 20]!r}")
        self._kind, self._text, self._end = match.lastgroup, match[0], match.end()

    def rules(self) -> Rules:
        rules: Rules = {}
        while self._kind != "end":
            if self._kind == "close":
                raise self._error("has a `)` without a `(`")
            if self._kind != "head":
                raise self._error("does not begin with a rule `name ::= …`")
            name = self._text[:-3].rstrip()
            if name in rules:
                raise self._error(f"defines the rule `{name[:60]}` twice")
            self._rule = name
            self._next()
            rules[name] = self._alternatives(0)
        if "root" not in rules:
            raise GrammarError("the grammar has no rule `root`")
        for name, place in self._references.items():
            if name not in rules:
                self._rule, self._at = place
                raise self._error(f"uses the rule `{name[:60]}`, which is not defined")
        return rules

    def _alternatives(self, depth: int) -> Node:
        ways = [self._alternative(depth)]
        while self._kind == "bar":
            self._next()
            ways.append(self._alternative(depth))
        return either(ways)

    def _alternative(self, depth: int) -> Node:
        items: list[Node] = []
        while self._kind not in ("bar", "close", "head", "end"):
            if self._kind != "repeat":
                items.append(self._symbol(depth))
            elif items:
                try:
                    items[-1] = Repeat(items[-1], *repetition(self._text))
                except ValueError as error:
                    raise self._error(str(error)) from None
            else:
                raise self._error(f"has nothing before `{self._text}` to repeat")
            self._next()
        return row(*items)

    def _symbol(self, depth: int) -> Node:
        match self._kind:
            case "text":
                return Literal("".join(map(chr, self._characters(self._text[1:-1]))))
            case "set":
                return self._set(self._text[1:-1])
            case "token":
                name = self._text.removeprefix("!")
                number = _NUMBERED.fullmatch(name)
                # Nine digits are beyond every vocabulary too.
                return Token(
                    self._token_of(int(number[1].lstrip("0")[:9] or 0) if number else name),
                    name != self._text,
                )
            case "any":
                return Characters(ANYTHING)
            case "open":
                return self._group(depth + 1)
            case _:
                self._references.setdefault(self._text, (self._rule, self._at))
                return Reference(self._text)

    def _group(self, depth: int) -> Node:
        if depth > MAX_NESTING:
            raise self._error(f"is nested deeper than {MAX_NESTING} parentheses")
        self._next()
        node = self._alternatives(depth)
        if self._kind == "head":
            raise self._error(f"lacks a `)` before the rule `{self._text[:-3].rstrip()[:60]}`")
        if self._kind == "end":
            raise self._error("lacks a `)` at the end of the grammar")
        return node

    # ------------------------------------------------------------------ characters

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

    def _error(self, problem: str) -> GrammarError:
        *lines, last = self._grammar[: self._at].split("\n")
        rule = f", rule `{self._rule[:60]}`" if self._rule else ""
        return GrammarError(f"the grammar {problem} (line {len(lines) + 1}, column {len(last) + 1}{rule})")
