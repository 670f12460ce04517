"""Facts of Python files."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from gateway.code.languages.extractor import DEPTH, text
from gateway.code.languages.facts import CodeSite, Expr, Import, Param
from gateway.code.languages.python_expressions import PythonExpressions

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


class PythonExtractor(PythonExpressions):
    """One Python file."""

    def __init__(self, name: str, root: Node, secrets: Sequence[str] = ()) -> None:
        super().__init__(name, root, secrets)
        self._globals: set[tuple[int, str]] = set()
        self.describe(0, _doc(root))

    def visit(self, node: Node, scope: int, sometimes: bool) -> None:
        kind = node.type
        if kind in _PLAIN:
            return
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node, scope, sometimes)
        else:
            self.push(node.named_children, scope, sometimes or kind in _BRANCHES)

    def decorated(self, node: Node, scope: int, sometimes: bool) -> None:
        inner = node.child_by_field_name("definition")
        if inner is None:
            return
        self.visit(inner, scope, sometimes)
        index = self._definitions.get(inner.id)
        if index is None:
            return
        passed: Expr = ["f", index]
        for decorator in reversed(node.named_children):  # the innermost first
            if decorator.type != "decorator" or not decorator.named_children:
                continue
            callee = decorator.named_children[0]
            site, new = self.site(decorator, "call", callee, scope, self.expr(callee, scope))
            if new:
                self.facts.sites[site].args.append(passed)
                passed = ["c", site]
                self.facts.definitions[index].decorators.append(site)
                called = callee.child_by_field_name("function") if callee.type == "call" else callee
                self.facts.definitions[index].marks.append(self.named(called)[0])
            self.push([callee], scope, sometimes)

    def function(self, node: Node, scope: int, sometimes: bool) -> None:
        self._noted_type_parameters(node)
        body = node.child_by_field_name("body")
        index = self.define(node, "function", text(node.child_by_field_name("name")), scope, body)
        definition = self.facts.definitions[index]
        definition.result = self.expr(node.child_by_field_name("return_type"), scope)
        self._parameters(node.child_by_field_name("parameters"), index, scope, sometimes)
        if body is not None:
            self.describe(index, _doc(body))
            self.push([body], index, False)

    def lambda_(self, node: Node, scope: int, sometimes: bool) -> None:
        known = node.id in self._definitions
        index = self.define(node, "lambda", "<lambda>", scope)
        if known and self.facts.definitions[index].returns:
            return
        body = node.child_by_field_name("body")
        self._parameters(node.child_by_field_name("parameters"), index, scope, sometimes)
        self.facts.definitions[index].returns.append(self.expr(body, index))
        if body is not None:
            self.push([body], index, False)

    def _parameters(self, node: Node | None, index: int, scope: int, sometimes: bool) -> None:
        for each in node.named_children if node is not None else ():
            named = each.child_by_field_name("name") or (each if each.type == "identifier" else None)
            star = {"list_splat_pattern": "*", "dictionary_splat_pattern": "**"}.get(each.type, "")
            if named is None and each.named_children:
                named = each.named_children[0]
                if inner := {"list_splat_pattern": "*", "dictionary_splat_pattern": "**"}.get(named.type):
                    star, named = inner, named.named_children[0] if named.named_children else None
            if named is None or named.type != "identifier":
                continue
            default = each.child_by_field_name("value")
            annotation = each.child_by_field_name("type")
            self.parameter(
                index, Param(text(named), self.expr(annotation, scope), self.expr(default, scope), star)
            )
            if default is not None:
                self._use(default, scope)
                self.push([default], scope, sometimes)

    def _noted_type_parameters(self, node: Node) -> None:
        listed = node.child_by_field_name("type_parameters")
        for each in listed.named_children if listed is not None else ():
            inner = each.named_children[0] if each.named_children else None
            name, *bounds = (
                inner.named_children if inner is not None and inner.type == "constrained_type" else [inner]
            )
            self.type_parameter(name, bounds[0] if bounds else None, node)

    def class_(self, node: Node, scope: int, sometimes: bool) -> None:
        self._noted_type_parameters(node)
        body = node.child_by_field_name("body")
        index = self.define(node, "class", text(node.child_by_field_name("name")), scope, body)
        bases = node.child_by_field_name("superclasses")
        for base in bases.named_children if bases is not None else ():
            if base.type not in ("keyword_argument", "comment"):
                expr = self.expr(base, scope)
                self.facts.definitions[index].bases.append(expr)
                named = base.child_by_field_name("value") if base.type == "subscript" else None
                self.site(base, "base", named or base, scope, expr)
                self.push([base], scope, sometimes)
        if body is not None:
            self.describe(index, _doc(body))
            self.push([body], index, False)

    def call(self, node: Node, scope: int, sometimes: bool) -> None:
        site = self.facts.sites[self.make_call(node, scope, 0)]
        callee = node.child_by_field_name("function")
        if site.name == "update" and site.args[:1] and (site.args[0] or "?")[0] == "d" and callee is not None:
            self._bind(callee.child_by_field_name("object"), site.args[0], scope, True, item=True)
        self.push(node.named_children, scope, sometimes)

    def make_call(self, node: Node, scope: int, depth: int) -> int:
        if node.id in self._sites:
            return self._sites[node.id]
        callee = node.child_by_field_name("function")
        index, _ = self.site(node, "call", callee, scope, None)
        site = self.facts.sites[index]
        site.callee = self.expr(callee, scope, depth + 1)
        arguments = node.child_by_field_name("arguments")
        if arguments is None:
            return index
        if arguments.type != "argument_list":  # a generator expression
            site.args.append(self.expr(arguments, scope, depth + 1))
            return index
        for each in arguments.named_children:
            if each.type == "keyword_argument":
                name = text(each.child_by_field_name("name"))
                site.keywords[name] = self.expr(each.child_by_field_name("value"), scope, depth + 1)
            elif each.type == "dictionary_splat":
                continue
            elif each.type != "comment":
                site.args.append(self.expr(each, scope, depth + 1))
                self._use(each, scope)
        return index

    def _use(self, node: Node | None, scope: int) -> None:
        """Record that a name is handed on or stored, not called."""
        if node is not None and node.type in ("identifier", "attribute"):
            self.site(node, "use", node, scope, self.expr(node, scope))

    def assignment(self, node: Node, scope: int, sometimes: bool) -> None:
        targets, right = [node.child_by_field_name("left")], node.child_by_field_name("right")
        annotation = self.expr(node.child_by_field_name("type"), scope)
        while right is not None and right.type == "assignment":  # a = b = value
            targets.append(right.child_by_field_name("left"))
            right = right.child_by_field_name("right")
        value = self.expr(right, scope)
        self._use(right, scope)
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
            base = self.expr(target.child_by_field_name("object"), scope)
            name = text(target.child_by_field_name("attribute"))
            self.bind(scope, name, value, target, sometimes, base=base, annotation=annotation)
        elif target.type == "subscript":
            base_node, key = target.child_by_field_name("value"), target.child_by_field_name("subscript")
            keyed = self.expr(key, scope)
            made: Expr = ["d", [keyed, value]] if sometimes or item else ["e", keyed, value]
            self._bind(base_node, made, scope, True, depth=depth + 1, item=True)
        elif target.type in ("pattern_list", "tuple_pattern", "list_pattern", "tuple"):
            parts = target.named_children
            star = next((i for i, part in enumerate(parts) if part.type == "list_splat_pattern"), len(parts))
            for index, part in enumerate(parts):
                if part.type == "list_splat_pattern":
                    rest: Expr = ["u", value, index]
                    self._bind(
                        part.named_children[0] if part.named_children else None, rest, scope, sometimes
                    )
                else:
                    place = index if index < star else index - len(parts)
                    self._bind(part, ["s", value, ["k", place]], scope, sometimes, depth=depth + 1)

    def loop(self, node: Node, scope: int, sometimes: bool) -> None:
        iterable = self.expr(node.child_by_field_name("right"), scope)
        if iterable is not None and iterable[0] in "nac":
            began = self._implicit(node, scope, ["a", iterable, "__iter__"])
            self._implicit(node, scope, ["a", ["c", began], "__next__"])
        element: Expr = ["*", iterable]
        self._bind(node.child_by_field_name("left"), element, scope, True)
        self.push(node.named_children, scope, True)

    def raised(self, node: Node, scope: int, sometimes: bool) -> None:
        """`raise Error` calls the class that it names."""
        error = node.named_children[0] if node.named_children else None
        if error is not None and error.type in ("identifier", "attribute"):
            self._implicit(error, scope, self.expr(error, scope))
        self.push(node.named_children, scope, sometimes)

    def _implicit(self, node: Node, scope: int, callee: Expr) -> int:
        assert callee is not None
        row, column = node.start_point
        self.facts.sites.append(CodeSite("implicit", scope, str(callee[-1]), "", callee, row + 1, column))
        return len(self.facts.sites) - 1

    def with_item(self, node: Node, scope: int, sometimes: bool) -> None:
        value = node.child_by_field_name("value")
        if value is not None and value.type == "as_pattern":
            entered = self.expr(value.named_children[0], scope)
            target = value.child_by_field_name("alias")
            self._bind(
                target.named_children[0] if target is not None else None, ["w", entered], scope, sometimes
            )
        self.push(node.named_children, scope, sometimes)

    def named_expression(self, node: Node, scope: int, sometimes: bool) -> None:
        value = self.expr(node.child_by_field_name("value"), scope)
        self._bind(node.child_by_field_name("name"), value, scope, True)
        self.push(node.named_children, scope, sometimes)

    def returned(self, node: Node, scope: int, sometimes: bool) -> None:
        value = node.named_children[0] if node.named_children else None
        definition = self.facts.definitions[scope]
        if value is not None:
            (definition.returns if node.type == "return_statement" else definition.yields).append(
                ["*", self.expr(value, scope)]
                if any(c.type == "from" for c in node.children)
                else self.expr(value, scope)
            )
            self._use(value, scope)
        self.push(node.named_children, scope, sometimes)

    def global_(self, node: Node, scope: int, sometimes: bool) -> None:
        self._globals |= {(scope, text(each)) for each in node.named_children}

    def import_(self, node: Node, scope: int, sometimes: bool) -> None:
        line = node.start_point.row + 1
        module_node = node.child_by_field_name("module_name")
        if node.type == "future_import_statement":
            return
        module, level = text(module_node), 0
        while module.startswith("."):
            module, level = module[1:].lstrip(), level + 1
        for each in node.children_by_field_name("name"):
            named = each.child_by_field_name("name") if each.type == "aliased_import" else each
            name, alias = (
                text(named),
                text(each.child_by_field_name("alias")) if each.type == "aliased_import" else "",
            )
            if module_node is None:  # `import a.b` binds `a`, `import a.b as c` binds `a.b`
                new = Import(scope, name, "", alias or name.split(".")[0], 0, line)
            else:
                new = Import(scope, module, name, alias or name, level, line)
            self._imported(each, new)
        if any(child.type == "wildcard_import" for child in node.named_children):
            self._imported(node, Import(scope, module, "*", "*", level, line))

    def _imported(self, node: Node, new: Import) -> None:
        self.facts.imports.append(new)
        site, _ = self.site(node, "import", None, new.scope, ["m", len(self.facts.imports) - 1])
        self.facts.sites[site].name = (new.name if new.name != "*" else "") or new.module.rpartition(".")[2]
        self.facts.sites[site].receiver = "." * new.level + new.module


def _doc(body: Node) -> str:
    first = body.named_children[0] if body.named_children else None
    if first is None or first.type != "expression_statement" or not first.named_children:
        return ""
    string = first.named_children[0]
    if string.type != "string":
        return ""
    content = "".join(text(each) for each in string.named_children if each.type == "string_content").strip()
    return content.split("\n\n")[0]


_HANDLERS = {
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
