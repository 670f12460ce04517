"""`hearth import-wiki`: fill the local wiki from a MediaWiki XML export, or from a folder of files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import click
import msgspec
from tqdm import tqdm

from gateway.base.private import make_private
from gateway.cli.common.files import locked, opened_database
from gateway.cli.common.options import LocalOptions, json_option, with_local
from gateway.cli.common.text import say, table
from gateway.cli.imports.dump_url import Download, DownloadError, Events
from gateway.config.settings import Settings
from gateway.store.db import Database
from gateway.store.wiki.pages import other_origins
from gateway.wiki.dumps.compressed import open_dump
from gateway.wiki.dumps.dump import DumpError
from gateway.wiki.dumps.importer import Importer, ImportOptions, ImportProgress, ImportReport, origin_of
from gateway.wiki.folder.importer import import_folder
from gateway.wiki.sites import own_address, page_address

_FOLDER = "imports"


@click.command("import-wiki")
@click.argument("source", metavar="FILE|URL|FOLDER")
@click.option(
    "--namespace",
    "namespaces",
    type=int,
    multiple=True,
    help="Number of a namespace to import; may be repeated. Default: 0 (articles).",
)
@click.option("--prune", is_flag=True, help="Remove pages of this wiki that the source no longer contains.")
@click.option("--name", help="Name of a folder's wiki. Default: the folder's own.")
@click.option(
    "--language",
    default="en",
    show_default=True,
    help="Which of a folder's files to take that exist in several languages (intro.de.html, intro.en.html).",
)
@click.option("--quiet", is_flag=True, help="Print only errors.")
@json_option
@with_local
def import_wiki(
    source: str,
    namespaces: tuple[int, ...],
    prune: bool,
    name: str | None,
    language: str,
    quiet: bool,
    as_json: bool,
    local: LocalOptions,
) -> None:
    """Import a MediaWiki XML export (.xml, .gz, .bz2, .zst) into the local wiki, or a folder of HTML, Markdown or text.

    The server may be running. Run the same command again to resume an interrupted download or import. A newer
    export of the same wiki, or a folder whose files changed, updates only the pages that changed.
    """
    settings = local.settings
    options = ImportOptions(frozenset(namespaces or (0,)), prune)
    bar = Bar(shown=not (quiet or as_json), talkative=not quiet)
    started = time.monotonic()
    with ExitStack() as stack:
        stack.callback(bar.close)
        make_private(folder := settings.data_dir / _FOLDER)
        busy = "another `hearth import-wiki` is using this data directory: wait until it ends, or stop it"
        stack.enter_context(locked(folder / "lock", DownloadError(busy, code="import_running", status=503)))
        path, download = _local(source, settings, bar)
        database = stack.enter_context(opened_database(settings.database_path))
        if path.is_dir():
            report = import_folder(
                database,
                path,
                name=name or path.resolve().name,
                language=language,
                prune=prune,
                begin=bar.begin,
                on_progress=bar.imported,
            )
        else:
            report = _import(database, path, source, options, bar, download)
        others = database.read_sync(lambda connection: other_origins(connection, origin_of(report.site)))
    seconds = time.monotonic() - started
    if as_json:
        say({**msgspec.to_builtins(report), "seconds": round(seconds, 3)})
    elif not quiet:
        say(_report_text(report, source, seconds))
    for notice in _notices(report, settings, others):
        bar.say(notice)


def _local(source: str, settings: Settings, bar: Bar) -> tuple[Path, Download | None]:
    """Return the dump's file on this machine, and the download it came from."""
    if not source.lower().startswith(("http://", "https://")):
        return Path(source), None
    download = Download(source, settings.data_dir / _FOLDER, private=settings.wiki.private_address)
    return download.fetch(Events(bar.downloaded, bar.say)), download


def _import(
    database: Database, path: Path, source: str, options: ImportOptions, bar: Bar, download: Download | None
) -> ImportReport:
    try:
        with open_dump(path) as dump:
            bar.begin(dump.size)
            report = Importer(database, options, bar.imported).run(dump)
    except DumpError as error:
        if download is not None:
            download.remove()
        error.message = f"{source}: {error.message}" + ("; what came before is stored" if bar.pages else "")
        raise
    except KeyboardInterrupt:
        bar.say(f"stopped after {bar.pages} pages: run the same command to resume")
        raise
    if download is not None:
        download.remove()
    return report


