"""Facts of JavaScript and TypeScript files: statements; the expressions are in script_expressions.py."""

from __future__ import annotations

import re

from tree_sitter import Node

from gateway.code.languages.extractor import Extractor, first, inside, part, text
from gateway.code.languages.facts import Expr, Import, Param

_BRANCHES = {
    "if_statement",
    "for_statement",
    "while_statement",
    "switch_statement",
    "try_statement",
    "ternary_expression",
}
FUNCTIONS = {"arrow_function", "function_expression", "generator_function"}  # without a name of their own
_OWNER = re.compile(r"[\w$]+(\.prototype)?")
_LEAVES = {
    "comment",
    "identifier",
    "number",
    "property_identifier",
    "string",
    "regex",
    "this",
    "type_identifier",
}


class ScriptStatements(Extractor):
    """Facts from the statements of both languages."""

    leaves, branches, separator = _LEAVES, _BRANCHES, "/"

    def function(self, node: Node, scope: int, sometimes: bool) -> None:
        if not _is_overload(node):
            self.make_function(node, scope, text(part(node, "name")))

    def expression(self, node: Node, scope: int, sometimes: bool) -> None:
        """A function without a name of its own; one that is assigned has been named by its variable."""
        self.make_function(node, scope, "<function>")

    def make_function(self, node: Node, scope: int, name: str, depth: int = 0) -> int:
        known = self._definitions.get(node.id)
        if known is not None:
            return known
        self.type_parameters(node)
        body = part(node, "body")
        index = self.define(node, "function" if name != "<function>" else "lambda", name, scope, body)
        definition = self.facts.definitions[index]
        if node.type in FUNCTIONS and name != "<function>":
            definition.signature = f"{name.lstrip('.')} = {definition.signature}"
        if any(child.type == "static" for child in node.children):
            definition.marks.append("staticmethod")
        if any(child.type == "get" for child in node.children):
            definition.marks.append("get")
        definition.result = self.expr(part(node, "return_type"), scope)
        self.describe(index, _doc(node))
        single = part(node, "parameter")
        for each in [single] if single is not None else inside(part(node, "parameters")):
            self._parameter(each, index, scope, depth)
        if body is not None:
            if body.type != "statement_block":
                definition.returns.append(self.expr(body, index, depth + 1))
            self.push([body], index, False)
        return index

    def _parameter(self, node: Node, index: int, scope: int, depth: int) -> None:
        star = ""
        pattern, default = node, None
        annotation = part(node, "type")
        if node.type in ("required_parameter", "optional_parameter"):
            pattern, default = part(node, "pattern") or node, part(node, "value")
        elif node.type == "assignment_pattern":
            pattern, default = part(node, "left") or node, part(node, "right")
        if pattern.type == "rest_pattern" and pattern.named_children:
            star, pattern = "*", pattern.named_children[0]
        name = text(pattern) if pattern.type in ("identifier", "this") else f"<{node.start_byte}>"
        if name == "this":
            return
        usual = self.expr(default, scope, depth + 1)
        param = Param(name, self.expr(annotation, scope), usual, star)
        self.facts.definitions[index].params.append(param)
        if name.startswith("<"):
            self._bind(pattern, ["n", name], index, False)
        if any(child.type == "accessibility_modifier" for child in node.children):  # a field as well
            declared = self.expr(annotation, scope)
            self.bind(index, name, ["n", name], node, False, base=["n", "this"], annotation=declared)
        if default is not None:
            self.push([default], scope, False)

    def class_(self, node: Node, scope: int, sometimes: bool) -> None:
        self.make_class(node, scope, text(part(node, "name")) or "<class>")

    def make_class(self, node: Node, scope: int, name: str) -> int:
        known = self._definitions.get(node.id)
        if known is not None:
            return known
        self.type_parameters(node)
        body = part(node, "body")
        index = self.define(node, "class", name, scope, body)
        self.describe(index, _doc(node))
        for heritage in node.named_children:
            if heritage.type not in ("class_heritage", "extends_type_clause", "extends_clause"):
                continue
            clauses = [each for each in heritage.named_children if each.type.endswith("_clause")]
            for base in [each for clause in clauses or [heritage] for each in clause.named_children]:
                if base.type == "type_arguments":
                    continue
                expr = self.expr(base, scope)
                self.facts.definitions[index].bases.append(expr)
                self.site(base, "base", base, scope, expr)
        if body is not None:
            self.push([body], index, False)
        return index

    def alias(self, node: Node, scope: int, sometimes: bool) -> None:
        """A named type, or an enumeration, which has no value."""
        self.type_parameters(node)
        value = self.expr(part(node, "value"), scope)
        self.bind(scope, text(part(node, "name")), value, node, sometimes)
        self.push(node.named_children, scope, sometimes)

    def field(self, node: Node, scope: int, sometimes: bool) -> None:
        name = part(node, "name") or part(node, "property")
        value = part(node, "value")
        self.named_by(value, scope, text(name))
        annotation = self.expr(part(node, "type"), scope)
        self.bind(scope, text(name), self.expr(value, scope), node, False, annotation=annotation)
        self.push([each for each in node.named_children if each.type != "type_annotation"], scope, sometimes)

    def variable(self, node: Node, scope: int, sometimes: bool) -> None:
        target, value = part(node, "name"), part(node, "value")
        if value is not None and value.type == "call_expression" and self._required(target, value, scope):
            return
        if target is not None and target.type == "identifier" and self.named_by(value, scope, text(target)):
            self.push([value] if value is not None else [], scope, sometimes)
            return
        annotation = self.expr(part(node, "type"), scope)
        bound = value
        while bound is not None and bound.type == "assignment_expression":  # var app = module.exports = {}
            if text(part(bound, "left")) == "module.exports":
                self.bind(0, "default", ["n", text(target)], node, False)
            bound = part(bound, "right")
        self._bind(target, self.expr(bound, scope), scope, sometimes, annotation)
        self.use(value, scope)
        self.push([value] if value is not None else [], scope, sometimes)

    def _required(self, target: Node | None, call: Node, scope: int) -> bool:
        """Whether this is ``const x = require("module")`` or ``const {a, b} = require("module")``."""
        module = required_module(call)
        if module is None or target is None or target.type not in ("identifier", "object_pattern"):
            return False
        line = call.start_point.row + 1
        if target.type == "identifier":
            self._imported(call, Import(scope, module, "", text(target), 0, line))
            return True
        for each in target.named_children:
            name = text(part(each, "key")) or text(each)
            self._imported(each, Import(scope, module, name, text(part(each, "value")) or name, 0, line))
        return True

    def assignment(self, node: Node, scope: int, sometimes: bool) -> None:
        left, right = part(node, "left"), part(node, "right")
        if left is not None and left.type == "member_expression":
            owner, name = text(part(left, "object")), text(part(left, "property"))
            named = f"{owner.removesuffix('.prototype')}.{name}" if _OWNER.fullmatch(owner) else f".{name}"
            if owner in ("exports", "module.exports"):
                named = name
            self.named_by(right, scope, named if (owner, name) != ("module", "exports") else "default")
            value = self.expr(right, scope)
            if (owner, name) == ("module", "exports"):
                self.bind(0, "default", value, node, False)
                for key, item in value[1:] if value is not None and value[0] == "d" else ():
                    self.bind(0, str(key[1]) if key else "", item, node, False)
            elif owner in ("exports", "module.exports"):
                self.bind(0, name, value, node, False)
            else:
                base = self.expr(part(left, "object"), scope)
                self.bind(scope, name, value, left, sometimes, base=base)
        else:
            self._bind(left, self.expr(right, scope), scope, True)
        self.use(right, scope)
        self.push(node.named_children, scope, sometimes)

    def _bind(
        self, target: Node | None, value: Expr, scope: int, sometimes: bool, annotation: Expr = None
    ) -> None:
        if target is None:
            return
        if target.type in ("identifier", "shorthand_property_identifier_pattern"):
            self.bind(scope, text(target), value, target, sometimes, annotation=annotation)
        elif target.type == "array_pattern":
            for index, each in enumerate(target.named_children):
                self._simple(each, ["s", value, ["k", index]], scope, sometimes)
        elif target.type == "object_pattern":
            for each in target.named_children:
                if each.type == "pair_pattern":
                    key = text(part(each, "key"))
                    self._simple(part(each, "value"), ["a", value, key], scope, sometimes)
                elif each.type == "shorthand_property_identifier_pattern":
                    self._simple(each, ["a", value, text(each)], scope, sometimes)

    def _simple(self, target: Node | None, value: Expr, scope: int, sometimes: bool) -> None:
        if target is not None and target.type in ("identifier", "shorthand_property_identifier_pattern"):
            self.bind(scope, text(target), value, target, sometimes)

    def loop(self, node: Node, scope: int, sometimes: bool) -> None:
        element: Expr = ["*", self.expr(part(node, "right"), scope)]
        self._bind(part(node, "left"), element, scope, True)
        self.push(node.named_children, scope, True)

    def call(self, node: Node, scope: int, sometimes: bool) -> None:
        if (module := required_module(node)) is not None:
            self._imported(node, Import(scope, module, "", "", 0, node.start_point.row + 1))
            return
        self.make_call(node, scope, 0)
        self.push(node.named_children, scope, sometimes)

    def element(self, node: Node, scope: int, sometimes: bool) -> None:
        name = part(node, "name")
        if name is not None and text(name)[:1].isupper():
            self.site(node, "call", name, scope, self.expr(name, scope))
        self.push(
            [each for each in node.named_children if each.id != (name.id if name else 0)], scope, sometimes
        )

    def import_(self, node: Node, scope: int, sometimes: bool) -> None:
        module, line = string_of(part(node, "source")), node.start_point.row + 1
        clause = _child(node, "import_clause")
        if clause is None:
            self._imported(node, Import(scope, module, "", "", 0, line))
            return
        for each in clause.named_children:
            if each.type == "identifier":
                self._imported(each, Import(scope, module, "default", text(each), 0, line))
            elif each.type == "namespace_import":
                self._imported(each, Import(scope, module, "", text(first(each)), 0, line))
            elif each.type == "named_imports":
                for one in (one for one in each.named_children if one.type == "import_specifier"):
                    name = text(part(one, "name"))
                    alias = text(part(one, "alias")) or name
                    self._imported(one, Import(scope, module, name, alias, 0, line))

    def export(self, node: Node, scope: int, sometimes: bool) -> None:
        source, line = part(node, "source"), node.start_point.row + 1
        declared, value = part(node, "declaration"), part(node, "value")
        default = any(child.type == "default" for child in node.children)
        clause = _child(node, "export_clause")
        if source is not None and clause is None:
            space = _child(node, "namespace_export")
            name, alias = ("*", "*") if space is None else ("", text(first(space)))
            self._imported(node, Import(scope, string_of(source), name, alias, 0, line))
        for one in inside(clause):
            name = text(part(one, "name"))
            alias = text(part(one, "alias")) or name
            if source is not None:
                self._imported(one, Import(scope, string_of(source), name, alias, 0, line))
            elif alias != name:
                self.bind(0, alias, ["n", name], one, False)
        if value is not None:
            self.named_by(value, scope, "default")
            self.bind(0, "default", self.expr(value, scope), node, False)
            self.push([value], scope, sometimes)
        if declared is not None:
            self.visit(declared, scope, sometimes)
            index = self._definitions.get(declared.id)
            if default and index is not None:
                self.bind(0, "default", ["f", index], node, False)

    def _imported(self, node: Node, new: Import) -> None:
        self.imported(node, new, named=new.name if new.name not in ("*", "default") else "")

    def type_parameters(self, node: Node) -> None:
        """Note the parameters for types of a class or function."""
        for each in inside(part(node, "type_parameters")):
            self.type_parameter(part(each, "name"), first(part(each, "constraint")), node)

    def named_by(self, value: Node | None, scope: int, name: str, depth: int = 0) -> bool:
        """Whether a value is a function or class, which takes the name of its variable."""
        if value is None or value.type not in {*FUNCTIONS, "class"}:
            return False
        if value.type == "class":
            self.make_class(value, scope, name)
        else:
            self.make_function(value, scope, name, depth)
        return True


