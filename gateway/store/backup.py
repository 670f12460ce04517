"""A consistent copy of a database that is being written to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from gateway.base.errors import HearthError
from gateway.store.faults import no_space, translated

_PAGES_A_STEP = 256
_COUNTED = ("conversations", "messages", "summaries", "facts", "tasks", "keys", "wiki_pages", "requests")


def copy_database(source: Path, target: Path, progress: Callable[[int, int], None]) -> dict[str, int]:
    """Copy ``source`` to ``target`` page by page and check the copy; returns the number of rows by table.

    ``progress`` gets the number of remaining pages and of all pages. Writers may continue meanwhile. Raises
    HearthError when the copy fails its check, ConfigurationError when either file cannot be opened.
    """
    with translated(source):
        original = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READONLY)
        original.set_busy_timeout(10_000)
        with translated(target):
            copy = apsw.Connection(str(target))
        try:
            original.execute("BEGIN")  # one snapshot for the whole copy, however long it takes
            original.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            with copy.backup("main", original, "main") as running:
                while not running.done:
                    running.step(_PAGES_A_STEP)
                    progress(running.remaining, running.page_count)
            original.execute("COMMIT")
            copy.pragma("journal_mode", "DELETE")  # one file, nothing beside it
            found, broken = copy.pragma("integrity_check"), copy.pragma("foreign_key_check")
            if found != "ok" or broken is not None:
                problem = found if found != "ok" else broken
                raise HearthError(f"the copy is damaged: {problem}", code="backup_damaged")
            tables = {name for (name,) in copy.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            counted = [name for name in _COUNTED if name in tables]
            return {name: copy.execute(f"SELECT count(*) FROM {name}").get for name in counted}
        except apsw.FullError as error:
            raise no_space(target) from error
        finally:
            copy.close()
            original.close()
