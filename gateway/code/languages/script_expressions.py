"""Expressions of JavaScript and TypeScript, types included."""

from __future__ import annotations

from tree_sitter import Node

from gateway.code.languages.extractor import DEPTH, Extractor, text
from gateway.code.languages.facts import Expr

FUNCTIONS = {"arrow_function", "function_expression", "generator_function"}
_TRANSPARENT = {
    "parenthesized_expression", "await_expression", "as_expression", "non_null_expression", "satisfies_expression",
    "type_annotation", "expression_statement", "spread_element", "extends_type_clause",
}  # fmt: skip
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


class ScriptExpressions(Extractor):
    """What expressions are; the subclass makes the sites and definitions in them."""

    def expr(self, node: Node | None, scope: int, depth: int = 0) -> Expr:
        if node is None or depth > DEPTH:
            return None
        kind, deeper = node.type, depth + 1
        if kind == "type_identifier":
            return self.bounded(node, scope, deeper)
        if kind in (
            "identifier",
            "this",
            "super",
            "shorthand_property_identifier",
            "property_identifier",
        ):
            return ["n", text(node)]
        if kind in ("member_expression", "nested_type_identifier", "nested_identifier"):
            base = node.child_by_field_name("object") or node.child_by_field_name("module")
            name = node.child_by_field_name("property") or node.child_by_field_name("name")
            return ["a", self.expr(base, scope, deeper), text(name)]
        if kind in ("call_expression", "new_expression"):
            return ["c", self.make_call(node, scope, deeper)] if required_module(node) is None else None
        if kind in FUNCTIONS:
            return ["f", self.make_function(node, scope, "<function>", deeper)]
        if kind == "class":
            return ["f", self.make_class(node, scope, "<class>")]
        if kind == "subscript_expression":
            key = self.expr(node.child_by_field_name("index"), scope, deeper)
            return ["s", self.expr(node.child_by_field_name("object"), scope, deeper), key]
        if kind == "as_expression" and (asserted := self._asserted(node, scope, deeper)) is not None:
            return asserted
        if kind == "object_type":
            return [
                "d",
                *(
                    self._property(each, scope, deeper)
                    for each in node.named_children
                    if each.type == _PROPERTY
                ),
            ]
        if kind == "array":
            return ["l", *(self.expr(each, scope, deeper) for each in node.named_children)]
        if kind == "object":
            return ["d", *(pair for each in node.named_children if (pair := self._pair(each, scope, deeper)))]
        if kind == "string":
            return self.constant(string_of(node))
        if kind in ("ternary_expression", "union_type"):
            parts = node.named_children[1:] if kind == "ternary_expression" else node.named_children
            return ["|", *(self.expr(each, scope, deeper) for each in parts)]
        if kind == "binary_expression" and text(node.child_by_field_name("operator")) in ("||", "??", "&&"):
            return ["|", *(self.expr(each, scope, deeper) for each in node.named_children)]
        if kind == "generic_type":
            inner = node.child_by_field_name("type_arguments")
            parts = inner.named_children if inner is not None else []
            generic = self.expr(node.child_by_field_name("name"), scope, deeper)
            args = [self.expr(each, scope, deeper) for each in parts]
            return ["s", generic, args[0] if len(args) == 1 else ["l", *args]]
        if kind == "array_type" and node.named_children:
            return ["s", ["n", "Array"], self.expr(node.named_children[0], scope, deeper)]
        if kind == "function_type":  # as Python writes it
            takes, gives = node.child_by_field_name("parameters"), node.child_by_field_name("return_type")
            types = [each.child_by_field_name("type") for each in takes.named_children] if takes else []
            taken = ["l", *(self.expr(each, scope, deeper) for each in types)]
            return ["s", ["n", "Callable"], ["l", taken, self.expr(gives, scope, deeper)]]
        if kind in _TRANSPARENT and node.named_children:
            return self.expr(node.named_children[0], scope, deeper)
        return ["t", _LITERALS[kind]] if kind in _LITERALS else None

    def _asserted(self, node: Node, scope: int, depth: int) -> Expr:
        """``value as Shop``, unless the value itself says what it is."""
        value, *types = node.named_children
        known = self.expr(types[0], scope, depth) if types and value.type in _OPEN else None
        return ["y", known] if known is not None else None

    def _property(self, node: Node, scope: int, depth: int) -> list[Expr]:
        declared = self.expr(node.child_by_field_name("type"), scope, depth)
        return [["k", text(node.child_by_field_name("name"))], declared]

    def type_parameters(self, node: Node) -> None:
        """Note the parameters for types of a class or function."""
        listed = node.child_by_field_name("type_parameters")
        for each in listed.named_children if listed is not None else ():
            constraint = each.child_by_field_name("constraint")
            bound = (
                constraint.named_children[0] if constraint is not None and constraint.named_children else None
            )
            self.type_parameter(each.child_by_field_name("name"), bound, node)

    def _pair(self, node: Node, scope: int, depth: int) -> Expr:
        """Key and value of a property of an object."""
        if node.type == "shorthand_property_identifier":
            return [["k", text(node)], ["n", text(node)]]
        if node.type == "method_definition":
            name = text(node.child_by_field_name("name"))
            return [["k", name], ["f", self.make_function(node, scope, f".{name}", depth)]]
        if node.type == "pair":
            key, value = node.child_by_field_name("key"), node.child_by_field_name("value")
            name = string_of(key) if key is not None and key.type == "string" else text(key)
            self.named_by(value, scope, f".{name}", depth)
            self.use(value, scope)
            return [["k", name], self.expr(value, scope, depth)]
        return None

    def make_call(self, node: Node, scope: int, depth: int) -> int:
        """The index of the site of a call."""
        raise NotImplementedError

    def make_function(self, node: Node, scope: int, name: str, depth: int = 0) -> int:
        """The index of the definition of a function; ``depth`` is that of the expression it stands in."""
        raise NotImplementedError

    def make_class(self, node: Node, scope: int, name: str) -> int:
        """The index of the definition of a class."""
        raise NotImplementedError

    def use(self, node: Node | None, scope: int) -> None:
        """Record that a name is handed on or stored, not called."""
        raise NotImplementedError

    def named_by(self, value: Node | None, scope: int, name: str, depth: int = 0) -> bool:
        """Whether a value is a function or class, which takes the name of its variable."""
        if value is None or value.type not in FUNCTIONS | {"class"}:
            return False
        if value.type == "class":
            self.make_class(value, scope, name)
        else:
            self.make_function(value, scope, name, depth)
        return True


def required_module(call: Node) -> str | None:
    """The module of ``require("module")``."""
    callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if callee is None or callee.type != "identifier" or arguments is None or text(callee) != "require":
        return None
    first = arguments.named_children[0] if arguments.named_children else None
    return string_of(first) if first is not None and first.type == "string" else None


def string_of(node: Node | None) -> str:
    return text(node)[1:-1]
