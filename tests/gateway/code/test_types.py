"""Types with parameters, types of objects and assertions, in TypeScript and Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.code import queries
from tests.gateway.code.conftest import Indexable

Make = Callable[[dict[str, str | bytes]], Indexable]

SCRIPT = """
class Engine { start() {} }
class Wheel { start() {} }
interface Props { engine: Engine; wheel: Wheel }
type Parts = { engine: Engine; wheel: Wheel }
"""
PYTHON = "class Engine:\n    def start(self): ...\nclass Wheel:\n    def start(self): ...\n"


def callers(made: Indexable) -> tuple[list[str], list[str], list[str]]:
    found = made.database.read_sync(lambda c: queries.callers(c, made.id, "Engine.start"))
    return tuple(
        [use.caller for use in group] for group in (found.confirmed, found.possible, found.unresolved)
    )  # type: ignore[return-value]


@pytest.mark.parametrize(
    "use",
    [
        "function use<T extends Engine>(t: T) { t.start() }",
        "function use<T extends Engine, U extends T>(t: U) { t.start() }",
        "const use = <T extends Engine>(t: T) => t.start()",
        "function use(x: any) { const y = x as Engine; y.start() }",
        "function use(x: any) { (x as unknown as Engine).start() }",
        "function use({ engine }: { engine: Engine; wheel: Wheel }) { engine.start() }",
        "function use({ engine: other }: Parts) { other.start() }",
        "function use({ engine }: Props) { engine.start() }",
        "function use(o: { inner: { engine: Engine } }) { o.inner.engine.start() }",
    ],
)
def test_typescript(project: Make, use: str) -> None:
    assert callers(project({"a.ts": f"{SCRIPT}\n{use}\n"})) == (["a.use"], [], [])


def test_methods_of_a_class_with_parameters(project: Make) -> None:
    made = project({"a.ts": f"{SCRIPT}\nclass Shop<T extends Engine> {{ run(x: T) {{ x.start() }} }}\n"})
    assert callers(made) == (["a.Shop.run"], [], [])


@pytest.mark.parametrize(
    "use", ["function use<T>(t: T) { t.start() }", "function use<Engine>(t: Engine) { t.start() }"]
)
def test_of_a_type_without_a_bound_nothing_is_claimed(project: Make, use: str) -> None:
    assert callers(project({"a.ts": f"{SCRIPT}\n{use}\n"})) == ([], [], ["a.use"])


@pytest.mark.parametrize("bound", [": Engine", ""])
@pytest.mark.parametrize(
    ("use", "caller"),
    [
        ("def use[T{}](x: T):\n    x.start()", "a.use"),
        ("class Shop[T{}]:\n    def use(self, x: T):\n        x.start()", "a.Shop.use"),
    ],
)
def test_python(project: Make, use: str, caller: str, bound: str) -> None:
    confirmed, possible, unresolved = callers(project({"a.py": f"{PYTHON}{use.format(bound)}\n"}))
    assert (confirmed if bound else unresolved) == [caller]
    assert not possible and not (unresolved if bound else confirmed)
