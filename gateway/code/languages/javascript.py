"""Facts of JavaScript and TypeScript files."""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

from gateway.code.languages.extractor import text
from gateway.code.languages.facts import Expr, Import, Param
from gateway.code.languages.script_expressions import ScriptExpressions, required_module, string_of

_BRANCHES = {
    "if_statement",
    "for_statement",
    "while_statement",
    "switch_statement",
    "try_statement",
    "ternary_expression",
}
_NAMELESS = {"arrow_function", "function_expression", "generator_function"}
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


class JavaScriptExtractor(ScriptExpressions):
    """One JavaScript or TypeScript file."""

    def visit(self, node: Node, scope: int, sometimes: bool) -> None:
        kind = node.type
        if kind in _LEAVES:
            return
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node, scope, sometimes)
        else:
            self.push(node.named_children, scope, sometimes or kind in _BRANCHES)

    def function(self, node: Node, scope: int, sometimes: bool) -> None:
        if not _is_overload(node):
            self.make_function(node, scope, text(node.child_by_field_name("name")))

    def expression(self, node: Node, scope: int, sometimes: bool) -> None:
        """A function without a name of its own; one that is assigned has been named by its variable."""
        self.make_function(node, scope, "<function>")

    def make_function(self, node: Node, scope: int, name: str, depth: int = 0) -> int:
        known = self._definitions.get(node.id)
        if known is not None:
            return known
        self.type_parameters(node)
        body = node.child_by_field_name("body")
        index = self.define(node, "function" if name != "<function>" else "lambda", name, scope, body)
        definition = self.facts.definitions[index]
        if node.type in _NAMELESS and name != "<function>":
            definition.signature = f"{name.lstrip('.')} = {definition.signature}"
        if any(child.type == "static" for child in node.children):
            definition.marks.append("staticmethod")
        if any(child.type == "get" for child in node.children):
            definition.marks.append("get")
        definition.result = self.expr(node.child_by_field_name("return_type"), scope)
        self.describe(index, _doc(node))
        single = node.child_by_field_name("parameter")
        parameters = node.child_by_field_name("parameters")
        for each in (
            [single] if single is not None else parameters.named_children if parameters is not None else ()
        ):
            self._parameter(each, index, scope, depth)
        if body is not None:
            if body.type != "statement_block":
                definition.returns.append(self.expr(body, index, depth + 1))
            self.push([body], index, False)
        return index

    def _parameter(self, node: Node, index: int, scope: int, depth: int) -> None:
        star = ""
        pattern, default = node, None
        annotation = node.child_by_field_name("type")
        if node.type in ("required_parameter", "optional_parameter"):
            pattern, default = node.child_by_field_name("pattern") or node, node.child_by_field_name("value")
        elif node.type == "assignment_pattern":
            pattern, default = node.child_by_field_name("left") or node, node.child_by_field_name("right")
        if pattern.type == "rest_pattern" and pattern.named_children:
            star, pattern = "*", pattern.named_children[0]
        name = text(pattern) if pattern.type in ("identifier", "this") else f"<{node.start_byte}>"
        if name == "this":
            return
        usual = self.expr(default, scope, depth + 1)
        self.parameter(index, Param(name, self.expr(annotation, scope), usual, star))
        if name.startswith("<"):
            self._bind(pattern, ["n", name], index, False)
        if any(child.type == "accessibility_modifier" for child in node.children):  # a field as well
            declared = self.expr(annotation, scope)
            self.bind(index, name, ["n", name], node, False, base=["n", "this"], annotation=declared)
        if default is not None:
            self.push([default], scope, False)

    def class_(self, node: Node, scope: int, sometimes: bool) -> None:
        self.make_class(node, scope, text(node.child_by_field_name("name")) or "<class>")

    def make_class(self, node: Node, scope: int, name: str) -> int:
        known = self._definitions.get(node.id)
        if known is not None:
            return known
        self.type_parameters(node)
        body = node.child_by_field_name("body")
        index = self.define(node, "class", name, scope, body)
        self.describe(index, _doc(node))
        for heritage in node.named_children:
            if heritage.type not in ("class_heritage", "extends_type_clause", "extends_clause"):
                continue
            clauses = [each for each in heritage.named_children if each.type.endswith("_clause")] or [
                heritage
            ]
            for base in [each for clause in clauses for each in clause.named_children]:
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
        value = self.expr(node.child_by_field_name("value"), scope)
        self.bind(scope, text(node.child_by_field_name("name")), value, node, sometimes)
        self.push(node.named_children, scope, sometimes)

    def field(self, node: Node, scope: int, sometimes: bool) -> None:
        name = node.child_by_field_name("name") or node.child_by_field_name("property")
        value = node.child_by_field_name("value")
        self.named_by(value, scope, text(name))
        annotation = self.expr(node.child_by_field_name("type"), scope)
        self.bind(scope, text(name), self.expr(value, scope), node, False, annotation=annotation)
        self.push([each for each in node.named_children if each.type != "type_annotation"], scope, sometimes)

    def variable(self, node: Node, scope: int, sometimes: bool) -> None:
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if value is not None and value.type == "call_expression" and self._required(target, value, scope):
            return
        if target is not None and target.type == "identifier" and self.named_by(value, scope, text(target)):
            self.push([value] if value is not None else [], scope, sometimes)
            return
        annotation = self.expr(node.child_by_field_name("type"), scope)
        bound = value
        while bound is not None and bound.type == "assignment_expression":  # var app = module.exports = {}
            if text(bound.child_by_field_name("left")) == "module.exports":
                self.bind(0, "default", ["n", text(target)], node, False)
            bound = bound.child_by_field_name("right")
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
            name = text(each.child_by_field_name("key")) or text(each)
            self._imported(
                each, Import(scope, module, name, text(each.child_by_field_name("value")) or name, 0, line)
            )
        return True

    def assignment(self, node: Node, scope: int, sometimes: bool) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and left.type == "member_expression":
            owner, name = text(left.child_by_field_name("object")), text(left.child_by_field_name("property"))
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
                base = self.expr(left.child_by_field_name("object"), scope)
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
            for index, part in enumerate(target.named_children):
                self._simple(part, ["s", value, ["k", index]], scope, sometimes)
        elif target.type == "object_pattern":
            for part in target.named_children:
                if part.type == "pair_pattern":
                    key = text(part.child_by_field_name("key"))
                    self._simple(part.child_by_field_name("value"), ["a", value, key], scope, sometimes)
                elif part.type == "shorthand_property_identifier_pattern":
                    self._simple(part, ["a", value, text(part)], scope, sometimes)

    def _simple(self, part: Node | None, value: Expr, scope: int, sometimes: bool) -> None:
        if part is not None and part.type in ("identifier", "shorthand_property_identifier_pattern"):
            self.bind(scope, text(part), value, part, sometimes)

    def loop(self, node: Node, scope: int, sometimes: bool) -> None:
        element: Expr = ["*", self.expr(node.child_by_field_name("right"), scope)]
        self._bind(node.child_by_field_name("left"), element, scope, True)
        self.push(node.named_children, scope, True)

    def call(self, node: Node, scope: int, sometimes: bool) -> None:
        if (module := required_module(node)) is not None:
            self._imported(node, Import(scope, module, "", "", 0, node.start_point.row + 1))
            return
        self.make_call(node, scope, 0)
        self.push(node.named_children, scope, sometimes)

    def make_call(self, node: Node, scope: int, depth: int) -> int:
        if node.id in self._sites:
            return self._sites[node.id]
        callee = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        index, _ = self.site(node, "call", callee, scope, None)
        site = self.facts.sites[index]
        site.callee = self.expr(callee, scope, depth + 1)
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and arguments.type == "arguments":
            for each in arguments.named_children:
                if each.type != "comment":
                    site.args.append(self.expr(each, scope, depth + 1))
                    self.use(each, scope)
        return index

    def use(self, node: Node | None, scope: int) -> None:
        if node is not None and node.type in ("identifier", "member_expression"):
            self.site(node, "use", node, scope, self.expr(node, scope))

    def element(self, node: Node, scope: int, sometimes: bool) -> None:
        name = node.child_by_field_name("name")
        if name is not None and text(name)[:1].isupper():
            self.site(node, "call", name, scope, self.expr(name, scope))
        self.push(
            [each for each in node.named_children if each.id != (name.id if name else 0)], scope, sometimes
        )

    def returned(self, node: Node, scope: int, sometimes: bool) -> None:
        value = node.named_children[0] if node.named_children else None
        if value is not None:
            found = self.facts.definitions[scope]
            (found.returns if node.type == "return_statement" else found.yields).append(
                self.expr(value, scope)
            )
            self.use(value, scope)
        self.push(node.named_children, scope, sometimes)

    def import_(self, node: Node, scope: int, sometimes: bool) -> None:
        module, line = string_of(node.child_by_field_name("source")), node.start_point.row + 1
        clause = next((each for each in node.named_children if each.type == "import_clause"), None)
        if clause is None:
            self._imported(node, Import(scope, module, "", "", 0, line))
            return
        for each in clause.named_children:
            if each.type == "identifier":
                self._imported(each, Import(scope, module, "default", text(each), 0, line))
            elif each.type == "namespace_import":
                self._imported(each, Import(scope, module, "", text(each.named_children[0]), 0, line))
            elif each.type == "named_imports":
                for one in (one for one in each.named_children if one.type == "import_specifier"):
                    name = text(one.child_by_field_name("name"))
                    alias = text(one.child_by_field_name("alias")) or name
                    self._imported(one, Import(scope, module, name, alias, 0, line))

    def export(self, node: Node, scope: int, sometimes: bool) -> None:
        source, line = node.child_by_field_name("source"), node.start_point.row + 1
        declared, value = node.child_by_field_name("declaration"), node.child_by_field_name("value")
        default = any(child.type == "default" for child in node.children)
        clause = next((each for each in node.named_children if each.type == "export_clause"), None)
        if source is not None and clause is None:
            space = next((each for each in node.named_children if each.type == "namespace_export"), None)
            name, alias = ("*", "*") if space is None else ("", text(space.named_children[0]))
            self._imported(node, Import(scope, string_of(source), name, alias, 0, line))
        for one in clause.named_children if clause is not None else ():
            name = text(one.child_by_field_name("name"))
            alias = text(one.child_by_field_name("alias")) or name
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
        self.facts.imports.append(new)
        site, _ = self.site(node, "import", None, new.scope, ["m", len(self.facts.imports) - 1])
        named = new.name if new.name not in ("*", "default") else ""
        self.facts.sites[site].name = named or new.module.rpartition("/")[2]
        self.facts.sites[site].receiver = new.module


