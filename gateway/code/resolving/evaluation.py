"""The evaluation of an expression: remembered, and bounded in depth and steps."""

from __future__ import annotations

from gateway.code.languages.facts import Expr, Import
from gateway.code.resolving.values import Value, Values
from gateway.code.resolving.view import Modules, View

_DEPTH = 40
_STEPS = 4000  # of one site


class Evaluation:
    """Evaluates expressions; subclasses know what each kind of them is.

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
        """Possible values of an expression at a line of a scope."""
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

    def file_of(self, view: View, each: Import) -> int | None:
        self.lookups.add(each.module.replace("/", ".").rpartition(".")[2])
        if view.python:
            return self.modules.python(view, each.module, each.level)
        return self.modules.script(view, each.module)

    # Implemented by the layers above:

    def _evaluate(self, view: View, scope: int, expr: list[object], line: int) -> Values:
        raise NotImplementedError

    def annotated(self, view: View, scope: int, expr: Expr, line: int, depth: int = 0) -> Values:
        """Instances of what an annotation names."""
        raise NotImplementedError

    def is_class(self, value: Value) -> bool:
        """Whether this is a class of the project."""
        raise NotImplementedError

    def attribute(self, value: Value, name: str) -> Values:
        """Possible values of ``value.name``."""
        raise NotImplementedError

    def returned(self, value: Value) -> Values:
        """Result of calling a value."""
        raise NotImplementedError
