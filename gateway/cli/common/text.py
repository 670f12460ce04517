"""Printing. All output goes through :func:`say`, because models, wiki pages, users and servers wrote much of it."""

from __future__ import annotations

import shutil
import textwrap
from datetime import datetime
from typing import Any

import click

from gateway.base.visible import escaped, visible

_NARROWEST = 20  # columns of wrapped text
_ERASE_LINE = "\r\x1b[2K"


def say(
    what: object = "", *, err: bool = False, nl: bool = True, dim: bool = False, over: bool = False
) -> None:
    """Print a text without invisible characters, with ``over`` in place of the cursor's line.

    Any other value is printed as JSON, which bytes are already. There these characters are escaped, so that a program
    reads the same value.
    """
    if not isinstance(what, str):
        # Late: help and errors are text, and start without it.
        import msgspec

        json = what if isinstance(what, bytes) else msgspec.json.encode(what)
        click.echo(escaped(json.decode()).encode(), err=err, nl=nl)
        return
    shown = click.style(visible(what), dim=True) if dim else visible(what)
    click.echo(_ERASE_LINE + shown if over else shown, err=err, nl=nl)


def size_text(size: float) -> str:
    """Write bytes for people, in decimal units as disks and download pages do: ``333.6 MB``."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def time_text(seconds: float | None) -> str:
    """Write a time for people: local, to the minute."""
    return "never" if seconds is None else f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def text_of(content: Any) -> str:
    """Join the text of a prompt's message, which may be a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content)


def table(rows: list[list[str]], *, prose: bool = False) -> str:
    """Align columns to the left, two spaces apart. With ``prose``, wrap the last column between words on a terminal."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    begin = sum(widths[:-1]) + 2 * (len(widths) - 1)
    room = shutil.get_terminal_size((0, 0)).columns - begin if prose else 0
    lines = []
    for row in rows:
        last = (
            textwrap.wrap(row[-1], max(room, _NARROWEST), break_on_hyphens=False) if room > 0 else [row[-1]]
        )
        cells = zip([*row[:-1], last[0] if last else ""], widths, strict=True)
        lines.append("  ".join(cell.ljust(width) for cell, width in cells).rstrip())
        lines += [" " * begin + each for each in last[1:]]
    return "\n".join(lines)
