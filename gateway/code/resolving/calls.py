"""Annotations, calls and parameters: their values, the functions behind a value, and the results of foreign ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.code.languages.facts import CodeSite, Definition, Expr, Param
from gateway.code.resolving.evaluation import Evaluation, pairs_of
from gateway.code.resolving.values import Value, Values, beyond, external, merge, merged, one_of, through
from gateway.code.resolving.view import NEVER, Modules, View

_OPTIONAL = {"Optional", "Union", "Annotated", "Final", "ClassVar", "Awaitable", "Required", "NotRequired"}
_SEQUENCES = {
    "list", "List", "set", "Set", "frozenset", "tuple", "Tuple", "Sequence", "Iterable", "Iterator", "Collection",
    "Generator", "AsyncIterator", "AsyncIterable", "deque", "Array", "ReadonlyArray", "Promise",
}  # fmt: skip
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict", "Record", "Map"}
_SELF = {"typing.Self", "typing_extensions.Self"}
# Methods of arrays whose functions take an element.
_OF_ELEMENTS = {"forEach", "map", "filter", "find", "findIndex", "some", "every", "flatMap"}

Incoming = Mapping[tuple[int, int], Mapping[str, set[Value]]]  # by file and definition: parameter to values
_BUILTIN = "<builtin>."
_SAME = {"functools.partial", "copy.copy", "copy.deepcopy", "dataclasses.replace", "asyncio.run"}
_SAME_ITEMS = {"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"}
_TYPE_VARIABLES = {"typing.TypeVar", "typing_extensions.TypeVar"}


class Calls(Evaluation):
    """Evaluation of annotations, calls and parameters. ``incoming`` are the values that the project passes to these."""

    def __init__(self, modules: Modules, incoming: Incoming) -> None:
        super().__init__(modules)
        self._incoming = incoming

    # Annotations

    def annotated(self, view: View, scope: int, expr: Expr, line: int, depth: int = 0) -> Values:
        """Instances of what an annotation names."""
        if expr is None or depth > 8:
            return {}
        found: Values = {}
        if expr[0] == "k" and isinstance(expr[1], str):  # a name in quotes
            parts = expr[1].split(" | ")[0].split("[")[0].split(".")
            inner: Expr = ["n", parts[0]]
            for part in parts[1:]:
                inner = ["a", inner, part]
            return self.annotated(view, scope, inner, line, depth + 1) if expr[1].isprintable() else {}
        if expr[0] == "|":
            return one_of(self.annotated(view, scope, each, line, depth + 1) for each in expr[1:])
        if expr[0] == "d":  # `{ shop: Shop }`
            return {self.box(view, scope, expr, typed=True): "type"}
        if expr[0] == "s":
            base, inner = expr[1], expr[2]
            name = base[-1] if base is not None and base[0] in "na" else ""
            if name in _OPTIONAL:
                choices = inner[1:] if inner is not None and inner[0] == "l" and name == "Union" else [inner]
                if inner is not None and inner[0] == "l" and name == "Annotated":
                    choices = [inner[1]]
                return self.annotated(view, scope, ["|", *choices], line, depth + 1)
            if name == "Promise":
                return self.annotated(view, scope, inner, line, depth + 1)
            if name in ("tuple", "Tuple") and inner is not None and inner[0] == "l" and None not in inner:
                return {self.box(view, scope, inner, typed=True, keep=expr): "type"}
            if name in _SEQUENCES:
                items = inner[1:2] if inner is not None and inner[0] == "l" else [inner]
                return {self.box(view, scope, ["l", *items], typed=True, keep=expr): "type"}
            if name in _MAPPINGS and inner is not None and inner[0] == "l" and len(inner) > 2:
                return {self.box(view, scope, ["d", [inner[1], inner[2]]], typed=True, keep=expr): "type"}
            if name in ("type", "Type"):
                return through(self.evaluate(view, scope, inner, line), "type")
            expr = base
        for value, origin in self.evaluate(view, scope, expr, NEVER).items():
            if self.is_class(value):
                merge(found, through({Value("instance", value.file, value.at): "type"}, origin))
            elif value.kind == "box" and not view.python:  # `type Props = { shop: Shop }`
                found[self.of_types(value)] = "type"
            elif value.text in _SELF:
                merge(found, self._instance_around(view, scope))
            elif value.kind == "external":
                found[external(f"{value.text}()")] = "type"
        return found

    def _instance_around(self, view: View, scope: int) -> Values:
        while scope > 0 and view.definitions[scope].kind != "class":
            scope = view.definitions[scope].parent
        return {Value("instance", view.id, scope): "type"} if scope > 0 else {}

    # Calls and parameters

    def definition(self, value: Value) -> Definition:
        return self.modules.view(value.file).definitions[value.at]

    def is_class(self, value: Value) -> bool:
        return value.kind == "definition" and self.definition(value).kind == "class"

    def constructor(self, value: Value) -> list[Value]:
        """The method of the project that runs when this class, or that above, is called."""
        name = "__init__" if self.modules.view(value.file).python else "constructor"
        made = value if value.kind == "super" else Value("instance", value.file, value.at)
        return [each for each in self.attribute(made, name) if each.kind == "bound"]

    def callees(self, value: Value) -> list[Value]:
        """The functions that calling a value runs."""
        if value.kind == "definition" and self.definition(value).kind == "class":
            return self.constructor(value)
        if value.kind == "instance":
            return [each for each in self.attribute(value, "__call__") if each.kind == "bound"]
        return [value] if value.kind in ("definition", "bound") else []

    def parameter(self, view: View, scope: int, param: Param) -> Values:
        """Possible values of a parameter: ``self``, its annotation, its default, and the project's arguments."""
        definition = view.definitions[scope]
        parent = view.definitions[definition.parent]
        if (
            view.python
            and parent.kind == "class"
            and param is definition.params[0]
            and definition.kind == "function"
            and "staticmethod" not in definition.marks
        ):
            of_class = "classmethod" in definition.marks or definition.name in (
                "__new__",
                "__init_subclass__",
                "__class_getitem__",
            )
            return {Value("definition" if of_class else "instance", view.id, definition.parent): "self"}
        if param.star:
            return {}
        found = self.annotated(view, definition.parent, param.annotation, definition.line)
        if found:
            return found
        found = self._expected(view, scope, param)
        for value in self._incoming.get((view.id, scope), {}).get(param.name, ()):
            found.setdefault(value, "flow")
        merge(found, through(self.evaluate(view, definition.parent, param.default, definition.line), "flow"))
        return found

    def _expected(self, view: View, scope: int, param: Param) -> Values:
        """Values of a parameter by the call that takes its function: `Callable[[Shop], …]`, `shops.map(…)`."""
        index = view.taken_by.get(scope)
        site = view.site(index) if index is not None else None
        if site is None or site.callee is None:
            return {}
        found: Values = {}
        at = view.definitions[scope].params.index(param)
        if site.callee[0] == "a" and site.callee[2] in _OF_ELEMENTS and not view.python and not at:
            found = beyond(self.evaluate(view, site.scope, site.callee[1], site.line), self.elements)
        for value, origin in self.evaluate(view, site.scope, site.callee, site.line).items():
            for callee in self.callees(value):
                taker = self.definition(callee)
                for each, arg in pairs(taker, callee, site):
                    if arg is not None and arg[:2] == ["f", scope]:
                        home = self.modules.view(callee.file)
                        for types in taken(each.annotation):
                            expr = types[at] if at < len(types) else None
                            merge(found, through(self.annotated(home, taker.parent, expr, NEVER), origin))
        return found

    # Results of what is outside of the project

    def builtin(self, view: View, index: int, text: str) -> Values:
        """Result of the call at a site; ``text`` is the dotted name of what it calls."""
        site = view.site(index)
        if text in _TYPE_VARIABLES:
            return self._type_variable(view, site)
        if text in ("typing.cast", "typing_extensions.cast") and site.args:
            return self.annotated(view, site.scope, site.args[0], site.line)
        if text in _SAME:
            return self._argument(view, site, 0)
        if text.startswith("<dict>.") or text == "<list>.pop":
            return self._of_container(view, site, text.partition(".")[2]) or _outside(text)
        if text.startswith(_BUILTIN):
            return self._builtin(view, index, text.removeprefix(_BUILTIN))
        return _outside(text)

    def _builtin(self, view: View, index: int, name: str) -> Values:
        site = view.site(index)
        if name == "super":
            owner = view.enclosing_class(site.scope)
            return {Value("super", view.id, owner): "self"} if owner is not None else {}
        if name in _SAME_ITEMS:
            return self._argument(view, site, 0)
        if name == "filter":
            return self._argument(view, site, 1)
        found: Values = {}
        if name == "next" or (name in ("min", "max") and len(site.args) == 1):
            found = beyond(self._argument(view, site, 0), self.elements)
        elif name in ("enumerate", "zip") and site.args:
            for at in range(len(site.args)):
                self._argument(view, site, at)  # as it is at this line: it is kept for the box
            counted: list[Expr] = [None] if name == "enumerate" else []
            item = ["l", *counted, *(["*", each] for each in site.args)]
            found = {self.box(view, site.scope, ["l", item]): "same file"}
        elif name == "getattr" and len(site.args) > 1:
            key = site.args[1]
            if key is not None and key[0] == "k":
                found = merged(self.attribute(each, str(key[1])) for each in self._argument(view, site, 0))
        elif name == "type" and len(site.args) == 1:
            values = self._argument(view, site, 0)
            found = {Value("definition", v.file, v.at): "type" for v in values if v.kind == "instance"}
        elif name == "map":
            found = {self.box(view, site.scope, ["l", ["c", index]]): "flow"}
        else:
            found = _outside(f"{_BUILTIN}{name}")
        return found

    def _argument(self, view: View, site: CodeSite, at: int) -> Values:
        return self.evaluate(view, site.scope, site.args[at], site.line) if len(site.args) > at else {}

    def _of_container(self, view: View, site: CodeSite, name: str) -> Values:
        """Result of a container's method."""
        if site.callee is None or site.callee[0] != "a":
            return {}
        values = self.evaluate(view, site.scope, site.callee[1], site.line)
        return beyond(
            values, lambda each: self._result_of(view, site, each, name) if each.kind == "box" else {}
        )

    def _result_of(self, view: View, site: CodeSite, box: Value, name: str) -> Values:
        home, scope, expr, typed = self.opened(box)
        if expr is None or expr[0] not in "de":
            return self.elements(box) if name == "pop" else {}
        pairs = pairs_of(expr)
        if name in ("get", "pop", "setdefault"):
            found = self.item(view, site.scope, box, site.args[0] if site.args else None, site.line)
            return one_of([found, self._argument(view, site, 1)])
        if name == "items":
            of = [["s", ["n", "tuple"], ["l", *pair]] if typed else ["l", *pair] for pair in pairs]
            return {self.box(home, scope, ["l", *of], typed=typed): "same file"}
        if name in ("keys", "values"):
            of = [pair[name == "values"] for pair in pairs]  # type: ignore[misc]
            return {self.box(home, scope, ["l", *of], typed=typed): "same file"}
        return {}

    def _type_variable(self, view: View, site: CodeSite) -> Values:
        """The bound of a type variable, or its constraints; nothing without either."""
        bounds = [site.keywords["bound"]] if "bound" in site.keywords else site.args[1:]
        return one_of(
            {Value("definition", value.file, value.at): origin}
            for each in bounds
            for value, origin in self.annotated(view, site.scope, each, site.line).items()
            if value.kind == "instance"
        )


def taken(annotation: Expr, depth: int = 0) -> Iterator[list[Expr]]:
    """The types of the parameters of each `Callable` in an annotation."""
    if annotation is None or depth > 4:
        return
    if annotation[0] == "|":
        for each in annotation[1:]:
            yield from taken(each, depth + 1)
    elif annotation[0] == "s" and annotation[1] is not None and annotation[1][-1] in ("Callable", "Optional"):
        inner = annotation[2]
        if annotation[1][-1] == "Optional":
            yield from taken(inner, depth + 1)
        elif inner is not None and inner[0] == "l" and len(inner) > 1 and inner[1] and inner[1][0] == "l":
            yield inner[1][1:]


def pairs(definition: Definition, callee: Value, site: CodeSite) -> list[tuple[Param, Expr]]:
    """The parameters of a function with what a call passes to each."""
    params = [param for param in definition.params if not param.star]
    bound = callee.kind == "bound" and params[:1] and params[0].name in ("self", "cls")
    named = {param.name: param for param in params}
    return [
        *zip(params[1:] if bound else params, site.args, strict=False),
        *((named[name], expr) for name, expr in site.keywords.items() if name in named),
    ]


def _outside(text: str) -> Values:
    return {external(f"{text}()"): "return"}
