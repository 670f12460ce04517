"""Lines of a project's files as they are now, without secrets."""

from __future__ import annotations

from pathlib import Path

from gateway.base.redact import redact
from gateway.code.walk import MAX_BYTES


def lines_of(root: Path, path: str, first: int, last: int) -> list[str]:
    """Lines of a file, counted from 1; none if it is gone, cannot be read, or has become a link out of the project."""
    try:
        real = (root / path).resolve()
        if not real.is_relative_to(root.resolve()):
            return []
        with real.open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode("utf-8", "replace")
    except (OSError, RuntimeError):  # a loop of links is a RuntimeError up to Python 3.12
        return []
    found = "\n".join(lines_in(text)[first - 1 : last])
    return lines_in(redact(found)[0])


def lines_in(text: str) -> list[str]:
    """Lines as parsers and editors count them: a form feed or U+2028 ends none, unlike in `str.splitlines`."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
