"""Rows as structs: the columns of a query are the fields of the struct, in order."""

from __future__ import annotations

from typing import TypeVar

import apsw
import msgspec

T = TypeVar("T", bound=msgspec.Struct)


def columns(struct: type[msgspec.Struct], prefix: str = "") -> str:
    """The column list for a SELECT that fills ``struct``."""
    return ", ".join(prefix + name for name in struct.__struct_fields__)


def load_all(struct: type[T], cursor: apsw.Cursor) -> list[T]:
    """Every row of a query over :func:`columns`."""
    names = struct.__struct_fields__
    return [msgspec.convert(dict(zip(names, row, strict=True)), struct) for row in cursor]


def load_one(struct: type[T], cursor: apsw.Cursor) -> T | None:
    """The only row of such a query, or None."""
    rows = load_all(struct, cursor)
    assert len(rows) <= 1, "the query must select by a unique column"
    return rows[0] if rows else None
