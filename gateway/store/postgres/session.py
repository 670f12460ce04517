"""The part of ``apsw.Connection`` that :mod:`gateway.store` uses, over psycopg."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import apsw
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader

from gateway.base.errors import InvalidRequestError
from gateway.store.postgres.dialect import translated
from gateway.store.rows import Values

_INSERT = re.compile(r"INSERT INTO (\w+) \(([^)]*)\) VALUES")
# A gateway whose machine is gone loses its lock after a minute, not after hours.
_SETTINGS = (
    "-c search_path=hearth -c lock_timeout=10s -c client_min_messages=warning "
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)


# Of every connection.
CONNECT: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "application_name": "hearth",
}


class Cursor:
    """The rows of a statement, all of them read."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    @property
    def get(self) -> Any:
        """The first row, its value if it has one column, or None."""
        row = next(self._rows, None)
        return row[0] if row is not None and len(row) == 1 else row

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)


class _Number(Loader):
    """Sums of integers are of the type `numeric`."""

    def load(self, data: Buffer) -> int | float:
        value = Decimal(bytes(data).decode())
        return int(value) if value == value.to_integral_value() else float(value)


class _Boolean(Dumper):
    """`'1'` or `'0'`, which boolean and integer columns take."""

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class Session:
    """A session. Raises apsw.ConstraintError as SQLite does, psycopg's other errors as they are."""

    def __init__(self, url: str, *, readonly: bool = False) -> None:
        self._psycopg = psycopg.connect(
            url,
            **CONNECT,
            cursor_factory=psycopg.ClientCursor,  # values in the text: PostgreSQL infers their types from the place
            options=_SETTINGS + (" -c default_transaction_read_only=on" if readonly else ""),
        )
        self._psycopg.adapters.register_loader("numeric", _Number)
        self._psycopg.adapters.register_dumper(bool, _Boolean)
        self._changes = 0
        self._last = 0
        self._identities: dict[str, str] = {}

    def execute(self, sql: str, values: Values = ()) -> Cursor:
        text, _ = translated(sql)
        named = (
            values
            if isinstance(values, Mapping)
            else {f"p{index}": value for index, value in enumerate(values, 1)}
        )
        insert = _INSERT.match(text)
        column = self._identity(insert[1]) if insert is not None else None
        if insert is None or column is None or "RETURNING" in text:
            return Cursor(self._run(text, named))
        given = named.get(column) if column in insert[2].split(", ") else None
        if given is None and column in named:
            text = text.replace(f"%({column})s", "DEFAULT")
        rows = self._run(f"{text} RETURNING {column}", named)
        if rows:
            self._last = rows[0][0]
        if given is not None:  # later rows get higher numbers, as in SQLite
            sequence = f"{insert[1]}_{column}_seq"
            self._run(f"SELECT setval('{sequence}', greatest(last_value, {int(given)})) FROM {sequence}", {})
            self._changes = len(rows)
        return Cursor([])

    def executemany(self, sql: str, values: Iterable[Values]) -> None:
        for each in values:
            self.execute(sql, each)

    def script(self, sql: str) -> None:
        """Run statements that are PostgreSQL's own."""
        self._psycopg.execute(sql.encode())

    def changes(self) -> int:
        """Rows that the last statement changed."""
        return self._changes

    def last_insert_rowid(self) -> int:
        return self._last

    @property
    def closed(self) -> bool:
        return self._psycopg.closed

    @property
    def in_transaction(self) -> bool:
        return self._psycopg.info.transaction_status not in (
            psycopg.pq.TransactionStatus.IDLE,
            psycopg.pq.TransactionStatus.UNKNOWN,
        )

    @property
    def server_version(self) -> str:
        return self._psycopg.info.parameter_status("server_version") or ""

    @property
    def encoding(self) -> str:
        return self._psycopg.info.parameter_status("server_encoding") or ""

    def close(self) -> None:
        self._psycopg.close()

    def _run(self, text: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            cursor = self._psycopg.execute(text.encode(), values or None)
        except psycopg.IntegrityError as error:
            raise apsw.ConstraintError(str(error)) from error
        except psycopg.DataError as error:
            if "NUL (0x00)" not in str(error):
                raise
            raise InvalidRequestError(
                "a text contains the character U+0000, which PostgreSQL cannot store; remove it"
            ) from error
        if text == "COMMIT" and cursor.statusmessage != text:
            raise RuntimeError("a function for the database went on after a statement had failed")
        self._changes = max(0, cursor.rowcount)
        return cursor.fetchall() if cursor.description is not None else []

    def _identity(self, table: str) -> str | None:
        """The column that numbers a table's rows."""
        if not self._identities:
            rows = self._psycopg.execute(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE is_identity = 'YES' AND table_schema = 'hearth' AND column_name <> 'rowid'"
            ).fetchall()
            self._identities = dict(rows)
        return self._identities.get(table)
