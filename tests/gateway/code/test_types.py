"""Types of values: with parameters, of objects, by assertions and `isinstance`, of results of built-in functions."""

from __future__ import annotations

import textwrap

import pytest

from tests.gateway.code.conftest import Make

SCRIPT = """
class Engine { start() {} }
class Wheel { start() {} }
interface Props { engine: Engine; wheel: Wheel }
type Parts = { engine: Engine; wheel: Wheel }
"""
PYTHON = "class Engine:\n    def start(self): ...\nclass Wheel:\n    def start(self): ...\n"


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
    assert project({"a.ts": f"{SCRIPT}\n{use}\n"}).callers("Engine.start") == (["a.use"], [], [])


def test_methods_of_a_class_with_parameters(project: Make) -> None:
    made = project({"a.ts": f"{SCRIPT}\nclass Shop<T extends Engine> {{ run(x: T) {{ x.start() }} }}\n"})
    assert made.callers("Engine.start") == (["a.Shop.run"], [], [])


@pytest.mark.parametrize(
    "use", ["function use<T>(t: T) { t.start() }", "function use<Engine>(t: Engine) { t.start() }"]
)
def test_of_a_type_without_a_bound_nothing_is_claimed(project: Make, use: str) -> None:
    assert project({"a.ts": f"{SCRIPT}\n{use}\n"}).callers("Engine.start") == ([], [], ["a.use"])


@pytest.mark.parametrize("bound", [": Engine", ""])
@pytest.mark.parametrize(
    ("use", "caller"),
    [
        ("def use[T{}](x: T):\n    x.start()", "a.use"),
        ("class Shop[T{}]:\n    def use(self, x: T):\n        x.start()", "a.Shop.use"),
    ],
)
def test_python(project: Make, use: str, caller: str, bound: str) -> None:
    confirmed, possible, unresolved = project({"a.py": f"{PYTHON}{use.format(bound)}\n"}).callers(
        "Engine.start"
    )
    assert (confirmed if bound else unresolved) == [caller]
    assert not possible and not (unresolved if bound else confirmed)


def groups(project: Make, body: str) -> tuple[int, ...]:
    """How many calls of `Engine.start` are confirmed, possible and unresolved."""
    made = project({"a.py": f"{PYTHON}def use(x, y, xs, self=None):\n{textwrap.indent(body, '    ')}\n"})
    return tuple(map(len, made.callers("Engine.start")))


@pytest.mark.parametrize(
    "body",
    [
        "if isinstance(x, Engine):\n    x.start()",
        "if y and isinstance(x, Engine):\n    x.start()",
        "if not isinstance(x, Engine):\n    return\nx.start()",
        "if not isinstance(x, Engine) or y:\n    raise TypeError\nx.start()",
        "if isinstance(x, Wheel):\n    pass\nelif isinstance(x, Engine):\n    x.start()",
        "assert isinstance(x, Engine)\nx.start()",
        "return x.start() if isinstance(x, Engine) else None",
        "return None if not isinstance(x, Engine) else x.start()",
        "return isinstance(x, Engine) and x.start()",
        "return not isinstance(x, Engine) or x.start()",
        "return [each.start() for each in xs if isinstance(each, Engine)]",
        "while isinstance(x, Engine):\n    x.start()",
        "if isinstance(self.engine, Engine):\n    self.engine.start()",
        "if isinstance(x, Wheel):\n    if isinstance(x, Engine):\n        x.start()",
    ],
)
def test_where_it_holds(project: Make, body: str) -> None:
    assert groups(project, body) == (1, 0, 0)


@pytest.mark.parametrize(
    "body",
    [
        "if isinstance(x, Engine):\n    pass\nx.start()",
        "if isinstance(x, Engine):\n    pass\nelse:\n    x.start()",
        "if isinstance(x, Engine) or y:\n    x.start()",
        "if not isinstance(x, Engine):\n    x.start()",
        "if not isinstance(x, Engine):\n    pass\nx.start()",
        "if isinstance(x, Engine):\n    x = y\n    x.start()",
        "if isinstance(x, Engine):\n    for x in xs:\n        x.start()",
        "if isinstance(y, Engine):\n    x.start()",
        "return isinstance(x, Engine) or x.start()",
    ],
)
def test_where_it_does_not(project: Make, body: str) -> None:
    assert groups(project, body) == (0, 0, 1)


def test_of_several_types_each_is_possible(project: Make) -> None:
    assert groups(project, "if isinstance(x, (Engine, Wheel)):\n    x.start()") == (0, 1, 0)


def test_many_of_them_are_read_in_time(project: Make) -> None:
    assert groups(project, "assert isinstance(x, Engine)\n" * 20_000 + "pass") == (0, 0, 0)


ENGINE = """
from __future__ import annotations
import copy
from typing import Self, TypeVar, cast

class Engine:
    def start(self): ...
    @classmethod
    def make(cls) -> Self: ...
    def oiled(self) -> Self: ...

class Wheel:
    def start(self): ...

E = TypeVar("E", bound=Engine)
Q = TypeVar("Q", bound="Engine")
Any = TypeVar("Any")

def pair() -> tuple[Wheel, Engine]: ...
"""


@pytest.mark.parametrize(
    "call",
    [
        "def use(d: dict[str, Engine]):\n    for v in d.values(): v.start()",
        "def use(d: dict[str, Engine]):\n    for k, v in d.items(): v.start()",
        "def use(d: dict[Engine, Wheel]):\n    for k, v in d.items(): k.start()",
        "def use(d: dict[Engine, Wheel]):\n    for k in d.keys(): k.start()",
        "def use(d: dict[str, Engine]):\n    d.get('a').start()",
        "def use(d: dict[str, Engine]):\n    d.pop('a').start()",
        "def use():\n    d = {'a': Engine(), 'b': Wheel()}\n    d.get('a').start()",
        "def use(es: list[Engine]):\n    es.pop().start()",
        "def use(es: list[Engine]):\n    for i, e in enumerate(sorted(es)): e.start()",
        "def use(ws: list[Wheel], es: list[Engine]):\n    for w, e in zip(ws, es): e.start()",
        "def use(es: list[Engine]):\n    max(es, key=str).start()",
        "def use(es: list[Engine]):\n    for e in filter(None, es): e.start()",
        "def use():\n    w, e = pair()\n    e.start()",
        "def use(x):\n    cast(Engine, x).start()",
        "def use(x):\n    cast('Engine', x).start()",
        "def use(x: Engine):\n    copy.copy(x).start()",
        "def use():\n    Engine.make().start()",
        "def use(x: Engine):\n    x.oiled().oiled().start()",
        "def use(x: E):\n    x.start()",
        "def use(x: Q):\n    x.start()",
    ],
)
def test_its_type_is_known(project: Make, call: str) -> None:
    made = project({"engine.py": f"{ENGINE}\n{call}\n"})
    assert made.callers("Engine.start")[0] == ["engine.use"]
    assert made.callers("Wheel.start") == ([], [], [])


def test_of_a_variable_for_any_type_nothing_is_claimed(project: Make) -> None:
    made = project({"engine.py": f"{ENGINE}\ndef use(x: Any):\n    x.start()\n"})
    assert made.callers("Engine.start") == ([], [], ["engine.use"])
