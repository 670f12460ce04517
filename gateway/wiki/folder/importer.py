"""Import a folder's pages into the store. A file whose content is the same is not written again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.store.db import Database
from gateway.store.wiki import pages as sql
from gateway.wiki.dumps.batch import Counts
from gateway.wiki.dumps.dump import SiteInfo
from gateway.wiki.dumps.importer import ImportProgress, ImportReport, origin_of
from gateway.wiki.dumps.sample import replace_sample
from gateway.wiki.dumps.writer import Writer
from gateway.wiki.folder.files import (
    MARKDOWN,
    MAX_BYTES,
    TEXT,
    PageFile,
    page_files,
    read_text,
    without_numbers,
)
from gateway.wiki.folder.frame import SAMPLE, frame_lines, without_frame
from gateway.wiki.folder.markdown import extract_markdown
from gateway.wiki.folder.split import Titles, is_long, parts
from gateway.wiki.folder.text import extract_text
from gateway.wiki.html.page import VERSION, extract_html
from gateway.wiki.ingest import Gone, Item, page_of, put
from gateway.wiki.sites import named_site, put_site
from gateway.wiki.source import Section

_BATCH = 64  # files a transaction
# Of both readers: a file that another version read is read again.
_VERSION = 10 * VERSION + 2


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
        raise InvalidRequestError(f"{folder} has no HTML, Markdown or text file{unread}", param="source")
    if prune and counts.failed:
        first = counts.failures[0]
        raise InvalidRequestError(
            f"{first.title} {first.reason}: without its titles, --prune would remove its pages", param="prune"
        )
    sizes = [_size(file.path) for file in files]
    begin(sum(sizes))
    origin, titles = origin_of(site), Titles(files)
    frame = _frame(files)
    for start in range(0, len(files), _BATCH):
        batch = files[start : start + _BATCH]
        by_file = {file.title: _pages(file, titles, frame, sum(sizes), counts) for file in batch}
        pages = [page for each in by_file.values() for page in each]
        names = [*by_file, *(page.title for page in pages)]
        known = database.read_sync(partial(sql.known_names, titles=names, origin=origin))
        items: list[Item] = [
            item for page in pages if (item := _item(page, known.get(page.title), counts)) is not None
        ]
        # A file that was short has left a page of its title, which a long one without a lead does not have.
        split = [
            title for title, each in by_file.items() if each and each[0].title != title and title in known
        ]
        counts.removed += len(split)
        items += map(Gone, split)
        writer.write(partial(_store, items=items, site=site, counts=counts))
        done = start + len(batch)
        on_progress(ImportProgress(sum(sizes[:done]), done, "importing"))
    if prune:
        writer.write(lambda connection: sql.add_seen(connection, titles.given))
        counts.removed = writer.prune(origin)
    if counts.changed:
        writer.tidy()
    return ImportReport(site, counts)


class _Page(Struct, frozen=True):
    title: str
    revision: int
    size: int  # bytes
    sections: Callable[[], list[Section]]


def _frame(files: Sequence[PageFile]) -> frozenset[str]:
    """The lines that most pages of the folder begin or end with, by a sample of them."""
    pages = []
    for file in files[:: -(-len(files) // SAMPLE)]:
        with suppress(OSError):
            pages.append(_read(file, read_text(file.path)))
    return frame_lines(pages)


def _pages(file: PageFile, titles: Titles, frame: frozenset[str], folder: int, counts: Counts) -> list[_Page]:
    """The pages of a file. One that is too short to be split is read only if its page is not known."""
    try:
        size = file.path.stat().st_size
        if size > MAX_BYTES:
            counts.fail(file.title, f"{file.path.name} is larger than {MAX_BYTES // 2**20} MiB")
            return []
        text = read_text(file.path)
    except OSError as error:
        counts.fail(file.title, f"{file.path.name} {_unreadable(error)}")
        return []
    if not is_long(text, size, folder):
        return [
            _Page(
                file.title,
                _revision(f"{text}{sorted(frame)}".encode("utf-8", "replace")),
                size,
                lambda: without_frame(_read(file, text), frame),
            )
        ]
    pages = []
    for part in parts(without_frame(_read(file, text), frame)):
        data = msgspec.json.encode(part.sections)
        title = titles.of(file, part)
        pages.append(_Page(title, _revision(data), len(data), partial(list, part.sections)))
    return pages


def _read(file: PageFile, text: str) -> list[Section]:
    """Sections without the numbers of a manual; the section under the page's own title is the lead."""
    kind = file.path.suffix.lower()
    read = extract_markdown if kind in MARKDOWN else extract_text if kind in TEXT else extract_html
    found = without_numbers(read(text))
    if len(found) > 1 and not found[0].text and file.title.startswith(found[1].heading):
        found[:2] = [Section("", "", 1, found[1].text)]
    return found


def _revision(data: bytes) -> int:
    """The content's hash stands for a revision: positive, in 63 bits."""
    return int.from_bytes(hashlib.sha256(data).digest()[:7]) + 1


def _item(page: _Page, known: sql.Known | None, counts: Counts) -> Item | None:
    if known is not None and (known.revision, known.extractor) == (page.revision, _VERSION):
        counts.unchanged += 1
        return None
    is_update = known is not None and known.revision is not None
    counts.updated += is_update
    counts.added += not is_update
    return page_of(page.title, page.revision, page.sections(), page.size, _VERSION)


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
