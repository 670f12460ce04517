"""The evaluation of an expression: remembered, and bounded in depth and steps."""

from __future__ import annotations

from gateway.code.languages.facts import Expr, Import
from gateway.code.resolving.values import Value, Values, external, merge, through
from gateway.code.resolving.view import Modules, View

_DEPTH = 40
_STEPS = 4000  # of one site


class Evaluation:
    """Evaluates expressions; subclasses know what names, calls and containers are.

    ``lookups`` collects the names that were asked of other files.
    """

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.lookups: set[str] = set()
        # By the identity of expressions, which they keep alive.
        self._memo: dict[int, tuple[Expr, Values]] = {}
        self._known_boxes: dict[int, tuple[object, Value]] = {}
        self._boxes: list[tuple[int, int, Expr, bool]] = []  # file, scope, expression, whether a type
        self._active: set[tuple[int, int]] = set()
        self._cuts = self._steps = 0

    def begin_file(self) -> None:
        """Forget everything: what is looked up for a file must be known, and memory is bounded."""
        self.lookups = set()
        self._memo.clear()
        self._known_boxes.clear()
        self._boxes.clear()

    def begin(self) -> None:
        """Reset the budget before a site."""
        self._steps = 0

    def evaluate(self, view: View, scope: int, expr: Expr, line: int) -> Values:
        """What an expression may be at a line of a scope."""
        if expr is None:
            return {}
        known = self._memo.get(id(expr))
        if known is not None:
            return known[1]
        key = (view.id, id(expr))
        self._steps += 1
        if key in self._active or len(self._active) > _DEPTH or self._steps > _STEPS:
            self._cuts += 1
            return {}
        cuts = self._cuts
        self._active.add(key)
        try:
            found = self._evaluate(view, scope, expr, line)
        finally:
            self._active.discard(key)
        if cuts == self._cuts:
            self._memo[id(expr)] = expr, found
        return found

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
            for each in expr[1:]:
                merge(found, self.evaluate(view, scope, each, line))  # type: ignore[arg-type]
            return found if len(found) == 1 else through(found, "flow")
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

    def file_of(self, view: View, each: Import) -> int | None:
        self.lookups.add(each.module.replace("/", ".").rpartition(".")[2])
        if view.python:
            return self.modules.python(view, each.module, each.level)
        return self.modules.script(view, each.module)

    def name(self, view: View, scope: int, name: str, line: int) -> Values:
        """What a name means in a scope, by the rules of the language."""
        raise NotImplementedError

    def assigned(self, view: View, scope: int, owner: str, name: str) -> Values:
        """What a JavaScript file assigns to ``owner.name``."""
        raise NotImplementedError

    def imported(self, view: View, each: Import, *, whole: bool = False) -> Values:
        """What an import binds; with ``whole`` the module that `import a.b` names, and not `a`."""
        raise NotImplementedError

    def annotated(self, view: View, scope: int, expr: Expr, line: int, depth: int = 0) -> Values:
        """Instances of what an annotation names."""
        raise NotImplementedError

    def result(self, view: View, index: int) -> Values:
        """What the call at a site returns."""
        raise NotImplementedError

    def returned(self, value: Value) -> Values:
        """What calling a value returns."""
        raise NotImplementedError

    def attribute(self, value: Value, name: str) -> Values:
        """What ``value.name`` may be."""
        raise NotImplementedError

    def elements(self, value: Value) -> Values:
        """What iterating over a value gives."""
        raise NotImplementedError

    def item(self, view: View, scope: int, value: Value, key: Expr, line: int) -> Values:
        """What ``value[key]`` may be."""
        raise NotImplementedError

    def is_set(self, view: View, scope: int, value: Value, key: Expr, line: int) -> bool:
        """Whether ``value`` is what an assignment to ``value[key]`` says."""
        raise NotImplementedError

    def entered(self, value: Value) -> Values:
        """What ``with value as x`` binds."""
        raise NotImplementedError

    def box(
        self, view: View, scope: int, expr: list[object], *, typed: bool = False, keep: object = None
    ) -> Value:
        """The container that an expression makes; ``keep`` identifies it instead of the expression."""
        raise NotImplementedError
