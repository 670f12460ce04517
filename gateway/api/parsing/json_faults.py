"""JSON that is not taken: numbers and texts that it cannot express, and deep nesting. Errors name the field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

# Where something is in a body, such as `options.stop[0]`, and what is wrong with it.
Fault = tuple[str, str]

# Levels of objects and lists, the outermost included. Real schemas have about 20. What is deeper exhausts the stack of
# some recursion between here and the model: redaction, the model's template, the grammar of a schema.
MAX_DEPTH = 100

# A string, also one that never ends, or a bracket. The possessive quantifiers keep the time linear.
_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def deep_field(body: bytes) -> str | None:
    """The field of the outermost object whose value is nested too deeply ("": of none); None when all is well.

    Decodes nothing, so that the depth costs no stack.
    """
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return None
    depth, name = 0, b""
    for token in _STRUCTURE.finditer(body):
        if token[0] in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                return name[1:-1].decode("utf-8", "replace")
        elif token[0] in (b"]", b"}"):
            depth -= 1
        elif depth == 1:
            name = token[0]  # before a container there is its name
    return None


# About arguments of a call that :func:`json_object` does not take.
NO_OBJECT = f"it must be the text of a JSON object, nested at most {MAX_DEPTH} levels deep"


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that ``text`` is; None when it is none, or is nested deeper than :data:`MAX_DEPTH`."""
    try:
        raw = text.encode()
        return None if deep_field(raw) is not None else msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def find_fault(body: bytes) -> Fault | None:
    """The first number that is not finite, or text with half of a surrogate pair; None when that is not the matter."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return next(_faults(value), None)


def _faults(value: Any) -> Iterator[Fault]:
    # A stack of our own: Python's parser takes deeper nesting than a recursion of ours would.
    pending = [("", value)]
    while pending:
        path, found = pending.pop()
        if isinstance(found, float) and not math.isfinite(found):
            yield path, "the number is not finite, or too large; JSON has only finite ones"
        elif isinstance(found, str) and not _is_text(found):
            yield path, "the text contains half of a surrogate pair, which stands for no character"
        elif isinstance(found, list):
            pending += [(f"{path}[{index}]", item) for index, item in reversed([*enumerate(found)])]
        elif isinstance(found, dict) and not all(map(_is_text, found)):
            yield path, "a name in it contains half of a surrogate pair, which stands for no character"
        elif isinstance(found, dict):
            pending += [(f"{path}.{key}" if path else key, item) for key, item in reversed([*found.items()])]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