def _is_overload(node: Node) -> bool:
    """Whether this is a signature before the function itself, or before another signature of it."""
    if not node.type.endswith("_signature"):
        return False
    at = node.parent if node.parent is not None and node.parent.type == "export_statement" else node
    following = at.next_named_sibling
    while following is not None and following.type == "comment":
        following = following.next_named_sibling
    if following is not None and following.type == "export_statement":
        following = following.child_by_field_name("declaration")
    if following is None or following.type not in _HANDLERS:
        return False
    return text(following.child_by_field_name("name")) == text(node.child_by_field_name("name"))


def _doc(node: Node) -> str:
    """The first paragraph of the comment before a definition."""
    at = node.parent if node.parent is not None and node.parent.type == "export_statement" else node
    before = at.prev_named_sibling
    if before is None or before.type != "comment" or not (shown := text(before)).startswith("/**"):
        return ""
    lines = [line.strip(" *") for line in shown[3:-2].splitlines()]
    return "\n".join(lines).strip().split("\n\n")[0].split("\n@")[0]


_HANDLERS: dict[str, Callable[[JavaScriptExtractor, Node, int, bool], None]] = {
    "function_declaration": JavaScriptExtractor.function,
    "generator_function_declaration": JavaScriptExtractor.function,
    "function_signature": JavaScriptExtractor.function,
    "arrow_function": JavaScriptExtractor.expression,
    "function_expression": JavaScriptExtractor.expression,
    "generator_function": JavaScriptExtractor.expression,
    "class_declaration": JavaScriptExtractor.class_,
    "abstract_class_declaration": JavaScriptExtractor.class_,
    "interface_declaration": JavaScriptExtractor.class_,
    "class": JavaScriptExtractor.class_,
    "type_alias_declaration": JavaScriptExtractor.alias,
    "enum_declaration": JavaScriptExtractor.alias,
    "method_definition": JavaScriptExtractor.function,
    "method_signature": JavaScriptExtractor.function,
    "abstract_method_signature": JavaScriptExtractor.function,
    "field_definition": JavaScriptExtractor.field,
    "public_field_definition": JavaScriptExtractor.field,
    "property_signature": JavaScriptExtractor.field,
    "variable_declarator": JavaScriptExtractor.variable,
    "assignment_expression": JavaScriptExtractor.assignment,
    "for_in_statement": JavaScriptExtractor.loop,
    "call_expression": JavaScriptExtractor.call,
    "new_expression": JavaScriptExtractor.call,
    "jsx_self_closing_element": JavaScriptExtractor.element,
    "jsx_opening_element": JavaScriptExtractor.element,
    "return_statement": JavaScriptExtractor.returned,
    "yield_expression": JavaScriptExtractor.returned,
    "import_statement": JavaScriptExtractor.import_,
    "export_statement": JavaScriptExtractor.export,
}
