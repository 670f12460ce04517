"""Possible values of an expression, each sure or not."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

# How an edge was found, and how far to trust it. From `CONFIRMED` on it is a fact of the text.
CONFIDENCE = {
    "same file": 1.0,
    "self": 0.98,
    "import": 0.97,
    "type": 0.92,
    "assignment": 0.9,
    "return": 0.85,
    "flow": 0.6,  # through a parameter, a container or a decorator, or one of several values
    "unique name": 0.5,
}
CONFIRMED = 0.8

Origin = str


class Value(NamedTuple):  # hashed and compared all the time
    """A definition, an instance of a class, a method bound to one, the classes after a class, or a box.

    ``text`` is the dotted name of something outside of the project; ``at`` is the index of a definition, or of a box.
    """

    kind: Literal["definition", "instance", "bound", "super", "external", "box"]
    file: int = 0
    at: int = 0
    text: str = ""


Values = dict[Value, Origin]


def through(values: Values, origin: Origin) -> Values:
    """The values, no more certain than by ``origin``."""
    most = CONFIDENCE[origin]
    return {value: known if CONFIDENCE[known] <= most else origin for value, known in values.items()}


def merge(into: Values, more: Values) -> None:
    """Add values; of two ways to one value, the surer stays."""
    for value, origin in more.items():
        known = into.get(value)
        if known is None or CONFIDENCE[known] < CONFIDENCE[origin]:
            into[value] = origin


def merged(parts: Iterable[Values]) -> Values:
    """The values of all parts, as :func:`merge` adds them."""
    found: Values = {}
    for each in parts:
        merge(found, each)
    return found


def one_of(parts: Iterable[Values]) -> Values:
    """:func:`merged` values each of which is only possible, unless there is only one."""
    found = merged(parts)
    return found if len(found) == 1 else through(found, "flow")


def beyond(values: Values, step: Callable[[Value], Values]) -> Values:
    """What a step finds for each value, no more certain than that value."""
    return merged(through(step(value), origin) for value, origin in values.items())


def external(text: str) -> Value:
    return Value("external", text=text)


BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
SCRIPT_GLOBALS = frozenset(
    """
    Array Boolean Date Error JSON Map Math Number Object Promise Proxy Reflect RegExp Set String Symbol
    TypeError WeakMap WeakSet BigInt Buffer console document fetch globalThis isNaN parseFloat parseInt process
    queueMicrotask require setImmediate setInterval setTimeout clearInterval clearTimeout structuredClone window
    URL URLSearchParams AbortController TextDecoder TextEncoder Uint8Array ArrayBuffer RangeError
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
# A method of one of these names on something unknown says nothing about who defines it.
COMMON = frozenset(
    name
    for kind in (str, bytes, list, dict, set, int, float, tuple, object, type(iter("")), type(open))
    for name in dir(kind)
) | frozenset(
    """
    close read write readline readlines flush seek send recv start stop run main map filter forEach then catch
    push slice splice concat some every includes indexOf replace test exec match trim toString call apply bind
    emit on off once has delete entries log error warn info debug exception warning group groups next fetch
    execute commit open exists mkdir unlink resolve read_text write_text submit result cancel done wait acquire
    release
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
