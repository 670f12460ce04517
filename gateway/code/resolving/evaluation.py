"""The evaluation of expressions, remembered and bounded in depth and steps; and of what is put into containers."""

from __future__ import annotations

from typing import Any

from gateway.code.languages.facts import Binding, Expr, Import
from gateway.code.resolving.values import Value, Values, merged, one_of
from gateway.code.resolving.view import NEVER, Modules, View

_DEPTH = 40
_STEPS = 4000  # of one site


class Evaluation:
    """Evaluates expressions and the contents of containers; subclasses know what each kind of expression is.

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

    # Implemented by subclasses

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

    # Containers

    def box(
        self, view: View, scope: int, expr: list[object], *, typed: bool = False, keep: object = None
    ) -> Value:
        """The container that an expression makes; ``keep`` identifies it instead of the expression."""
        key = keep if keep is not None else expr
        if id(key) in self._known_boxes:
            return self._known_boxes[id(key)][1]
        self._boxes.append((view.id, scope, expr, typed))
        made = Value("box", view.id, len(self._boxes) - 1)
        self._known_boxes[id(key)] = key, made
        return made

    def opened(self, box: Value) -> tuple[View, int, Expr, bool]:
        file, scope, expr, typed = self._boxes[box.at]
        return self.modules.view(file), scope, expr, typed

    def of_types(self, box: Value) -> Value:
        """The container whose items are of the types that are in this one."""
        made = self._boxes[box.at]
        file, scope, expr, typed = made
        return (
            box
            if typed or expr is None
            else self.box(self.modules.view(file), scope, expr, typed=True, keep=made)
        )

    def elements(self, value: Value) -> Values:
        """Items of an iterable value."""
        if value.kind == "box":
            view, scope, expr, typed = self.opened(value)
            assert expr is not None
            if expr[0] == "u":
                bases = self.evaluate(view, scope, expr[1], NEVER)
                return merged(self._from(base, int(expr[2])) for base in bases)
            items = [pair[0] for pair in pairs_of(expr)] if expr[0] in "de" else expr[1:]
            return one_of(self._content(view, scope, each, typed) for each in items)
        if value.kind != "instance":
            return {}
        return merged(
            self.elements(result) if result.kind == "box" else {result: "flow"}
            for each in self.attribute(value, "__next__") or self.attribute(value, "__iter__")
            for result in self.returned(each)
        )

    def _from(self, value: Value, start: int) -> Values:
        if value.kind != "box":
            return self.elements(value)
        view, scope, expr, typed = self.opened(value)
        if expr is None or expr[0] != "l":
            return {}
        return merged(self._content(view, scope, each, typed) for each in expr[1 + start :])

    def _content(self, view: View, scope: int, expr: Expr, typed: bool) -> Values:
        if typed:
            return self.annotated(view, scope, expr, NEVER)
        return self.evaluate(view, scope, expr, NEVER)

    def item(self, view: View, scope: int, value: Value, key: Expr, line: int) -> Values:
        """Possible values of ``value[key]``."""
        if value.kind == "instance":
            return merged(map(self.returned, self.attribute(value, "__getitem__")))
        if self.is_class(value):
            return {value: "same file"}  # `Shop[str]` is a `Shop`
        if value.kind != "box":
            return {}
        home, home_scope, expr, typed = self.opened(value)
        assert expr is not None
        wanted = self._constant(view, scope, key, line)
        if expr[0] == "u":
            if not isinstance(wanted, int) or wanted < 0:
                return self.elements(value)
            return self._of_rest(home, home_scope, expr, wanted)
        if expr[0] in "de":
            of_types = typed and home.python  # their keys are types; those of TypeScript's objects are names
            pairs = [
                (self._constant(home, home_scope, pair[0], NEVER) if not of_types else None, pair[1])
                for pair in pairs_of(expr)
            ]
            chosen = [item for each, item in pairs if each is None or wanted is None or each == wanted]
        elif isinstance(wanted, int) and len(expr) > 2:
            chosen = [expr[1:][wanted]] if -len(expr) + 1 <= wanted < len(expr) - 1 else []
        else:
            chosen = expr[1:]
        return one_of(self._content(home, home_scope, content, typed) for content in chosen)

    def _of_rest(self, view: View, scope: int, expr: list[Any], wanted: int) -> Values:
        """An item of the rest of a sequence. Two attributes may each be the rest of the other, without end."""
        key = (view.id, id(expr))
        if key in self._active:
            self._cuts += 1
            return {}
        at: Expr = ["k", wanted + int(expr[2])]
        self._active.add(key)
        try:
            bases = self.evaluate(view, scope, expr[1], NEVER)
            return merged(self.item(view, scope, base, at, NEVER) for base in bases)
        finally:
            self._active.discard(key)

    def is_set(self, view: View, scope: int, value: Value, key: Expr, line: int) -> bool:
        """Whether ``value`` is what an assignment to ``value[key]`` says."""
        if value.kind != "box":
            return False
        home, home_scope, expr, _ = self.opened(value)
        if expr is None or expr[0] != "e":
            return False
        wanted = self._constant(view, scope, key, line)
        return wanted is not None and wanted == self._constant(home, home_scope, expr[1], NEVER)

    def _constant(self, view: View, scope: int, expr: Expr, line: int, depth: int = 0) -> str | int | None:
        """The constant that an expression is; names are followed to theirs."""
        if expr is None or depth > 4:
            return None
        if expr[0] == "k":
            return expr[1]  # type: ignore[no-any-return]
        if expr[0] != "n":
            return None
        at = scope
        while at >= 0:
            candidates = view.candidates(at, expr[1], line if at == scope else NEVER)
            if candidates:
                what = candidates[-1].what
                if isinstance(what, Binding):
                    return self._constant(view, at, what.value, what.line, depth + 1)
                if isinstance(what, Import) and (file := self.file_of(view, what)) is not None:
                    return self._constant(self.modules.view(file), 0, ["n", what.name], NEVER, depth + 1)
                return None
            at = view.definitions[at].parent
        return None


def pairs_of(expr: list[Any]) -> list[list[Expr]]:
    """Keys and values of a mapping."""
    return expr[1:] if expr[0] == "d" else [expr[1:]]
