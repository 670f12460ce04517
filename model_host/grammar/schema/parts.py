"""The schemas within a schema, what holds at the same place, and the rules made of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from model_host.grammar.gbnf.syntax import GrammarError, Literal, Node, Reference, Rules
from model_host.grammar.schema.notation import JsonNotation

MAX_CHAIN = 64  # schemas that lead to one another by `$ref` and `allOf` alone
MAX_SIZE = 20_000  # rules, and schemas that hold at their places


class Part(Struct, frozen=True):
    """A schema and its JSON pointer in the document.

    ``without`` are keywords that were taken out of it. ``sealed_by`` are the paths of the schemas around it that allow
    only the properties that they or schemas within them list (`unevaluatedProperties`).
    """

    schema: Any
    path: str
    without: tuple[str, ...] = ()
    sealed_by: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str, ...]:
        """Equal for equal parts, and cheaper to compare."""
        return (self.path, *self.without, "", *self.sealed_by)

    def less(self, *keys: str) -> Part:
        removed = self.schema.keys() & set(keys)
        schema = {key: value for key, value in self.schema.items() if key not in removed}
        return Part(schema, self.path, tuple(sorted({*self.without, *removed})), self.sealed_by)

    def at(self, key: str, number: int | str | None = None) -> Part:
        """The schema under a keyword, or its item or member ``number``."""
        inner, path = self.schema[key], f"{self.path}/{_escaped(key)}"
        return Part(inner, path) if number is None else Part(inner[number], f"{path}/{_escaped(str(number))}")

    @property
    def seals(self) -> bool:
        """Whether it has `unevaluatedProperties` false."""
        return isinstance(self.schema, dict) and self.schema.get("unevaluatedProperties") is False

    def error(self, problem: str, key: str | None = None) -> GrammarError:
        """The error for this part, or for its keyword ``key``."""
        path = self.path if key is None else f"{self.path}/{_escaped(key)}"
        return GrammarError(f"the JSON schema {problem} (at {path[:200]})")


class SchemaBranches(Struct, frozen=True):
    """The branches of an `anyOf` or `oneOf`."""

    key: str
    branches: list[Part]
    owner: Part


class RuleBuilder:
    """The rules of one schema: one for each set of parts that hold at the same place.

    ``to_do`` has the names of rules that are used but not made yet, with their parts.
    """

    def __init__(self, schema: Any, notation: JsonNotation, *, lenient: bool, prefix: str) -> None:
        self.notation = notation
        self.lenient = lenient
        self.root = Part(schema, "#")
        self.rules: Rules = dict(notation.rules)
        self.to_do: list[tuple[str, tuple[Part, ...]]] = []
        self._prefix = prefix
        self._size = 0
        self._places: dict[frozenset[tuple[str, ...]], Reference] = {}

    def target(self, part: Part) -> Part:
        reference = part.schema["$ref"]
        if not isinstance(reference, str) or reference[:1] != "#" or reference[1:2] not in ("", "/"):
            raise part.error("can only refer to its own parts, as in `#/$defs/name`", "$ref")
        found, path = self.root.schema, "#"
        for step in unquote(reference[1:]).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key[:9]) < len(found):
                found = found[int(key[:9])]
            else:
                raise part.error(f"refers to {reference[:100]!r}, which does not exist", "$ref")
            path += f"/{_escaped(key)}"
        return Part(found, path)

    def unfold(self, parts: tuple[Part, ...]) -> tuple[list[Part], list[SchemaBranches]]:
        """All schemas that hold where ``parts`` do, through `$ref` and `allOf`; and the choices among them."""
        plain: dict[tuple[str, ...], Part] = {}
        choices: dict[tuple[str, ...], SchemaBranches] = {}
        for part in parts:
            self._unfold(part, (), plain, choices)
        return list(plain.values()), list(choices.values())

    def _unfold(
        self,
        part: Part,
        chain: tuple[str, ...],
        plain: dict[tuple[str, ...], Part],
        choices: dict[tuple[str, ...], SchemaBranches],
    ) -> None:
        schema = part.schema
        if part.path in chain:
            raise part.error("refers to itself without anything between")
        if len(chain) > MAX_CHAIN:
            raise part.error(f"is nested deeper than {MAX_CHAIN} levels of `$ref` and `allOf`")
        if part.seals and part.path not in part.sealed_by:
            part = Part(schema, part.path, part.without, (*part.sealed_by, part.path))
        if part.identity in plain:
            return
        if not isinstance(schema, dict | bool):
            raise part.error(f"needs an object, true or false, not {str(schema)[:40]!r}")
        plain[part.identity] = part
        if isinstance(schema, bool):
            return
        inner = [self.target(part)] if "$ref" in schema else []
        for found in [*inner, *_schemas(part, "allOf")]:
            self._unfold(_sealed(found, part), (*chain, part.path), plain, choices)
        for key in ("anyOf", "oneOf"):
            if branches := [_sealed(branch, part) for branch in _schemas(part, key)]:
                choices[(key, *part.identity)] = SchemaBranches(key, branches, part)

    def place(self, parts: tuple[Part, ...], name: str | None = None) -> Reference:
        """The rule for a value that satisfies all ``parts``."""
        key = frozenset(self._without_detours(part).identity for part in parts)
        known = self._places.get(key)
        if known is None:
            self._size += len(parts)
            known = self._places[key] = self.rule(Literal(""), name)
            self.to_do.append((known.rule, parts))
        return known

    def rule(self, node: Node, name: str | None = None) -> Reference:
        name = f"{self._prefix}{name or len(self.rules)}"
        self.rules[name] = node
        self._size += 1
        if self._size > MAX_SIZE:
            raise GrammarError("the JSON schema makes too large a grammar; make it simpler")
        return Reference(name)

    def refuse(self, part: Part, problem: str, key: str | None = None) -> None:
        """Raise GrammarError for something not supported, unless the conversion is lenient."""
        if not self.lenient:
            raise part.error(problem, key)

    def _without_detours(self, part: Part) -> Part:
        """Resolve schemas that have nothing but a `$ref`."""
        for _ in range(MAX_CHAIN):
            if not isinstance(part.schema, dict) or part.schema.keys() != {"$ref"} or part.sealed_by:
                break
            part = self.target(part)
        return part


def _sealed(inner: Part, part: Part) -> Part:
    """``inner``, which holds at the same place as ``part``, with its seals."""
    return Part(inner.schema, inner.path, inner.without, part.sealed_by)


def _schemas(part: Part, key: str) -> list[Part]:
    if key not in part.schema:
        return []
    listed = part.schema[key]
    if not isinstance(listed, list) or not listed:
        raise part.error(f"has `{key}` without a list of schemas", key)
    return [part.at(key, number) for number in range(len(listed))]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