def required_module(call: Node) -> str | None:
    """The module of ``require("module")``."""
    callee, argument = part(call, "function"), first(part(call, "arguments"))
    if callee is None or callee.type != "identifier" or text(callee) != "require":
        return None
    return string_of(argument) if argument is not None and argument.type == "string" else None


def string_of(node: Node | None) -> str:
    return text(node)[1:-1]


def _child(node: Node, kind: str) -> Node | None:
    return next((each for each in node.named_children if each.type == kind), None)


def _is_overload(node: Node) -> bool:
    """Whether this is a signature before the function itself, or before another signature of it."""
    if not node.type.endswith("_signature"):
        return False
    following = _exported(node).next_named_sibling
    while following is not None and following.type == "comment":
        following = following.next_named_sibling
    if following is not None and following.type == "export_statement":
        following = part(following, "declaration")
    if following is None or following.type not in ScriptStatements.handlers:
        return False
    return text(part(following, "name")) == text(part(node, "name"))


def _exported(node: Node) -> Node:
    """The statement of a declaration, with its `export`."""
    return node.parent if node.parent is not None and node.parent.type == "export_statement" else node


def _doc(node: Node) -> str:
    """The first paragraph of the comment before a definition."""
    before = _exported(node).prev_named_sibling
    if before is None or before.type != "comment" or not (shown := text(before)).startswith("/**"):
        return ""
    lines = [line.strip(" *") for line in shown[3:-2].splitlines()]
    return "\n".join(lines).strip().split("\n\n")[0].split("\n@")[0]


