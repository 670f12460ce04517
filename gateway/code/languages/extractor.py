"""Base of the extractors of all languages: an iterative walk, scopes, and sites that are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar

from tree_sitter import Node

from gateway.base.redact import MARK
from gateway.code.languages.facts import (
    Binding,
    CodeSite,
    Definition,
    DefinitionKind,
    Expr,
    FileFacts,
    Import,
    SiteKind,
    roots_of,
    shortened,
    taken_functions,
)

# Expressions nested deeper are unknown; calls in them are found by the walk all the same.
DEPTH = 12
_RECEIVER = 120
SIGNATURE = 160
_DOC = 120
_KEY = 60

Pending = tuple[Node, int, bool]  # a node, its scope, whether it is in a branch or a loop
Handler = Callable[[Any, Node, int, bool], None]


class Extractor:
    """Walks a syntax tree without recursion; subclasses say what the nodes of a language mean.

    Nodes of the kinds ``leaves`` have nothing inside, what is in ``branches`` may not run, and the others without one
    of the ``handlers`` mean nothing themselves. Modules have parts between ``separator``.
    """

    leaves: ClassVar[Set[str]]
    branches: ClassVar[Set[str]]
    handlers: ClassVar[Mapping[str, Handler]]
    separator: ClassVar[str]

    def __init__(self, name: str, root: Node, secrets: Sequence[str] = ()) -> None:
        self._secrets = secrets
        last = root.end_point.row + (root.end_point.column > 0)
        self.facts = FileFacts([Definition(name, "module", -1, 1, max(last, 1))])
        self._sites: dict[int, int] = {}  # by node
        self._definitions: dict[int, int] = {}
        # Parameters of types by name: from one byte to another, and the type that bounds each.
        self._type_parameters: dict[str, list[tuple[int, int, Node | None]]] = {}
        self._stack: list[Pending] = [(root, 0, False)]

    def run(self) -> FileFacts:
        while self._stack:
            node, scope, sometimes = self._stack.pop()
            self.visit(node, scope, sometimes)
        self.facts.roots = roots_of(self.facts.sites)
        self.facts.taken_by = taken_functions(self.facts.sites)
        return self.facts

    def visit(self, node: Node, scope: int, sometimes: bool) -> None:
        kind = node.type
        if kind in self.leaves:
            return
        handler = self.handlers.get(kind)
        if handler is not None:
            handler(self, node, scope, sometimes)
        else:
            self.push(node.named_children, scope, sometimes or kind in self.branches)

    def expr(self, node: Node | None, scope: int, depth: int = 0) -> Expr:
        raise NotImplementedError

    def exprs(self, nodes: Iterable[Node | None], scope: int, depth: int) -> list[Expr]:
        return [self.expr(each, scope, depth) for each in nodes]

    def type_parameter(self, name: Node | None, bound: Node | None, within: Node) -> None:
        """Note a parameter for types of a class or function."""
        self._type_parameters.setdefault(text(name), []).append((within.start_byte, within.end_byte, bound))

    def bounded(self, node: Node, scope: int, depth: int) -> Expr:
        """Bound of a name that stands for types; None without one."""
        named = ["n", text(node)]
        around = [
            each for each in self._type_parameters.get(named[1], ()) if each[0] <= node.start_byte < each[1]
        ]
        if not around:
            return named
        bound = max(around, key=lambda each: each[0])[2]
        return (
            self.expr(bound, scope, depth)
            if bound is not None and bound.start_byte != node.start_byte
            else None
        )

    def push(self, nodes: list[Node], scope: int, sometimes: bool) -> None:
        """Visit these nodes next, in their order."""
        self._stack.extend((node, scope, sometimes) for node in reversed(nodes))

    def define(
        self, node: Node, kind: DefinitionKind, name: str, scope: int, text: Node | None = None
    ) -> int:
        """The index of the definition at this node, made if it is new; ``text`` is its body."""
        known = self._definitions.get(node.id)
        if known is not None:
            return known
        index = self._definitions[node.id] = len(self.facts.definitions)
        begin = node.start_byte
        head = (node.text or b"")[: text.start_byte - begin if text is not None else None]
        around = [child for child in node.children if child != text]
        parts = [each for child in around for each in (child, *child.children) if each.type == "comment"]
        for each in reversed(parts):
            head = head[: each.start_byte - begin] + head[each.end_byte - begin :]
        shown = self.clean(" ".join(head[:1000].decode("utf-8", "replace").split()))
        self.facts.definitions.append(
            Definition(
                name,
                kind,
                scope,
                node.start_point.row + 1,
                node.end_point.row + 1,
                shortened(shown, SIGNATURE),
            )
        )
        return index

    def site(
        self, node: Node, kind: SiteKind, callee: Node | None, scope: int, expr: Expr
    ) -> tuple[int, bool]:
        """The index of the site at this node, and whether it is new."""
        known = self._sites.get(node.id)
        if known is not None:
            return known, False
        index = self._sites[node.id] = len(self.facts.sites)
        name, receiver = self.named(callee)
        row, column = (node if callee is None else last_name(callee)).start_point
        self.facts.sites.append(CodeSite(kind, scope, name, receiver, expr, row + 1, column))
        return index, True

    def named(self, callee: Node | None) -> tuple[str, str]:
        """The last name of an expression and the text before it."""
        if callee is None:
            return "", ""
        base, last = part(callee, "object"), last_name(callee)
        if base is not None and last is not callee:
            return text(last), self.clean(text(base, _RECEIVER))
        return (text(callee), "") if callee.child_count == 0 else ("", self.clean(text(callee, _RECEIVER)))

    def make_call(self, node: Node, scope: int, depth: int) -> int:
        """The index of the site of a call."""
        if node.id in self._sites:
            return self._sites[node.id]
        callee = part(node, "function") or part(node, "constructor")
        index, _ = self.site(node, "call", callee, scope, None)
        site = self.facts.sites[index]
        site.callee = self.expr(callee, scope, depth + 1)
        arguments = part(node, "arguments")
        if arguments is not None and arguments.type == "generator_expression":
            site.args.append(self.expr(arguments, scope, depth + 1))
        elif arguments is not None and arguments.type in ("argument_list", "arguments"):
            for each in arguments.named_children:
                if each.type == "keyword_argument":
                    name = text(part(each, "name"))
                    site.keywords[name] = self.expr(part(each, "value"), scope, depth + 1)
                elif each.type not in ("comment", "dictionary_splat"):
                    site.args.append(self.expr(each, scope, depth + 1))
                    self.use(each, scope)
        return index

    def use(self, node: Node | None, scope: int) -> None:
        """Record that a name is handed on or stored, not called."""
        if node is not None and node.type in ("identifier", "attribute", "member_expression"):
            self.site(node, "use", node, scope, self.expr(node, scope))

    def returned(self, node: Node, scope: int, sometimes: bool) -> None:
        value, definition = first(node), self.facts.definitions[scope]
        if value is not None:
            expr = self.expr(value, scope)
            every = any(child.type == "from" for child in node.children)  # `yield from`
            results = definition.returns if node.type == "return_statement" else definition.yields
            results.append(["*", expr] if every else expr)
            self.use(value, scope)
        self.push(node.named_children, scope, sometimes)

    def imported(self, node: Node, new: Import, *, named: str) -> None:
        """Record an import; ``named`` is "" if it has no name of its own."""
        self.facts.imports.append(new)
        index, _ = self.site(node, "import", None, new.scope, ["m", len(self.facts.imports) - 1])
        site = self.facts.sites[index]
        site.name = named or new.module.rpartition(self.separator)[2]
        site.receiver = "." * new.level + new.module

    def bind(
        self,
        scope: int,
        name: str,
        value: Expr,
        node: Node,
        sometimes: bool,
        item: bool = False,
        **rest: Expr,
    ) -> None:
        line = node.start_point.row + 1
        self.facts.bindings.append(Binding(scope, name, value, line, sometimes=sometimes, item=item, **rest))

    def constant(self, value: str) -> Expr:
        """A string that may be a key, unless it is a secret or too long for one."""
        return ["k", value] if len(value) <= _KEY and not self._secrets else ["t", "str"]

    def clean(self, shown: str) -> str:
        """The text without the secrets of the file."""
        for secret in self._secrets:
            shown = shown.replace(secret, MARK)
        return shown

    def describe(self, index: int, doc: str) -> None:
        self.facts.definitions[index].doc = self.clean(" ".join(doc.split()))[:_DOC]


def part(node: Node | None, name: str) -> Node | None:
    """The child in a place of the grammar."""
    return node.child_by_field_name(name) if node is not None else None


def inside(node: Node | None) -> list[Node]:
    """The children that mean something; none of what is missing."""
    return node.named_children if node is not None else []


def first(node: Node | None) -> Node | None:
    return next(iter(inside(node)), None)


def last_name(callee: Node) -> Node:
    """The name after the last dot: in a chain of calls over several lines, each call has its own place."""
    return part(callee, "attribute") or part(callee, "property") or callee


def text(node: Node | None, limit: int | None = None) -> str:
    """The source of a node; bytes that are not UTF-8 are replaced."""
    raw = (node.text or b"") if node is not None else b""
    shown = raw if limit is None else raw[: limit * 4]
    decoded = shown.decode("utf-8", "replace")
    return decoded if limit is None else " ".join(decoded.split())[:limit]
