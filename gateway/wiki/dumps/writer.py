"""Write to a store that a server may be using: short transactions, pauses, and the indexes merged in steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import apsw

from gateway.store.db import Database
from gateway.store.fts import merge_step
from gateway.store.wiki import pages as sql

# SQLite's writer lock has no queue: a waiting process polls every 100 ms. So the import regularly pauses for longer
# than that.
_WRITING_SECONDS = 0.75
_PAUSE_SECONDS = 0.12

T = TypeVar("T")


class Writer:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._paused_at = 0.0

    def write(self, fn: Callable[[apsw.Connection], T]) -> T:
        """Run a transaction, and sometimes pause so that others can write."""
        result = self._database.write_sync(fn)
        if time.monotonic() - self._paused_at > _WRITING_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._paused_at = time.monotonic()
        return result

    def tidy(self) -> None:
        """Merge each search index into a single segment."""
        for index in sql.INDEXES:
            more = self.write(partial(merge_step, index=index, first=True))
            while more:
                more = self.write(partial(merge_step, index=index, first=False))

    def prune(self, origin: str) -> int:
        """Remove the origin's names that were not recorded as seen, forget the records; return how many."""
        removed = after = 0
        count = 1
        while count:
            after, count = self.write(partial(sql.delete_unseen, origin=origin, after=after))
            removed += count
        self.forget_seen()
        return removed

    def forget_seen(self) -> None:
        while self.write(sql.forget_seen):
            pass
