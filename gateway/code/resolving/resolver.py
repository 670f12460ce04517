"""Resolve expressions: names by scope, attributes by class and module, results of calls.

The evaluation is demand-driven: it follows a name to its bindings, those to other names, over all files. What is
not known when it stops, at a circle or far from its start, is unresolved.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.code.languages.facts import Binding, Import, Param
from gateway.code.resolving.calls import Calls, Incoming
from gateway.code.resolving.values import (
    BUILTINS,
    SCRIPT_GLOBALS,
    Value,
    Values,
    beyond,
    external,
    merge,
    merged,
    one_of,
    through,
)
from gateway.code.resolving.view import NEVER, Candidate, Modules, View

_PROPERTIES = {"property", "cached_property", "classproperty", "get"}


class Resolver(Calls):
    """Evaluates names, attributes and calls."""

    def __init__(self, modules: Modules, incoming: Incoming) -> None:
        super().__init__(modules, incoming)
        self._orders: dict[Value, list[Value]] = {}

    def begin_file(self) -> None:
        super().begin_file()
        self._orders.clear()

    def _evaluate(self, view: View, scope: int, expr: list[object], line: int) -> Values:
        kind, first = expr[0], expr[1] if len(expr) > 1 else None
        found: Values = {}
        if kind == "n":
            return self.name(view, scope, str(first), line)
        if kind == "c":
            return self.result(view, int(str(first)))
        if kind == "f":
            return {Value("definition", view.id, int(str(first))): "same file"}
        if kind == "m":
            return self.imported(view, view.imports[int(str(first))], whole=True)
        if kind == "t":
            return {external(f"<{first}>"): "same file"}
        if kind == "k":
            return {external(f"<{'str' if isinstance(first, str) else 'int'}>"): "same file"}
        if kind == "y":
            return self.annotated(view, scope, first, line)  # type: ignore[arg-type]
        if kind in ("l", "d", "e"):
            return {self.box(view, scope, expr): "same file"}
        if kind == "|":
            return one_of(self.evaluate(view, scope, each, line) for each in expr[1:])  # type: ignore[arg-type]
        if kind == "a" and not view.python and isinstance(first, list) and first[0] == "n":
            found = self.assigned(view, scope, str(first[1]), str(expr[2]))
            if found:
                return found
        bases = self.evaluate(view, scope, first, line)  # type: ignore[arg-type]
        for value, origin in bases.items():
            if kind == "a":
                more = self.attribute(value, str(expr[2]))
            elif kind == "s":
                if self.is_set(view, scope, value, expr[2], line):  # type: ignore[arg-type]
                    found = {}  # the item was another before
                more = self.item(view, scope, value, expr[2], line)  # type: ignore[arg-type]
            elif kind == "u":
                more = {self.box(view, scope, expr): "same file"}
            elif kind == "*":
                more = self.elements(value)
            else:  # what `with` enters
                more = self.entered(value)
            merge(found, through(more, origin))
        return found

    # Names

    def name(self, view: View, scope: int, name: str, line: int) -> Values:
        """Value of a name in a scope, by the rules of the language."""
        if not view.python and name in ("this", "super"):
            owner = view.enclosing_class(scope)
            kind = "instance" if name == "this" else "super"
            return {Value(kind, view.id, owner): "self"} if owner is not None else {}  # type: ignore[arg-type]
        at, start = scope, scope
        while at >= 0:
            if at == start or view.definitions[at].kind != "class":
                # When an inner scope runs, the outer one has its final values.
                candidates = view.candidates(at, name, line if at == start else NEVER)
                if candidates:
                    return self._candidates(view, at, candidates)
            at = view.definitions[at].parent
        for star in view.stars:
            file = self.file_of(view, star)
            if file is not None and (found := self.member(file, name)):
                return through(found, "import")
        if name in (BUILTINS if view.python else SCRIPT_GLOBALS):
            return {external(f"<builtin>.{name}"): "same file"}
        return {}

    def assigned(self, view: View, scope: int, owner: str, name: str) -> Values:
        """Assignments of a JavaScript file to ``owner.name`` or to the prototype of ``owner``.

        `this` in a function that was assigned so is the owner.
        """
        if owner == "this":
            while scope >= 0 and not (owner := _owner(view, scope)):
                if view.definitions[scope].kind == "class":
                    return {}
                scope = view.definitions[scope].parent
        if not owner or name not in view.attributes:
            return {}
        home, bases = view.home(scope, owner), (["n", owner], ["a", ["n", owner], "prototype"])
        return merged(
            self._bound(view, binding)
            for binding in view.attributes[name]
            if binding.base in bases and view.home(binding.scope, owner) == home
        )

    def _candidates(self, view: View, scope: int, candidates: list[Candidate]) -> Values:
        found = [self._meant(view, scope, what) for _, _, what in candidates]
        return found[0] if len(found) == 1 else one_of(found)

    def _meant(self, view: View, scope: int, what: int | Binding | Import | Param) -> Values:
        if isinstance(what, int):
            return self._defined(view, what)
        if isinstance(what, Param):
            return self.parameter(view, scope, what)
        return self.imported(view, what) if isinstance(what, Import) else self._bound(view, what)

    def _defined(self, view: View, index: int) -> Values:
        found: Values = {Value("definition", view.id, index): "same file"}
        for site in view.definitions[index].decorators[-1:]:  # what the name is after decoration
            for value in self.result(view, site):
                if value.kind == "definition":
                    merge(found, {value: "flow"})
        return found

    def _bound(self, view: View, binding: Binding) -> Values:
        found = self.annotated(view, binding.scope, binding.annotation, binding.line)
        if not found:
            value = self.evaluate(view, binding.scope, binding.value, binding.line)
            found = value if _is_alias(value) else through(value, "assignment")
        return found

    # Modules

    def imported(self, view: View, each: Import, *, whole: bool = False) -> Values:
        """Value that an import binds; with ``whole`` the module that `import a.b` names, and not `a`."""
        if each.name in ("", "*"):
            module = each.module
            if not whole and view.python and each.name == "" and each.alias == module.partition(".")[0]:
                module = each.alias
            file = self.file_of(view, Import(0, module, "", "", each.level, 0))
            return {Value("definition", file): "import"} if file is not None else {external(module): "import"}
        file = self.file_of(view, each)
        if file is not None and (found := self.member(file, each.name)):
            return through(found, "import")
        if view.python:
            self.lookups.add(each.name)
            submodule = f"{each.module}.{each.name}" if each.module else each.name
            inner = self.modules.python(view, submodule, each.level)
            if inner is not None:
                return {Value("definition", inner): "import"}
        if file is not None or each.level or each.module.startswith("."):
            return {}  # of the project, but not found there
        return {external(f"{each.module}.{each.name}"): "import"}

    def member(self, file: int, name: str) -> Values:
        """Value of a name in the outermost scope of a file."""
        self.lookups.add(name)
        view = self.modules.view(file)
        if candidates := view.candidates(0, name):
            key = (file, hash(("member", name)))
            if key in self._active:
                self._cuts += 1
                return {}
            self._active.add(key)
            try:
                return self._candidates(view, 0, candidates)
            finally:
                self._active.discard(key)
        for star in view.stars:
            key = (file, hash(("star", star.module, name)))
            inner = self.file_of(view, star)
            if inner is None or inner == file or key in self._active:
                continue
            self._active.add(key)
            try:
                found = self.member(inner, name)
            finally:
                self._active.discard(key)
            if found:
                return found
        for _, _, what in (
            () if view.python else view.candidates(0, "default")
        ):  # module.exports = app; app.x = …
            if isinstance(what, Binding) and what.value is not None and what.value[0] == "n":
                return self.assigned(view, 0, what.value[1], name)
        if view.python and view.path.endswith("__init__.py"):
            inner = self.modules.python(view, name, 1)
            if inner is not None:
                return {Value("definition", inner): "import"}
        return {}

    # Attributes

    def attribute(self, value: Value, name: str) -> Values:
        """Possible values of ``value.name``."""
        if value.kind == "external":
            return {external(f"{value.text}.{name}"): "import"}
        if value.kind == "box":
            view, scope, expr, _ = self.opened(value)
            if not view.python and expr is not None and expr[0] in "de":
                return self.item(view, scope, value, ["k", name], NEVER)
            shown = "dict" if expr is not None and expr[0] in "de" else "list"
            return {external(f"<{shown}>.{name}"): "same file"}
        if value.kind == "bound":
            return {}
        definition = self.definition(value)
        if definition.kind == "module":
            return self.member(value.file, name)
        if definition.kind == "class":
            if name == "__class__" and value.kind == "instance":
                return {Value("definition", value.file, value.at): "type"}
            return self._class_attribute(value, name)
        view = self.modules.view(value.file)
        return {} if view.python else self.assigned(view, definition.parent, definition.name, name)

    def order(self, value: Value) -> list[Value]:
        """The class of a value and its bases in the order in which they are searched."""
        owner = Value("definition", value.file, value.at)
        line = self._orders.get(owner)
        if line is None:
            cuts = self._cuts
            line = linearize(owner, self.bases)
            if cuts == self._cuts:
                self._orders[owner] = line
        return line[1:] if value.kind == "super" else line

    def bases(self, value: Value) -> list[Value]:
        if value.kind == "external":
            return []
        view, definition = self.modules.view(value.file), self.definition(value)
        found = []
        for base in definition.bases:
            values = self.evaluate(view, definition.parent, base, definition.line)
            if not values and base is not None and base[0] == "s":  # `Generic[T]` of another package
                values = self.evaluate(view, definition.parent, base[1], definition.line)
            classes = [each for each in values if each.kind == "external" or self.is_class(each)]
            found.append(classes[0] if classes else external("?"))
        return found

    def _class_attribute(self, value: Value, name: str) -> Values:
        self.lookups.add(name)
        origin = "type" if value.kind == "instance" else "import"
        for each in self.order(value):
            if each.kind == "external":
                # Its members are not known: it may define the name.
                return {external(f"{each.text}.{name}"): "import"} if each.text != "?" else {}
            view = self.modules.view(each.file)
            found = self._own_attribute(view, each.at, value, name)
            if found:
                return through(found, origin) if value.file != each.file else found
        return {}

    def _own_attribute(self, view: View, index: int, value: Value, name: str) -> Values:
        found: Values = {}
        for _, _, what in view.candidates(index, name):
            if isinstance(what, int):
                merge(found, self._method(view, what, value))
            elif not isinstance(what, Param):
                merge(found, self._meant(view, index, what))
        for binding in view.attributes.get(name, ()):
            owners = self.evaluate(view, binding.scope, binding.base, binding.line)
            if any(each.file == view.id and each.at == index and each.kind != "external" for each in owners):
                merge(found, self._bound(view, binding))
        return found

    def _method(self, view: View, index: int, value: Value) -> Values:
        definition = view.definitions[index]
        if definition.kind == "class" or "staticmethod" in definition.marks:
            return {Value("definition", view.id, index): "self"}
        if value.kind != "definition" and _PROPERTIES & {*definition.marks}:
            return through(self.returned(Value("bound", view.id, index)), "return")
        bound = value.kind != "definition" or "classmethod" in definition.marks
        found: Values = {Value("bound" if bound else "definition", view.id, index): "self"}
        if definition.marks:
            merge(found, {each: "flow" for each in self._defined(view, index) if each.at != index})
        return found

    # Calls

    def result(self, view: View, index: int) -> Values:
        """Result of the call at a site."""
        site = view.site(index)

        def called(value: Value) -> Values:
            outside = value.kind == "external"
            return self.builtin(view, index, value.text) if outside else self.returned(value)

        return beyond(self.evaluate(view, site.scope, site.callee, site.line), called)

    def returned(self, value: Value) -> Values:
        """Result of calling a value."""
        if value.kind == "instance":
            called = self._class_attribute(value, "__call__")
            return merged(self.returned(each) for each in called if each.kind == "bound")
        if value.kind not in ("definition", "bound"):
            return {}
        view, definition = self.modules.view(value.file), self.definition(value)
        if definition.kind == "class":
            return {Value("instance", value.file, value.at): "assignment"}
        if definition.kind == "module":
            return {}
        found = self.annotated(view, definition.parent, definition.result, definition.line)
        if not found and definition.name in view.prototypes:
            return {Value("instance", value.file, value.at): "assignment"}
        if found:
            return found
        if definition.yields:
            return {self.box(view, value.at, ["l", ["|", *definition.yields]], keep=definition): "return"}
        found = merged(self.evaluate(view, value.at, result, NEVER) for result in definition.returns)
        return through(found, "return" if len(found) == 1 else "flow")

    def entered(self, value: Value) -> Values:
        """Value that ``with value as x`` binds: the result of ``__enter__``, or what a decorated generator yields."""
        if value.kind == "box":
            return self.elements(value)
        for name in ("__enter__", "__aenter__"):
            if value.kind == "instance" and (found := self._class_attribute(value, name)):
                return merged(map(self.returned, found)) or {value: "type"}
        return {value: "return"}


def _owner(view: View, scope: int) -> str:
    """`app` for the function of `app.handle = function`."""
    name = view.definitions[scope].name
    if name in view.prototypes:
        return name
    return name.partition(".")[0] if name[:1] not in ("[", '"', "'") and "." in name else ""


def _is_alias(values: Values) -> bool:
    """Whether a name bound to these values is just another name of one definition."""
    return len(values) == 1 and next(iter(values)).kind == "definition"


_LONGEST = 60


def linearize(start: Value, bases: Callable[[Value], list[Value]]) -> list[Value]:
    """A class and its bases in Python's order (C3); depth first where the bases allow none."""
    try:
        return _linear(start, bases, ())
    except ValueError:
        found: list[Value] = []
        waiting = [start]
        while waiting and len(found) < _LONGEST:
            each = waiting.pop(0)
            if each not in found:
                found.append(each)
                waiting = bases(each) + waiting
        return found


def _linear(value: Value, bases: Callable[[Value], list[Value]], above: tuple[Value, ...]) -> list[Value]:
    if value in above or len(above) > _LONGEST:
        raise ValueError("a circle of bases")
    parents = bases(value)
    lines = [_linear(each, bases, (*above, value)) for each in parents] + [list(parents)]
    merged = [value]
    while any(lines):
        head = next(
            (line[0] for line in lines if line and not any(line[0] in other[1:] for other in lines)), None
        )
        if head is None or len(merged) > _LONGEST:
            raise ValueError("no consistent order")
        merged.append(head)
        lines = [line[1:] if line and line[0] == head else line for line in lines]
    return merged
