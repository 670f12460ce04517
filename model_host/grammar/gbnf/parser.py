"""Parses GBNF into a tree."""

from __future__ import annotations

import re
from collections.abc import Callable

from model_host.grammar.gbnf.reader import Reader
from model_host.grammar.gbnf.syntax import (
    ANYTHING,
    Characters,
    GrammarError,
    Literal,
    Node,
    Range,
    Reference,
    Rules,
    Token,
    joined,
    row,
)

_SKIP = re.compile(r"(?:\s|#[^\n\r]*)*+")
_NAME = re.compile(r"[A-Za-z0-9-]++")
_HEAD = re.compile(r"([A-Za-z0-9-]++)\s*+::=")
_TOKEN = re.compile(r"(!?)(<\[([0-9]+)\]>|<[^>\n]*>)")
_REPEAT = re.compile(r"[*+?]|\{\s*[0-9]*\s*(?:,\s*[0-9]*\s*)?\}")
_SHORT = {"t": "\t", "n": "\n", "r": "\r"}


def parse(grammar: str, token_of: Callable[[int | str], int] = int) -> Rules:
    """Return the rules by name, with ``root`` and a rule for every reference.

    ``token_of`` resolves a token that is written ``<[7]>`` or ``<name>``. Raises GrammarError with line and column.
    """
    if "\0" in grammar:
        raise GrammarError("the grammar contains a NUL character")
    return _Parser(grammar, token_of).rules()


class _Parser(Reader):
    escape = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([tnr\\\"\[\]-])")

    def __init__(self, grammar: str, token_of: Callable[[int | str], int]) -> None:
        super().__init__(grammar)
        self._token_of = token_of
        self._rule = ""
        self._references: dict[str, tuple[str, int]] = {}  # name → the rule and place of its first use

    def rules(self) -> Rules:
        rules: Rules = {}
        self._skip()
        while self.at < len(self.text):
            head = _HEAD.match(self.text, self.at)
            if head is None:
                raise self.error("does not begin with a rule `name ::= …`")
            if head[1] in rules:
                raise self.error(f"defines the rule `{head[1][:60]}` twice")
            self._rule, self.at = head[1], head.end()
            rules[head[1]] = self.alternatives(0)
            if self.text.startswith(")", self.at):
                raise self.error("has a `)` without a `(`")
        if "root" not in rules:
            raise GrammarError("the grammar has no rule `root`")
        for name, (rule, place) in self._references.items():
            if name not in rules:
                self._rule = rule
                raise self.error(f"uses the rule `{name[:60]}`, which is not defined", place)
        return rules

    def alternative(self, depth: int) -> Node:
        items: list[Node] = []
        while True:
            self._skip()
            if self.text[self.at : self.at + 1] in "|)" or _HEAD.match(self.text, self.at):
                return row(*items)
            repeat = _REPEAT.match(self.text, self.at)
            if repeat is None:
                items.append(self._symbol(depth))
            elif items:
                items[-1] = self.repeated(items[-1], repeat[0])
                self.at = repeat.end()
            else:
                raise self.error(f"has nothing before `{repeat[0]}` to repeat")

    def _symbol(self, depth: int) -> Node:
        begin = self.at
        if self.take('"'):
            return self._literal(begin)
        if self.take("["):
            return self.set()
        if self.take("."):
            return Characters(ANYTHING)
        if self.take("("):
            node = self.alternatives(depth + 1)
            if not self.take(")"):
                head = _HEAD.match(self.text, self.at)
                raise self.error(
                    f"lacks a `)` {f'before the rule `{head[1][:60]}`' if head else 'at the end'}"
                )
            return node
        if match := _TOKEN.match(self.text, begin):
            self.at = match.end()
            # Nine digits of a long number are enough to exceed every vocabulary.
            name = match[2] if match[3] is None else int(match[3].lstrip("0")[:9] or 0)
            return Token(self._token_of(name), bool(match[1]))
        if match := _NAME.match(self.text, begin):
            self.at = match.end()
            self._references.setdefault(match[0], (self._rule, begin))
            return Reference(match[0])
        raise self._unread(begin)

    def _literal(self, begin: int) -> Node:
        codes: list[int] = []
        while not self.take('"'):
            if self.at >= len(self.text):
                raise self._unread(begin)
            codes.append(self.member()[0][0])
            if not joined([(codes[-1], codes[-1])]):
                raise self.error(f"has half of a surrogate pair, U+{codes[-1]:04X}, which no text contains")
        return Literal("".join(map(chr, codes)))

    def escaped(self, sign: str, begin: int) -> tuple[Range, ...]:
        code = ord(_SHORT.get(sign, sign))
        return ((code, code),)

    def _skip(self) -> None:
        match = _SKIP.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _unread(self, at: int) -> ValueError:
        return self.error(f"does not parse at {self.text[at : at + 20]!r}", at)

    def error(self, problem: str, at: int | None = None) -> ValueError:
        *lines, last = self.text[: self.at if at is None else at].split("\n")
        rule = f", rule `{self._rule[:60]}`" if self._rule else ""
        return GrammarError(f"the grammar {problem} (line {len(lines) + 1}, column {len(last) + 1}{rule})")
