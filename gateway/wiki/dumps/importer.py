"""Import a dump into the store, batch by batch; an interrupted import resumes.

A batch is one transaction, which includes the import's progress. While the writer thread stores a batch, the next one
is parsed and extracted: SQLite releases the GIL, so this uses two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.store.db import Database
from gateway.store.wiki import pages as store
from gateway.wiki.dumps.batch import Counts, plan
from gateway.wiki.dumps.compressed import DumpFile
from gateway.wiki.dumps.dump import DumpError, DumpPage, DumpParser, SiteInfo
from gateway.wiki.dumps.sample import replace_sample
from gateway.wiki.dumps.writer import Writer
from gateway.wiki.ingest import Item, put
from gateway.wiki.sites import named_site, put_site
from gateway.wiki.wikitext import extract

_STATE = "import"
# Limits of a batch: storing it holds the writer lock for a fraction of a second.
_BATCH_PAGES = 256
_BATCH_CHARACTERS = 512 * 1024


class ImportOptions(Struct, frozen=True):
    """``prune`` removes pages of the same wiki that the dump no longer has."""

    namespaces: frozenset[int] = frozenset({0})
    prune: bool = False


class ImportReport(Struct):
    """The result of an import. An earlier run imported ``resumed_after`` pages; its counts are included."""

    site: SiteInfo
    counts: Counts
    resumed_after: int = 0


class ImportProgress(Struct, frozen=True):
    """``position`` is in bytes of the compressed file."""

    position: int
    pages: int
    stage: str


class _State(Struct):
    """The stored progress of an unfinished import. ``job`` identifies the file and the options."""

    job: str
    done: int
    counts: Counts


def origin_of(site: SiteInfo) -> str:
    """The name under which the pages of a wiki are stored, the same for all of its dumps."""
    return "dump:" + (site.dbname or site.base or site.sitename or "unnamed")


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
        self._batch: list[DumpPage] = []
        self._batch_characters = 0
        self._counts = Counts()
        self._sample_is_gone = False
        self._site_is_stored = False
        self._job = ""
        self._writer = Writer(database)

    def run(self, dump: DumpFile) -> ImportReport:
        """Import the whole dump. Raises DumpError for a bad file; the pages before the fault are stored.

        KeyboardInterrupt and HearthError leave the store consistent; running the same import again resumes it.
        """
        options = f"{sorted(self._options.namespaces)}{self._options.prune}"
        self._job = f"{dump.identity} {options} {extract.VERSION}"
        resumed = self._resume()
        parser = DumpParser(skip=resumed)
        with self._pool:
            try:
                self._read(dump, parser)
            finally:
                self._wait()
            if not parser.pages:
                raise DumpError("the export has no pages: hearth reads exports of pages")
            self._finish(dump, parser)
        return ImportReport(parser.site, self._counts, resumed)

    def _resume(self) -> int:
        """How many pages an earlier run of this job has imported; drops the progress of any other job."""
        stored = self._database.read_sync(lambda connection: store.get_state(connection, _STATE))
        self._database.write_sync(store.begin_bulk)
        try:
            state = msgspec.json.decode(stored, type=_State) if stored else None
        except msgspec.DecodeError:  # of another version of hearth
            state = None
        if state is not None and state.job == self._job:
            self._counts = state.counts
            return state.done
        self._forget()
        return 0

    def _read(self, dump: DumpFile, parser: DumpParser) -> None:
        try:
            for piece in dump.pieces():
                self._add(parser.feed(piece), parser)
                self._report(dump.position, parser, "importing")
            parser.close()
        except (DumpError, EOFError) as error:  # EOFError: a compressed file ends early
            self._add(parser.take(), parser)
            self._flush(parser)
            self._report(dump.position, parser, "importing")
            raise parser.truncated() if isinstance(error, EOFError) else error from None
        self._flush(parser)

    def _report(self, position: int, parser: DumpParser, stage: str) -> None:
        self._on_progress(ImportProgress(position, parser.pages, stage))

    def _add(self, pages: list[DumpPage], parser: DumpParser) -> None:
        for page in pages:
            if page.number == 1:
                self._check_namespaces(parser.site)
            self._batch.append(page)
            self._batch_characters += len(page.text)
            if len(self._batch) >= _BATCH_PAGES or self._batch_characters >= _BATCH_CHARACTERS:
                self._flush(parser)

    def _check_namespaces(self, site: SiteInfo) -> None:
        missing = sorted(self._options.namespaces - site.namespaces.keys())
        if site.namespaces and missing:
            known = ", ".join(
                f"{number} ({name or 'main'})" for number, name in sorted(site.namespaces.items())
            )
            raise InvalidRequestError(
                f"--namespace {missing[0]}: the wiki has no such namespace; it has {known}", param="namespace"
            )

    def _flush(self, parser: DumpParser) -> None:
        """Extract the batch while the previous one is being written, then hand it to the writer thread."""
        pages, self._batch, self._batch_characters = self._batch, [], 0
        if not pages:
            return
        origin, titles = origin_of(parser.site), [page.title for page in pages]
        known = self._database.read_sync(lambda connection: store.known_names(connection, titles, origin))
        items, counts = plan(pages, known, self._options.namespaces)
        self._wait()
        self._counts.add(counts)
        state = _State(self._job, pages[-1].number, self._counts)
        self._pending = self._pool.submit(
            self._writer.write, lambda connection: self._store(connection, items, parser.site, titles, state)
        )

    def _store(
        self, connection: apsw.Connection, items: list[Item], site: SiteInfo, titles: list[str], state: _State
    ) -> None:
        """Write in one transaction of the writer thread, which owns the counts until :meth:`_wait`."""
        if items and not self._sample_is_gone:
            state.counts.sample_removed += replace_sample(connection)
            self._sample_is_gone = True
        if not self._site_is_stored:
            put_site(connection, origin_of(site), named_site(site.sitename, site.base))
            self._site_is_stored = True
        for item in items:
            put(connection, item, origin_of(site))
        if self._options.prune:
            store.add_seen(connection, titles)
        store.set_state(connection, _STATE, msgspec.json.encode(state).decode())

    def _wait(self) -> None:
        """Wait for the batch that is being written. Raises its error."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _finish(self, dump: DumpFile, parser: DumpParser) -> None:
        if self._options.prune:
            self._report(dump.size, parser, "removing what is gone")
            self._counts.removed += self._writer.prune(origin_of(parser.site))
        if self._counts.changed:
            self._report(dump.size, parser, "tidying the search index")
            self._writer.tidy()
        self._forget()

    def _forget(self) -> None:
        self._writer.forget_seen()
        self._database.write_sync(lambda connection: store.drop_state(connection, _STATE))