ScriptStatements.handlers = {
    "function_declaration": ScriptStatements.function,
    "generator_function_declaration": ScriptStatements.function,
    "function_signature": ScriptStatements.function,
    "arrow_function": ScriptStatements.expression,
    "function_expression": ScriptStatements.expression,
    "generator_function": ScriptStatements.expression,
    "class_declaration": ScriptStatements.class_,
    "abstract_class_declaration": ScriptStatements.class_,
    "interface_declaration": ScriptStatements.class_,
    "class": ScriptStatements.class_,
    "type_alias_declaration": ScriptStatements.alias,
    "enum_declaration": ScriptStatements.alias,
    "method_definition": ScriptStatements.function,
    "method_signature": ScriptStatements.function,
    "abstract_method_signature": ScriptStatements.function,
    "field_definition": ScriptStatements.field,
    "public_field_definition": ScriptStatements.field,
    "property_signature": ScriptStatements.field,
    "variable_declarator": ScriptStatements.variable,
    "assignment_expression": ScriptStatements.assignment,
    "for_in_statement": ScriptStatements.loop,
    "call_expression": ScriptStatements.call,
    "new_expression": ScriptStatements.call,
    "jsx_self_closing_element": ScriptStatements.element,
    "jsx_opening_element": ScriptStatements.element,
    "return_statement": ScriptStatements.returned,
    "yield_expression": ScriptStatements.returned,
    "import_statement": ScriptStatements.import_,
    "export_statement": ScriptStatements.export,
}
