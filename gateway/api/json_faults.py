"""What JSON cannot say, but some programs write: where in a body it is, for an error that names the field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

# Where something is in a body, such as `options.stop[0]`, and what is wrong with it.
Fault = tuple[str, str]


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
        elif isinstance(found, dict):
            pending += [(f"{path}.{key}" if path else key, item) for key, item in reversed([*found.items()])]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
