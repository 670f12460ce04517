"""What commands print. All of it goes through :func:`say`: models, wiki pages, users and servers wrote much of it."""

from __future__ import annotations

import click

from gateway.base.visible import escaped, visible

_ERASE_LINE = "\r\x1b[2K"


def say(
    text: str | bytes = "", *, err: bool = False, nl: bool = True, dim: bool = False, over: bool = False
) -> None:
    """Print ``text`` without its invisible characters, ``over`` the line that the cursor is on.

    Bytes are JSON: there they are escaped, so that a program reads the same.
    """
    if isinstance(text, bytes):
        click.echo(escaped(text.decode()).encode(), err=err, nl=nl)
        return
    shown = click.style(visible(text), dim=True) if dim else visible(text)
    click.echo(_ERASE_LINE + shown if over else shown, err=err, nl=nl)


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
