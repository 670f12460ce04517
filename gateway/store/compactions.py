"""SQL of the compaction cache, which evicts the least recently used rows."""

from __future__ import annotations

import apsw

MAX_ROWS = 5000
# A use within this time of the last noted one is not worth a write.
_TOUCH_SECONDS = 3600.0


def get_compaction(connection: apsw.Connection, key: bytes, now: float) -> tuple[str, bool] | None:
    """The cached text, and whether to note its use with :func:`touch_compaction`."""
    row = connection.execute("SELECT text, used_at FROM compactions WHERE key = ?", (key,)).get
    return None if row is None else (str(row[0]), now - row[1] > _TOUCH_SECONDS)


def touch_compaction(connection: apsw.Connection, key: bytes, now: float) -> None:
    connection.execute("UPDATE compactions SET used_at = ? WHERE key = ?", (now, key))


def put_compaction(
    connection: apsw.Connection, key: bytes, text: str, now: float, max_rows: int = MAX_ROWS
) -> None:
    """Cache a text; evict the least recently used ones beyond ``max_rows``."""
    connection.execute(
        "INSERT INTO compactions (key, text, used_at) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET text = excluded.text, used_at = excluded.used_at",
        (key, text, now),
    )
    count: int = connection.execute("SELECT count(*) FROM compactions").get
    if count > max_rows:
        connection.execute(
            "DELETE FROM compactions WHERE key IN (SELECT key FROM compactions ORDER BY used_at LIMIT ?)",
            (count - max_rows,),
        )
