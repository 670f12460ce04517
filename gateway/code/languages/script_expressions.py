"""Expressions of JavaScript and TypeScript, types included."""

from __future__ import annotations

from tree_sitter import Node

from gateway.code.languages.extractor import DEPTH, first, inside, part, text
from gateway.code.languages.facts import Expr
from gateway.code.languages.javascript import FUNCTIONS, ScriptStatements, required_module, string_of

_TRANSPARENT = {
    "parenthesized_expression", "await_expression", "as_expression", "non_null_expression", "satisfies_expression",
    "type_annotation", "expression_statement", "spread_element", "extends_type_clause",
}  # fmt: skip
_NAMES = {"identifier", "this", "super", "shorthand_property_identifier", "property_identifier"}
_PROPERTY = "property_signature"
_OPEN = {
    "identifier",
    "member_expression",
    "call_expression",
    "await_expression",
    "subscript_expression",
    "as_expression",
}
_LITERALS = {"number": "Number", "template_string": "String", "regex": "RegExp"}


class JavaScriptExtractor(ScriptStatements):
    """One JavaScript or TypeScript file."""

    def expr(self, node: Node | None, scope: int, depth: int = 0) -> Expr:
        if node is None or depth > DEPTH:
            return None
        kind, deeper = node.type, depth + 1
        if kind == "type_identifier":
            return self.bounded(node, scope, deeper)
        if kind in _NAMES:
            return ["n", text(node)]
        if kind in ("member_expression", "nested_type_identifier", "nested_identifier"):
            base = part(node, "object") or part(node, "module")
            name = part(node, "property") or part(node, "name")
            return ["a", self.expr(base, scope, deeper), text(name)]
        if kind in ("call_expression", "new_expression"):
            return ["c", self.make_call(node, scope, deeper)] if required_module(node) is None else None
        if kind in FUNCTIONS:
            return ["f", self.make_function(node, scope, "<function>", deeper)]
        if kind == "class":
            return ["f", self.make_class(node, scope, "<class>")]
        if kind == "subscript_expression":
            key = self.expr(part(node, "index"), scope, deeper)
            return ["s", self.expr(part(node, "object"), scope, deeper), key]
        if kind == "as_expression" and (asserted := self._asserted(node, scope, deeper)) is not None:
            return asserted
        if kind == "object_type":
            properties = [each for each in node.named_children if each.type == _PROPERTY]
            return ["d", *(self._property(each, scope, deeper) for each in properties)]
        if kind == "array":
            return ["l", *self.exprs(node.named_children, scope, deeper)]
        if kind == "object":
            return ["d", *(pair for each in node.named_children if (pair := self._pair(each, scope, deeper)))]
        if kind == "string":
            return self.constant(string_of(node))
        if kind in ("ternary_expression", "union_type"):
            parts = node.named_children[1:] if kind == "ternary_expression" else node.named_children
            return ["|", *self.exprs(parts, scope, deeper)]
        if kind == "binary_expression" and text(part(node, "operator")) in ("||", "??", "&&"):
            return ["|", *self.exprs(node.named_children, scope, deeper)]
        if kind == "generic_type":
            generic = self.expr(part(node, "name"), scope, deeper)
            args = self.exprs(inside(part(node, "type_arguments")), scope, deeper)
            return ["s", generic, args[0] if len(args) == 1 else ["l", *args]]
        if kind == "array_type" and node.named_children:
            return ["s", ["n", "Array"], self.expr(first(node), scope, deeper)]
        if kind == "function_type":  # as Python writes it
            types = [part(each, "type") for each in inside(part(node, "parameters"))]
            taken = ["l", *self.exprs(types, scope, deeper)]
            return ["s", ["n", "Callable"], ["l", taken, self.expr(part(node, "return_type"), scope, deeper)]]
        if kind in _TRANSPARENT:
            return self.expr(first(node), scope, deeper)
        return ["t", _LITERALS[kind]] if kind in _LITERALS else None

    def _asserted(self, node: Node, scope: int, depth: int) -> Expr:
        """``value as Shop``, unless the value itself says what it is."""
        value, *types = node.named_children
        known = self.expr(types[0], scope, depth) if types and value.type in _OPEN else None
        return ["y", known] if known is not None else None

    def _property(self, node: Node, scope: int, depth: int) -> list[Expr]:
        declared = self.expr(part(node, "type"), scope, depth)
        return [["k", text(part(node, "name"))], declared]

    def _pair(self, node: Node, scope: int, depth: int) -> Expr:
        """Key and value of a property of an object."""
        if node.type == "shorthand_property_identifier":
            return [["k", text(node)], ["n", text(node)]]
        if node.type == "method_definition":
            name = text(part(node, "name"))
            return [["k", name], ["f", self.make_function(node, scope, f".{name}", depth)]]
        if node.type == "pair":
            key, value = part(node, "key"), part(node, "value")
            name = string_of(key) if key is not None and key.type == "string" else text(key)
            self.named_by(value, scope, f".{name}", depth)
            self.use(value, scope)
            return [["k", name], self.expr(value, scope, depth)]
        return None
