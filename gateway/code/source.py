"""Lines of a project's files as they are now, without secrets."""

from __future__ import annotations

from pathlib import Path

from gateway.base.redact import redact
from gateway.code.walk import MAX_BYTES


def lines_of(root: Path, path: str, first: int, last: int) -> list[str]:
    """Lines of a file, counted from 1; none if it is gone or cannot be read."""
    try:
        with (root / path).open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode("utf-8", "replace")
    except OSError:
        return []
    found = "\n".join(text.splitlines()[first - 1 : last])
    return redact(found)[0].splitlines()
