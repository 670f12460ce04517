"""Facts of Python files: statements, expressions and annotations."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from gateway.code.languages.extractor import DEPTH, Extractor, first, inside, part, text
from gateway.code.languages.facts import CodeSite, Expr, Import, Param
from gateway.code.languages.narrowing import narrowings

_BRANCHES = {
    "if_statement",
    "for_statement",
    "while_statement",
    "try_statement",
    "match_statement",
    "except_clause",
    "conditional_expression",
}
_PLAIN = {"true", "false", "none", "comment", "identifier", "integer", "float", "pass_statement"}
_STARS = {"list_splat_pattern": "*", "dictionary_splat_pattern": "**"}
_LITERALS = {"string": "str", "concatenated_string": "str", "integer": "int", "float": "float"}


class PythonExtractor(Extractor):
    """One Python file."""

    leaves, branches, separator = _PLAIN, _BRANCHES, "."

    def __init__(self, name: str, root: Node, secrets: Sequence[str] = ()) -> None:
        super().__init__(name, root, secrets)
        self._narrowed = narrowings(root, root.text or b"")
        self._globals: set[tuple[int, str]] = set()
        self.describe(0, _doc(root))

    def decorated(self, node: Node, scope: int, sometimes: bool) -> None:
        inner = part(node, "definition")
        if inner is not None:
            self.visit(inner, scope, sometimes)
        index = self._definitions.get(inner.id) if inner is not None else None
        if index is None:
            return
        passed: Expr = ["f", index]
        for decorator in reversed(node.named_children):  # the innermost first
            callee = first(decorator)
            if decorator.type != "decorator" or callee is None:
                continue
            site, new = self.site(decorator, "call", callee, scope, self.expr(callee, scope))
            if new:
                self.facts.sites[site].args.append(passed)
                passed = ["c", site]
                self.facts.definitions[index].decorators.append(site)
                called = part(callee, "function") if callee.type == "call" else callee
                self.facts.definitions[index].marks.append(self.named(called)[0])
            self.push([callee], scope, sometimes)

    def function(self, node: Node, scope: int, sometimes: bool) -> None:
        self._noted_type_parameters(node)
        body = part(node, "body")
        index = self.define(node, "function", text(part(node, "name")), scope, body)
        definition = self.facts.definitions[index]
        definition.result = self.expr(part(node, "return_type"), scope)
        self._parameters(part(node, "parameters"), index, scope, sometimes)
        if body is not None:
            self.describe(index, _doc(body))
            self.push([body], index, False)

    def lambda_(self, node: Node, scope: int, sometimes: bool) -> None:
        known = node.id in self._definitions
        index = self.define(node, "lambda", "<lambda>", scope)
        if known and self.facts.definitions[index].returns:
            return
        body = part(node, "body")
        self._parameters(part(node, "parameters"), index, scope, sometimes)
        self.facts.definitions[index].returns.append(self.expr(body, index))
        if body is not None:
            self.push([body], index, False)

    def _parameters(self, node: Node | None, index: int, scope: int, sometimes: bool) -> None:
        for each in inside(node):
            named = part(each, "name") or (each if each.type == "identifier" else None)
            star = _STARS.get(each.type, "")
            if named is None:
                named = first(each)
                if named is not None and named.type in _STARS:
                    star, named = _STARS[named.type], first(named)
            if named is None or named.type != "identifier":
                continue
            default = part(each, "value")
            annotation = part(each, "type")
            param = Param(text(named), self.expr(annotation, scope), self.expr(default, scope), star)
            self.facts.definitions[index].params.append(param)
            if default is not None:
                self.use(default, scope)
                self.push([default], scope, sometimes)

    def _noted_type_parameters(self, node: Node) -> None:
        for each in inside(part(node, "type_parameters")):
            name, bound = first(each), None
            if name is not None and name.type == "constrained_type":
                name, bound = name.named_children
            self.type_parameter(name, bound, node)

    def class_(self, node: Node, scope: int, sometimes: bool) -> None:
        self._noted_type_parameters(node)
        body = part(node, "body")
        index = self.define(node, "class", text(part(node, "name")), scope, body)
        for base in inside(part(node, "superclasses")):
            if base.type not in ("keyword_argument", "comment"):
                expr = self.expr(base, scope)
                self.facts.definitions[index].bases.append(expr)
                named = part(base, "value") if base.type == "subscript" else None
                self.site(base, "base", named or base, scope, expr)
                self.push([base], scope, sometimes)
        if body is not None:
            self.describe(index, _doc(body))
            self.push([body], index, False)

    def call(self, node: Node, scope: int, sometimes: bool) -> None:
        site = self.facts.sites[self.make_call(node, scope, 0)]
        callee = part(node, "function")
        if site.name == "update" and site.args[:1] and (site.args[0] or "?")[0] == "d" and callee is not None:
            self._bind(part(callee, "object"), site.args[0], scope, True, item=True)
        self.push(node.named_children, scope, sometimes)

    def assignment(self, node: Node, scope: int, sometimes: bool) -> None:
        targets, right = [part(node, "left")], part(node, "right")
        annotation = self.expr(part(node, "type"), scope)
        while right is not None and right.type == "assignment":  # a = b = value
            targets.append(part(right, "left"))
            right = part(right, "right")
        value = self.expr(right, scope)
        self.use(right, scope)
        for target in targets:
            self._bind(target, value, scope, sometimes, annotation)
        self.push([each for each in (*targets, right) if each is not None], scope, sometimes)

    def _bind(
        self,
        target: Node | None,
        value: Expr,
        scope: int,
        sometimes: bool,
        annotation: Expr = None,
        depth: int = 0,
        item: bool = False,
    ) -> None:
        if target is None or depth > DEPTH:
            return
        if target.type == "identifier":
            name = text(target)
            home = 0 if (scope, name) in self._globals else scope
            unsure = sometimes or item or home != scope
            self.bind(home, name, value, target, unsure, item, annotation=annotation)
        elif target.type == "attribute":
            base = self.expr(part(target, "object"), scope)
            name = text(part(target, "attribute"))
            self.bind(scope, name, value, target, sometimes, base=base, annotation=annotation)
        elif target.type == "subscript":
            base_node, key = part(target, "value"), part(target, "subscript")
            keyed = self.expr(key, scope)
            made: Expr = ["d", [keyed, value]] if sometimes or item else ["e", keyed, value]
            self._bind(base_node, made, scope, True, depth=depth + 1, item=True)
        elif target.type in ("pattern_list", "tuple_pattern", "list_pattern", "tuple"):
            parts = target.named_children
            star = next((i for i, each in enumerate(parts) if each.type == "list_splat_pattern"), len(parts))
            for index, each in enumerate(parts):
                if each.type == "list_splat_pattern":
                    self._bind(first(each), ["u", value, index], scope, sometimes)
                else:
                    place = index if index < star else index - len(parts)
                    self._bind(each, ["s", value, ["k", place]], scope, sometimes, depth=depth + 1)

    def loop(self, node: Node, scope: int, sometimes: bool) -> None:
        iterable = self.expr(part(node, "right"), scope)
        if iterable is not None and iterable[0] in "nac":
            began = self._implicit(node, scope, ["a", iterable, "__iter__"])
            self._implicit(node, scope, ["a", ["c", began], "__next__"])
        element: Expr = ["*", iterable]
        self._bind(part(node, "left"), element, scope, True)
        self.push(node.named_children, scope, True)

    def raised(self, node: Node, scope: int, sometimes: bool) -> None:
        """`raise Error` calls the class that it names."""
        error = first(node)
        if error is not None and error.type in ("identifier", "attribute"):
            self._implicit(error, scope, self.expr(error, scope))
        self.push(node.named_children, scope, sometimes)

    def _implicit(self, node: Node, scope: int, callee: Expr) -> int:
        assert callee is not None
        row, column = node.start_point
        self.facts.sites.append(CodeSite("implicit", scope, str(callee[-1]), "", callee, row + 1, column))
        return len(self.facts.sites) - 1

    def with_item(self, node: Node, scope: int, sometimes: bool) -> None:
        value = part(node, "value")
        if value is not None and value.type == "as_pattern":
            entered = self.expr(first(value), scope)
            self._bind(first(part(value, "alias")), ["w", entered], scope, sometimes)
        self.push(node.named_children, scope, sometimes)

    def named_expression(self, node: Node, scope: int, sometimes: bool) -> None:
        value = self.expr(part(node, "value"), scope)
        self._bind(part(node, "name"), value, scope, True)
        self.push(node.named_children, scope, sometimes)

    def global_(self, node: Node, scope: int, sometimes: bool) -> None:
        self._globals |= {(scope, text(each)) for each in node.named_children}

    def import_(self, node: Node, scope: int, sometimes: bool) -> None:
        line = node.start_point.row + 1
        module_node = part(node, "module_name")
        if node.type == "future_import_statement":
            return
        module, level = text(module_node), 0
        while module.startswith("."):
            module, level = module[1:].lstrip(), level + 1
        for each in node.children_by_field_name("name"):
            named = part(each, "name") if each.type == "aliased_import" else each
            name, alias = text(named), text(part(each, "alias"))
            if module_node is None:  # `import a.b` binds `a`, `import a.b as c` binds `a.b`
                new = Import(scope, name, "", alias or name.split(".")[0], 0, line)
            else:
                new = Import(scope, module, name, alias or name, level, line)
            self.imported(each, new, named=new.name)
        if any(child.type == "wildcard_import" for child in node.named_children):
            self.imported(node, Import(scope, module, "*", "*", level, line), named="")

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
            base = self.expr(part(node, "object"), scope, deeper)
            return ["a", base, text(part(node, "attribute"))]
        if kind == "call":
            return ["c", self.make_call(node, scope, deeper)]
        if kind == "lambda":
            return ["f", self.define(node, "lambda", "<lambda>", scope)]
        if kind == "subscript":
            key = part(node, "subscript")
            base = self.expr(part(node, "value"), scope, deeper)
            if key is not None and key.type == "slice":
                begin = first(key)
                start = text(begin) if begin is not None and begin.type == "integer" else "0"
                return ["u", base, int(start) if start.isdecimal() else 0]
            return ["s", base, self.expr(key, scope, deeper)]
        if kind in ("list", "tuple", "set", "expression_list"):
            items = [each for each in node.named_children if each.type != "comment"]
            return ["l", *self.exprs(items, scope, deeper)]
        if kind == "dictionary":
            pairs = [each for each in node.named_children if each.type == "pair"]
            return ["d", *(self.exprs([part(p, "key"), part(p, "value")], scope, deeper) for p in pairs)]
        if kind in ("list_comprehension", "set_comprehension", "generator_expression"):
            return ["l", self.expr(part(node, "body"), scope, deeper)]
        if kind == "conditional_expression":
            return ["|", *self.exprs([node.named_children[0], node.named_children[-1]], scope, deeper)]
        if kind == "boolean_operator":
            return ["|", *self.exprs(node.named_children, scope, deeper)]
        if kind in ("parenthesized_expression", "type", "await", "named_expression", "list_splat"):
            return self.expr(part(node, "value") or first(node), scope, deeper)
        if kind == "string":
            return self.constant(_content(node))
        if kind == "integer" and len(node.text or b"") < 10 and text(node).isdecimal():
            return ["k", int(text(node))]
        if kind == "unary_operator" and text(node)[1:].isdecimal() and len(node.text or b"") < 10:
            return ["k", -int(text(node)[1:])]
        if kind == "binary_operator" and text(part(node, "operator")) == "|":
            return ["|", *self.exprs(node.named_children, scope, deeper)]
        if kind in ("generic_type", "type_parameter", "union_type", "member_type"):
            return self._type(node, scope, deeper)
        return ["t", _LITERALS[kind]] if kind in _LITERALS else None

    def _type(self, node: Node, scope: int, depth: int) -> Expr:
        """Annotations that the grammar knows by names of their own."""
        parts = self.exprs(node.named_children, scope, depth)
        if node.type == "generic_type" and len(parts) == 2:
            return ["s", parts[0], parts[1]]
        if node.type == "union_type":
            return ["|", *parts]
        return parts[0] if len(parts) == 1 else ["l", *parts]

    def _types_of(self, node: Node) -> Node | None:
        """Types of a name here by the innermost `isinstance`."""
        begin = node.start_byte
        told = [each for each in self._narrowed.get(text(node), ()) if each.begin <= begin < each.end]
        return max(told, key=lambda each: each.begin).types if told else None


def _doc(body: Node) -> str:
    statement = first(body)
    string = first(statement) if statement is not None and statement.type == "expression_statement" else None
    return _content(string).strip().split("\n\n")[0] if string is not None and string.type == "string" else ""


def _content(string: Node) -> str:
    return "".join(text(each) for each in string.named_children if each.type == "string_content")


PythonExtractor.handlers = {
    "decorated_definition": PythonExtractor.decorated,
    "function_definition": PythonExtractor.function,
    "lambda": PythonExtractor.lambda_,
    "class_definition": PythonExtractor.class_,
    "call": PythonExtractor.call,
    "assignment": PythonExtractor.assignment,
    "raise_statement": PythonExtractor.raised,
    "for_statement": PythonExtractor.loop,
    "for_in_clause": PythonExtractor.loop,
    "with_item": PythonExtractor.with_item,
    "named_expression": PythonExtractor.named_expression,
    "return_statement": PythonExtractor.returned,
    "yield": PythonExtractor.returned,
    "global_statement": PythonExtractor.global_,
    "nonlocal_statement": lambda self, node, scope, sometimes: None,
    "import_statement": PythonExtractor.import_,
    "import_from_statement": PythonExtractor.import_,
    "future_import_statement": PythonExtractor.import_,
}
