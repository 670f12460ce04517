"""Values of annotations: instances of classes, and containers of them."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.code.languages.facts import Expr
from gateway.code.resolving.containers import Containers
from gateway.code.resolving.values import Value, Values, external, merge, one_of, through
from gateway.code.resolving.view import NEVER, View

_OPTIONAL = {"Optional", "Union", "Annotated", "Final", "ClassVar", "Awaitable", "Required", "NotRequired"}
_SEQUENCES = {
    "list", "List", "set", "Set", "frozenset", "tuple", "Tuple", "Sequence", "Iterable", "Iterator", "Collection",
    "Generator", "AsyncIterator", "AsyncIterable", "deque", "Array", "ReadonlyArray", "Promise",
}  # fmt: skip
_MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict", "Record", "Map"}
_SELF = {"typing.Self", "typing_extensions.Self"}


class Annotations(Containers):
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
