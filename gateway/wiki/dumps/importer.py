"""Bringing a dump into the store, batch by batch; it may be stopped or killed at any moment and goes on.

A batch is one transaction, and how far the import has come is part of it. While the writer thread stores a batch,
the next one is parsed and extracted: SQLite works without Python's lock, so this uses two cores without more processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.store.db import Database
from gateway.store.wiki import imports as sql
from gateway.store.wiki import pages as store
from gateway.wiki.dumps.batch import Batch, BatchPlan, Counts, plan
from gateway.wiki.dumps.compressed import DumpFile
from gateway.wiki.dumps.dump import DumpParser
from gateway.wiki.dumps.page import DumpError, DumpPage, SiteInfo
from gateway.wiki.ingest import put
from gateway.wiki.sample.loader import replace_sample
from gateway.wiki.wikitext import extract

_STATE = "import"
# SQLite has no queue for its writer lock: who waits looks every 100 ms. So the import leaves it alone for longer than
# that, every so often; the pauses overlap with extraction.
_WRITING_SECONDS = 0.75
_PAUSE_SECONDS = 0.12

T = TypeVar("T")


class ImportOptions(Struct, frozen=True):
    """What to import. ``prune`` removes pages of the same wiki that the dump no longer has."""

    namespaces: frozenset[int] = frozenset({0})
    prune: bool = False


class ImportReport(Struct):
    """How an import ended. ``resumed_after`` pages had been read by an earlier run; its counts are included."""

    site: SiteInfo
    counts: Counts
    resumed_after: int = 0


class ImportProgress(Struct, frozen=True):
    """``position`` is in bytes of the file as it lies on the disk, ``stage`` what is being done."""

    position: int
    pages: int
    stage: str


class _State(Struct):
    """Kept in the store while an import is unfinished. ``job`` is the file and the options."""

    job: str
    done: int
    counts: Counts


def origin_of(site: SiteInfo) -> str:
    """The name under which pages of a wiki are stored: the same for every dump of that wiki."""
    return "dump:" + (site.dbname or site.base or site.sitename or "unnamed")


def _decoded(stored: str) -> _State | None:
    try:
        return msgspec.json.decode(stored, type=_State)
    except msgspec.DecodeError:  # of another version of the program: the import starts over
        return None


class Importer:
    """One import into one database. ``on_progress`` is called often and must be quick."""

    def __init__(
        self, database: Database, options: ImportOptions, on_progress: Callable[[ImportProgress], None]
    ) -> None:
        self._database = database
        self._options = options
        self._on_progress = on_progress
        self._pool = ThreadPoolExecutor(1, "import-write")
        self._pending: Future[None] | None = None
        self._counts = Counts()
        self._sample_is_gone = False
        self._job = ""
        self._paused_at = 0.0

    def run(self, dump: DumpFile) -> ImportReport:
        """Import all of it. Raises DumpError for a file that is none or ends early: what came before is stored.

        KeyboardInterrupt and HearthError leave the store whole; running the same import again goes on.
        """
        self._job = self._job_of(dump)
        resumed = self._begin()
        parser = DumpParser(skip=resumed)
        with self._pool:
            try:
                self._read(dump, parser)
            finally:
                self._wait()
            if not parser.pages:
                raise DumpError("it has no pages: this is another kind of export")
            self._finish(dump, parser)
        return ImportReport(parser.site, self._counts, resumed)

    def _job_of(self, dump: DumpFile) -> str:
        options = f"{sorted(self._options.namespaces)}{self._options.prune}"
        return f"{dump.identity} {options} {extract.VERSION}"

    def _begin(self) -> int:
        """Pages that an earlier run of the same job has read; whatever another job left is dropped."""
        stored = self._database.read_sync(lambda connection: store.get_state(connection, _STATE))
        state = _decoded(stored) if stored else None
        self._database.write_sync(sql.begin_bulk)
        if state is not None and state.job == self._job:
            self._counts = state.counts
            return state.done
        self._forget()
        return 0

    def _read(self, dump: DumpFile, parser: DumpParser) -> None:
        batch = Batch()
        try:
            for piece in dump.pieces():
                batch = self._take(parser.feed(piece), batch, parser)
                self._on_progress(ImportProgress(dump.position, parser.pages, "importing"))
            parser.close()
        except (DumpError, EOFError) as error:  # EOFError: of a packed file
            self._flush(self._take(parser.take(), batch, parser), parser)
            self._on_progress(ImportProgress(dump.position, parser.pages, "importing"))
            raise parser.truncated() if isinstance(error, EOFError) else error from None
        self._flush(batch, parser)

    def _take(self, pages: list[DumpPage], batch: Batch, parser: DumpParser) -> Batch:
        for page in pages:
            if page.number == 1:
                self._check_namespaces(parser.site)
            batch.add(page)
            if batch.is_full:
                self._flush(batch, parser)
                batch = Batch()
        return batch

    def _check_namespaces(self, site: SiteInfo) -> None:
        missing = sorted(self._options.namespaces - site.namespaces.keys())
        if site.namespaces and missing:
            known = ", ".join(
                f"{number} ({name or 'main'})" for number, name in sorted(site.namespaces.items())
            )
            raise InvalidRequestError(
                f"--namespace {missing[0]}: the wiki has no such namespace; it has {known}", param="namespace"
            )

    def _flush(self, batch: Batch, parser: DumpParser) -> None:
        """Extract a batch while the one before is being written, then hand it to the writer thread."""
        if not batch.pages:
            return
        origin, titles = origin_of(parser.site), batch.titles
        known = self._database.read_sync(lambda connection: sql.known_names(connection, titles, origin))
        made = plan(batch.pages, known, self._options.namespaces)
        self._wait()
        self._counts.add(made.counts)
        state = _State(self._job, batch.pages[-1].number, self._counts)
        self._pending = self._pool.submit(
            self._write, lambda connection: self._store(connection, made, origin, titles, state)
        )

    def _write(self, fn: Callable[[apsw.Connection], T]) -> T:
        """A transaction, and sometimes a pause in which others may write."""
        result = self._database.write_sync(fn)
        if time.monotonic() - self._paused_at > _WRITING_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._paused_at = time.monotonic()
        return result

    def _store(
        self, connection: apsw.Connection, made: BatchPlan, origin: str, titles: list[str], state: _State
    ) -> None:
        """One transaction, in the writer thread. Until :meth:`_wait` the counts belong to it."""
        if made.items and not self._sample_is_gone:
            state.counts.sample_removed += replace_sample(connection)
            self._sample_is_gone = True
        for item in made.items:
            put(connection, item, origin)
        if self._options.prune:
            sql.add_seen(connection, titles)
        store.set_state(connection, _STATE, msgspec.json.encode(state).decode())

    def _wait(self) -> None:
        """Until the batch that is being written is on disk. Raises what went wrong with it."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _finish(self, dump: DumpFile, parser: DumpParser) -> None:
        if self._options.prune:
            self._on_progress(ImportProgress(dump.size, parser.pages, "removing what is gone"))
            self._counts.removed += self._prune(origin_of(parser.site))
        if self._counts.changed:
            self._on_progress(ImportProgress(dump.size, parser.pages, "tidying the search index"))
            self._tidy()
        self._forget()

    def _prune(self, origin: str) -> int:
        after, removed = 0, 0
        while True:
            last, count = self._write(partial(sql.delete_unseen, origin=origin, after=after))
            if not count:
                return removed
            after, removed = last, removed + count

    def _tidy(self) -> None:
        for index in range(sql.INDEX_COUNT):
            first, more = True, True
            while more:
                more = self._write(partial(sql.tidy, index=index, first=first))
                first = False

    def _forget(self) -> None:
        """Nothing of an import is left to go on with."""
        while self._write(sql.forget_seen):
            pass
        self._database.write_sync(lambda connection: store.drop_state(connection, _STATE))
