"""JSON that is refused: numbers and texts that it cannot express, and deep nesting."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

# A path in a body, such as `options.stop[0]`, and the problem there.
Fault = tuple[str, str]

# Levels of objects and lists, including the outermost. Real schemas have about 20. Deeper nesting exhausts the stack of
# some recursion on the way to the model: redaction, the chat template, the grammar of a schema.
MAX_DEPTH = 100

# A string, even if unterminated, or a bracket. The possessive quantifiers keep the time linear.
_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def deep_field(body: bytes) -> str | None:
    """The top-level field whose value is nested too deeply, or "" outside of a field; None if there is none.

    Does not decode, so that the depth needs no stack.
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
            name = token[0]  # the last string before a container is its name
    return None


def json_object(text: str) -> dict[str, Any] | None:
    """``text`` as a JSON object; None if it is not one, or is nested deeper than :data:`MAX_DEPTH`."""
    try:
        raw = text.encode()
        return None if deep_field(raw) is not None else msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def find_fault(body: bytes) -> Fault | None:
    """The first number that is not finite, or text with half a surrogate pair; None without such a fault."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return next(_faults(value), None)


def _faults(value: Any) -> Iterator[Fault]:
    # An explicit stack, because Python's parser accepts deeper nesting than a recursion would.
    pending = [("", value)]
    while pending:
        path, found = pending.pop()
        if isinstance(found, float) and not math.isfinite(found):
            yield path, "the number is not finite, or too large; JSON allows only finite ones"
        elif isinstance(found, str) and not _is_text(found):
            yield path, "the text contains half of a surrogate pair, which is not a character"
        elif isinstance(found, list):
            pending += [(f"{path}[{index}]", item) for index, item in reversed([*enumerate(found)])]
        elif isinstance(found, dict) and not all(map(_is_text, found)):
            yield path, "a name in it contains half of a surrogate pair, which is not a character"
        elif isinstance(found, dict):
            pending += [(f"{path}.{key}" if path else key, item) for key, item in reversed([*found.items()])]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
