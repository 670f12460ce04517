"""Results of calls of Python's built-in functions and containers."""

from __future__ import annotations

from gateway.code.languages.facts import CodeSite, Expr
from gateway.code.resolving.calls import Calls
from gateway.code.resolving.containers import pairs_of
from gateway.code.resolving.values import Value, Values, beyond, external, merged, one_of
from gateway.code.resolving.view import View

_BUILTIN = "<builtin>."
_SAME = {"functools.partial", "copy.copy", "copy.deepcopy", "dataclasses.replace", "asyncio.run"}
_SAME_ITEMS = {"list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"}
_TYPE_VARIABLES = {"typing.TypeVar", "typing_extensions.TypeVar"}


class Builtins(Calls):
    """Evaluation of calls that lead out of the project."""

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


def _outside(text: str) -> Values:
    return {external(f"{text}()"): "return"}
