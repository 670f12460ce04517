"""`isinstance` says what a name is, where it holds and nowhere else."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from gateway.code import queries
from tests.gateway.code.conftest import Indexable

Make = Callable[[dict[str, str | bytes]], Indexable]

CLASSES = "class Engine:\n    def start(self): ...\nclass Wheel:\n    def start(self): ...\n"


def groups(project: Make, body: str) -> tuple[int, int, int]:
    """How many calls of `Engine.start` are confirmed, possible and unresolved."""
    made = project({"a.py": f"{CLASSES}def use(x, y, xs, self=None):\n{textwrap.indent(body, '    ')}\n"})
    found = made.database.read_sync(lambda c: queries.callers(c, made.id, "Engine.start"))
    return len(found.confirmed), len(found.possible), len(found.unresolved)


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