class Bar:
    """A progress bar on stderr, which counts bytes because the number of pages is known only at the end.

    It is visible if ``shown`` and stderr is a terminal. A ``talkative`` one also prints sentences.
    """

    def __init__(self, *, shown: bool, talkative: bool) -> None:
        self._off = None if shown else True  # None: tqdm checks whether stderr is a terminal
        self._talkative = talkative
        self._tqdm: tqdm[NoReturn] | None = None
        self._started = 0.0
        self._first = -1
        self.pages = 0  # read so far, including an earlier run

    def begin(self, size: int, label: str = "importing", initial: int = 0) -> None:
        """Begin a bar for ``size`` bytes (0: unknown), ``initial`` of which are done."""
        self.close()
        self._tqdm = tqdm(
            total=size or None,
            initial=initial,
            unit="B",
            unit_scale=True,
            desc=label,
            leave=False,
            disable=self._off,
        )
        self._started, self._first = time.monotonic(), -1

    def close(self) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
            self._tqdm = None

    def downloaded(self, have: int, total: int) -> None:
        """Show a download of ``total`` bytes (0: unknown)."""
        if self._tqdm is None:
            self.begin(total, "downloading", have)
        self._move(have)

    def imported(self, progress: ImportProgress) -> None:
        self.pages = progress.pages
        if self._tqdm is None or self._tqdm.disable:
            return
        if self._first < 0:
            self._first = progress.pages
        seconds = time.monotonic() - self._started
        rate = (progress.pages - self._first) / seconds if seconds > 0 else 0.0
        self._tqdm.set_description(progress.stage, refresh=False)
        self._tqdm.set_postfix_str(f"{progress.pages} pages, {rate:.0f} pages/s", refresh=False)
        self._move(progress.position)

    def say(self, sentence: str) -> None:
        """Print a sentence without breaking the bar."""
        if self._talkative:
            with tqdm.external_write_mode():
                say(sentence, err=True)

    def _move(self, position: int) -> None:
        if self._tqdm is not None:
            self._tqdm.update(position - self._tqdm.n)


def _report_text(report: ImportReport, source: str, seconds: float) -> str:
    counts = report.counts
    read = counts.added + counts.updated + counts.unchanged + counts.redirects
    read += counts.other_namespaces + counts.not_wikitext + counts.deleted + counts.failed
    name = report.site.sitename or report.site.dbname
    outcomes = ("added", "updated", "unchanged", "failed", "removed")
    rows = [[outcome, str(getattr(counts, outcome))] for outcome in outcomes]
    if counts.redirects:
        rows.append(["redirects", f"{counts.redirects}, {counts.redirects_changed} of them new or changed"])
    left_out = {
        "in other namespaces": counts.other_namespaces,
        "not wikitext": counts.not_wikitext,
        "text deleted": counts.deleted,
    }
    rows += [[name, str(count)] for name, count in left_out.items() if count]
    lines = [
        f"{name or source}: {read} pages read in {seconds:.1f} s"
        + (f", {report.resumed_after} of them by an earlier run" if report.resumed_after else ""),
        table(rows),
    ]
    lines += [f"failed: {failure.title}: {failure.reason}" for failure in counts.failures]
    if counts.failed > len(counts.failures):
        lines.append(f"and {counts.failed - len(counts.failures)} more that failed")
    return "\n".join(lines)


def _notices(report: ImportReport, settings: Settings, others: Mapping[str, int]) -> Iterator[str]:
    """Notices: the sample was removed, links lead elsewhere, or two wikis are mixed."""
    if report.counts.sample_removed:
        yield (
            f"the import replaced the built-in sample wiki ({report.counts.sample_removed} pages and redirects), "
            "which is not loaded again"
        )
    address = page_address(report.site.base)
    if settings.wiki.page_url and address and address != settings.wiki.page_url:
        yield (
            f"citations link to {settings.wiki.page_url}, as wiki.page_url says, "
            f"but this wiki's pages are at {address}: remove the setting"
        )
    if not settings.wiki.page_url and not address:
        yield (
            f"citations link to {own_address(settings.server)}, because nothing says where the wiki is: "
            "set wiki.page_url if people read it elsewhere, or reach this server by another name"
        )
    for origin, count in others.items():
        yield (
            f"the store also has {count} pages and redirects of `{origin}`; where titles are the same, the page "
            "imported last replaces the other"
        )
