"""What calls of Python's functions, containers and types return."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.code import queries
from tests.gateway.code.conftest import Indexable

Make = Callable[[dict[str, str | bytes]], Indexable]

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
    answer = made.database.read_sync(lambda c: queries.callers(c, made.id, "Engine.start"))
    assert [use.caller for use in answer.confirmed] == ["engine.use"]
    other = made.database.read_sync(lambda c: queries.callers(c, made.id, "Wheel.start"))
    assert (other.confirmed, other.possible, other.unresolved) == ([], [], [])


def test_of_a_variable_for_any_type_nothing_is_claimed(project: Make) -> None:
    made = project({"engine.py": f"{ENGINE}\ndef use(x: Any):\n    x.start()\n"})
    answer = made.database.read_sync(lambda c: queries.callers(c, made.id, "Engine.start"))
    assert (answer.confirmed, answer.possible) == ([], [])
    assert [use.caller for use in answer.unresolved] == ["engine.use"]
