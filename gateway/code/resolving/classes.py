"""The method resolution order."""

from __future__ import annotations

from collections.abc import Callable

from gateway.code.resolving.values import Value

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
