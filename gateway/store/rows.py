"""Rows as structs: the columns of a query are the fields of the struct, in order."""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import apsw
import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_known: set[type[msgspec.Struct]] = set()
_first = threading.Lock()


def columns(struct: type[msgspec.Struct], prefix: str = "") -> str:
    """The column list for a SELECT that fills ``struct``."""
    return ", ".join(prefix + name for name in struct.__struct_fields__)


def load_all(struct: type[T], cursor: apsw.Cursor) -> list[T]:
    """Every row of a query over :func:`columns`."""
    names = struct.__struct_fields__
    return [converted(dict(zip(names, row, strict=True)), struct) for row in cursor]


def load_one(struct: type[T], cursor: apsw.Cursor) -> T | None:
    """The only row of such a query, or None."""
    rows = load_all(struct, cursor)
    assert len(rows) <= 1, "the query must select by a unique column"
    return rows[0] if rows else None


def converted(values: dict[str, Any], struct: type[T]) -> T:
    """``values`` as a struct.

    The first time is one thread at a time: docs/decisions/0010-first-conversion.md.
    """
    if struct in _known:
        return msgspec.convert(values, struct)
    with _first:
        made = msgspec.convert(values, struct)
        _known.add(struct)
        return made
