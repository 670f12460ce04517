"""Targets and arguments of calls: the functions behind a value, and what their parameters may be."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.code.languages.facts import CodeSite, Definition, Expr, Param
from gateway.code.resolving.annotations import Annotations, taken
from gateway.code.resolving.values import Value, Values, beyond, merge, through
from gateway.code.resolving.view import NEVER, Modules, View

# Methods of arrays whose functions take an element.
_OF_ELEMENTS = {"forEach", "map", "filter", "find", "findIndex", "some", "every", "flatMap"}

Incoming = Mapping[tuple[int, int], Mapping[str, set[Value]]]  # by file and definition: parameter to values


class Calls(Annotations):
    """Evaluation of parameters. ``incoming`` are the values that the project passes to them."""

    def __init__(self, modules: Modules, incoming: Incoming) -> None:
        super().__init__(modules)
        self._incoming = incoming

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


def pairs(definition: Definition, callee: Value, site: CodeSite) -> list[tuple[Param, Expr]]:
    """The parameters of a function with what a call passes to each."""
    params = [param for param in definition.params if not param.star]
    bound = callee.kind == "bound" and params[:1] and params[0].name in ("self", "cls")
    named = {param.name: param for param in params}
    return [
        *zip(params[1:] if bound else params, site.args, strict=False),
        *((named[name], expr) for name, expr in site.keywords.items() if name in named),
    ]
