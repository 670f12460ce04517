"""Small pieces of text that several commands print."""

from __future__ import annotations

import re

# C0 and C1 controls except tab and newline: text of a model or a wiki page must not drive the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """``text`` without control characters (escape sequences lose their lead-in and become plain text)."""
    return _CONTROLS.sub("", text)


def size_text(size: float) -> str:
    """Bytes for people: ``333.6 MB``, decimal units as disks and download pages use them."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def table(rows: list[list[str]]) -> str:
    """Columns aligned to the left, two spaces apart."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
