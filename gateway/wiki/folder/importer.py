"""Import a folder's pages into the store. A file whose content is the same is not written again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import apsw

from gateway.base.errors import InvalidRequestError
from gateway.store.db import Database
from gateway.store.wiki import imports as sql
from gateway.wiki.dumps.batch import Counts
from gateway.wiki.dumps.dump import SiteInfo
from gateway.wiki.dumps.importer import ImportProgress, ImportReport, origin_of
from gateway.wiki.dumps.sample import replace_sample
from gateway.wiki.dumps.writer import Writer
from gateway.wiki.folder.files import MARKDOWN, MAX_BYTES, PageFile, page_files, read_text, unnumbered
from gateway.wiki.folder.markdown import extract_markdown
from gateway.wiki.html import page as html
from gateway.wiki.ingest import Item, page_of, put
from gateway.wiki.sites import named_site, put_site
from gateway.wiki.source import Section

_BATCH = 64  # files a transaction
# Of both readers: a file that another version read is read again.
_VERSION = 10 * html.VERSION + 2


def import_folder(
    database: Database,
    folder: Path,
    *,
    name: str,
    language: str,
    prune: bool,
    begin: Callable[[int], None],
    on_progress: Callable[[ImportProgress], None],
) -> ImportReport:
    """Store the pages of a folder as the wiki ``name``; ``prune`` removes those whose files are gone.

    ``begin`` is told the bytes of all files before the first one is read. Raises InvalidRequestError if there is no
    page, or if ``prune`` could remove pages of files that cannot be read.
    """
    site, counts, writer = SiteInfo(sitename=name), Counts(), Writer(database)
    files = page_files(folder, language, lambda error: counts.fail(str(error.filename), _unreadable(error)))
    if not files:
        unread = f"; {counts.failed} could not be read" if counts.failed else ""
        raise InvalidRequestError(f"{folder} has no HTML or Markdown file{unread}", param="source")
    if prune and counts.failed:
        first = counts.failures[0]
        raise InvalidRequestError(
            f"{first.title} {first.reason}: without its titles, --prune would remove its pages", param="prune"
        )
    sizes = [_size(file.path) for file in files]
    begin(sum(sizes))
    origin, titles = origin_of(site), [file.title for file in files]
    known = database.read_sync(lambda connection: sql.known_names(connection, titles, origin))
    for start in range(0, len(files), _BATCH):
        batch = files[start : start + _BATCH]
        items = [
            item for file in batch if (item := _prepare(file, known.get(file.title), counts)) is not None
        ]
        writer.write(partial(_store, items=items, site=site, counts=counts))
        done = start + len(batch)
        on_progress(ImportProgress(sum(sizes[:done]), done, "importing"))
    if prune:
        writer.write(lambda connection: sql.add_seen(connection, titles))
        counts.removed = writer.prune(origin)
    if counts.changed:
        writer.tidy()
    return ImportReport(site, counts)


def sections_of(path: Path, title: str, text: str) -> list[Section]:
    """Sections without the numbers of a manual; the section under the page's own title is the lead."""
    found = extract_markdown(text) if path.suffix.lower() in MARKDOWN else html.extract_html(text)
    found = [Section(unnumbered(each.heading), each.anchor, each.level, each.text) for each in found]
    if len(found) > 1 and not found[0].text and title.startswith(found[1].heading):
        found[:2] = [Section("", "", 1, found[1].text)]
    return found


def _prepare(file: PageFile, known: sql.Known | None, counts: Counts) -> Item | None:
    try:
        size = file.path.stat().st_size
        if size > MAX_BYTES:
            counts.fail(file.title, f"{file.path.name} is larger than {MAX_BYTES // 2**20} MiB")
            return None
        text = read_text(file.path)
    except OSError as error:
        counts.fail(file.title, f"{file.path.name} {_unreadable(error)}")
        return None
    # The content's hash stands for a revision: positive, in 63 bits.
    revision = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:7]) + 1
    if known is not None and (known.revision, known.extractor) == (revision, _VERSION):
        counts.unchanged += 1
        return None
    is_update = known is not None and known.revision is not None
    counts.updated += is_update
    counts.added += not is_update
    return page_of(file.title, revision, sections_of(file.path, file.title, text), size, _VERSION)


def _size(path: Path) -> int:
    with suppress(OSError):  # it is gone; reading it says so
        return path.stat().st_size
    return 0


def _unreadable(error: OSError) -> str:
    return f"cannot be read ({error.strerror})"


def _store(connection: apsw.Connection, items: list[Item], site: SiteInfo, counts: Counts) -> None:
    if items:
        counts.sample_removed += replace_sample(connection)
    put_site(connection, origin_of(site), named_site(site.sitename, site.base))
    for item in items:
        put(connection, item, origin_of(site))
