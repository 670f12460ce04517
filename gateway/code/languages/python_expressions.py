"""Expressions of Python, annotations included."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from gateway.code.languages.extractor import DEPTH, Extractor, text
from gateway.code.languages.facts import Expr
from gateway.code.languages.narrowing import narrowings

_LITERALS = {"string": "str", "concatenated_string": "str", "integer": "int", "float": "float"}


class PythonExpressions(Extractor):
    """What expressions are; the subclass makes the sites in them."""

    def __init__(self, name: str, root: Node, secrets: Sequence[str] = ()) -> None:
        super().__init__(name, root, secrets)
        self._narrowed = narrowings(root, root.text or b"")

    def expr(self, node: Node | None, scope: int, depth: int = 0) -> Expr:
        if node is None or depth > DEPTH:
            return None
        kind = node.type
        deeper = depth + 1
        if (
            self._narrowed
            and kind in ("identifier", "attribute")
            and (types := self._types_of(node)) is not None
        ):
            # A tuple of types is one of them.
            listed = self.expr(types, scope, deeper)
            return ["y", ["|", *listed[1:]] if listed is not None and listed[0] == "l" else listed]
        if kind == "identifier":
            return self.bounded(node, scope, deeper)
        if kind == "attribute":
            base = self.expr(node.child_by_field_name("object"), scope, deeper)
            return ["a", base, text(node.child_by_field_name("attribute"))]
        if kind == "call":
            return ["c", self.make_call(node, scope, deeper)]
        if kind == "lambda":
            return ["f", self.define(node, "lambda", "<lambda>", scope)]
        if kind == "subscript":
            key = node.child_by_field_name("subscript")
            base = self.expr(node.child_by_field_name("value"), scope, deeper)
            if key is not None and key.type == "slice":
                first = key.named_children[0] if key.named_children else None
                start = text(first) if first is not None and first.type == "integer" else "0"
                return ["u", base, int(start) if start.isdecimal() else 0]
            return ["s", base, self.expr(key, scope, deeper)]
        if kind in ("list", "tuple", "set", "expression_list"):
            return [
                "l",
                *(self.expr(each, scope, deeper) for each in node.named_children if each.type != "comment"),
            ]
        if kind == "dictionary":
            return [
                "d",
                *(
                    [
                        self.expr(p.child_by_field_name("key"), scope, deeper),
                        self.expr(p.child_by_field_name("value"), scope, deeper),
                    ]
                    for p in node.named_children
                    if p.type == "pair"
                ),
            ]
        if kind in ("list_comprehension", "set_comprehension", "generator_expression"):
            return ["l", self.expr(node.child_by_field_name("body"), scope, deeper)]
        if kind == "conditional_expression":
            parts = node.named_children
            return ["|", self.expr(parts[0], scope, deeper), self.expr(parts[-1], scope, deeper)]
        if kind == "boolean_operator":
            return ["|", *(self.expr(each, scope, deeper) for each in node.named_children)]
        if kind in ("parenthesized_expression", "type", "await", "named_expression", "list_splat"):
            inner = node.child_by_field_name("value") or (
                node.named_children[0] if node.named_children else None
            )
            return self.expr(inner, scope, deeper)
        if kind == "string":
            content = "".join(text(each) for each in node.named_children if each.type == "string_content")
            return self.constant(content)
        if kind == "integer" and len(node.text or b"") < 10 and text(node).isdecimal():
            return ["k", int(text(node))]
        if kind == "unary_operator" and text(node)[1:].isdecimal() and len(node.text or b"") < 10:
            return ["k", -int(text(node)[1:])]
        if kind == "binary_operator" and text(node.child_by_field_name("operator")) == "|":
            return ["|", *(self.expr(each, scope, deeper) for each in node.named_children)]
        if kind in ("generic_type", "type_parameter", "union_type", "member_type"):
            return self._type(node, scope, deeper)
        return ["t", _LITERALS[kind]] if kind in _LITERALS else None

    def _type(self, node: Node, scope: int, depth: int) -> Expr:
        """Annotations that the grammar knows by names of their own."""
        parts = [self.expr(each, scope, depth) for each in node.named_children]
        if node.type == "generic_type" and len(parts) == 2:
            return ["s", parts[0], parts[1]]
        if node.type == "union_type":
            return ["|", *parts]
        return parts[0] if len(parts) == 1 else ["l", *parts]

    def _types_of(self, node: Node) -> Node | None:
        """What `isinstance` says a name is here: the innermost."""
        begin = node.start_byte
        told = [each for each in self._narrowed.get(text(node), ()) if each.begin <= begin < each.end]
        return max(told, key=lambda each: each.begin).types if told else None

    def make_call(self, node: Node, scope: int, depth: int) -> int:
        """The index of the site of a call."""
        raise NotImplementedError
