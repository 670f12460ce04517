"""Rows and structs: a struct's fields name the columns; lists and dicts are stored as JSON."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

import apsw
import msgspec

from gateway.base.errors import NotFoundError

T = TypeVar("T", bound=msgspec.Struct)
Values = Sequence[Any] | Mapping[str, Any]

_known: set[type[msgspec.Struct]] = set()  # structs that have been converted to
_first_conversion = threading.Lock()


def columns(struct: type[msgspec.Struct], prefix: str = "") -> str:
    """The column list for a SELECT that fills ``struct``."""
    return ", ".join(prefix + name for name in struct.__struct_fields__)


def select(connection: apsw.Connection, struct: type[T], source: str, values: Values = ()) -> list[T]:
    """The rows of ``SELECT <the struct's columns> FROM <source>``."""
    return load(connection, struct, f"SELECT {columns(struct)} FROM {source}", values)


def select_one(connection: apsw.Connection, struct: type[T], source: str, values: Values = ()) -> T | None:
    """The row of such a query, which must match at most one."""
    rows = select(connection, struct, source, values)
    assert len(rows) <= 1, "the query must select by a unique column"
    return rows[0] if rows else None


def select_existing(
    connection: apsw.Connection,
    struct: type[T],
    source: str,
    values: Values,
    missing: str,
    param: str | None = "id",
) -> T:
    """The row of such a query. Raises NotFoundError with the text ``missing``."""
    found = select_one(connection, struct, source, values)
    if found is None:
        raise NotFoundError(missing, param=param)
    return found


def newest(
    connection: apsw.Connection,
    struct: type[T],
    source: str,
    values: Sequence[Any],
    by: str,
    limit: int,
    before: Any,
) -> list[T]:
    """A page of such a query, which has a WHERE: the last rows by the columns ``by``, separated by ", ".

    The cursor ``before`` has the values of these columns in the last row of the page before, None for the first page.
    """
    seen = () if before is None else before if isinstance(before, tuple) else (before,)
    after = f" AND ({by}) < ({', '.join('?' for _ in seen)})" if seen else ""
    order = f"ORDER BY {by.replace(',', ' DESC,')} DESC LIMIT ?"
    return select(connection, struct, f"{source}{after} {order}", (*values, *seen, limit))


def exists(connection: apsw.Connection, source: str, values: Values = ()) -> bool:
    """Whether ``SELECT … FROM <source>`` has a row."""
    return bool(connection.execute(f"SELECT EXISTS (SELECT 1 FROM {source})", values).get)


def column(connection: apsw.Connection, query: str, values: Values = ()) -> list[Any]:
    """The values of a query of one column."""
    return [value for (value,) in connection.execute(query, values)]


def load(connection: apsw.Connection, struct: type[T], query: str, values: Values = ()) -> list[T]:
    """The rows of a query whose columns are the struct's fields, in order."""
    names, decoders = struct.__struct_fields__, _decoders(struct)
    found = []
    for row in connection.execute(query, values):
        fields: dict[str, Any] = dict(zip(names, row, strict=True))
        for name, decode in decoders.items():
            if fields[name] is not None:
                fields[name] = decode(fields[name])
        found.append(converted(fields, struct))
    return found


def insert(
    connection: apsw.Connection, table: str, row: msgspec.Struct | Mapping[str, Any], **more: Any
) -> int:
    """Insert a struct, or values by column, and ``more`` columns; returns the rowid."""
    values = stored(row) | stored(more)
    connection.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})",
        values,
    )
    return connection.last_insert_rowid()


def update(
    connection: apsw.Connection, table: str, row: msgspec.Struct | Mapping[str, Any], *key: str
) -> None:
    """Write a struct, or values by column, to the row that has the values of its ``key``."""
    values = stored(row)
    changes = ", ".join(f"{name} = :{name}" for name in values if name not in key)
    where = " AND ".join(f"{name} = :{name}" for name in key)
    connection.execute(f"UPDATE {table} SET {changes} WHERE {where}", values)


def stored(row: msgspec.Struct | Mapping[str, Any]) -> dict[str, Any]:
    """Values by column as SQLite takes them."""
    values = row if isinstance(row, Mapping) else msgspec.structs.asdict(row)
    return {
        name: as_json(value) if isinstance(value, list | dict) else value for name, value in values.items()
    }


def as_json(value: object) -> str:
    """JSON text, for a column or for ``json_each``."""
    return msgspec.json.encode(value).decode()


def converted(values: dict[str, Any], struct: type[T]) -> T:
    """``values`` as a struct.

    Only one thread at a time converts to a struct for the first time: docs/decisions/0010-first-conversion.md.
    """
    if struct in _known:
        return msgspec.convert(values, struct)
    with _first_conversion:
        made = msgspec.convert(values, struct)
        _known.add(struct)
        return made


@cache
def _decoders(struct: type[msgspec.Struct]) -> dict[str, Callable[[Any], Any]]:
    """For the fields of types that SQLite lacks: booleans are integers, lists and dicts are JSON."""
    found: dict[str, Callable[[Any], Any]] = {}
    for field in msgspec.structs.fields(struct):
        kinds = {get_origin(kind) or kind for kind in (field.type, *get_args(field.type))}
        if kinds & {list, dict}:
            found[field.name] = msgspec.json.decode
        elif bool in kinds:
            found[field.name] = bool
    return found
