"""Load the sample wiki into an empty store and keep it up to date; never mix it with imported pages."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from pathlib import Path
from urllib.parse import unquote

import apsw
import msgspec

from gateway.base.errors import ConfigurationError
from gateway.store.db import Database
from gateway.store.wiki import pages as store
from gateway.store.wiki.pages import Known, known_names
from gateway.wiki.dumps.batch import plan
from gateway.wiki.dumps.dump import DumpPage
from gateway.wiki.ingest import put
from gateway.wiki.wikitext import extract

ORIGIN = "sample"
_MARKER = "sample"
_REPLACED = "replaced"  # by an import: never load the sample again


async def load_sample(database: Database, folder: Path) -> int:
    """Update the store from ``folder/*.wiki``; returns how many pages and redirects changed.

    Does nothing when this sample is loaded already, an import has replaced it, or the store has other pages. Raises
    ConfigurationError when the folder cannot be read or is empty.
    """
    files = await asyncio.to_thread(_read, folder)
    marker = _digest(files)

    def known(connection: apsw.Connection) -> dict[str, Known] | None:
        """The sample's names; None when there is nothing to do."""
        stored = store.get_state(connection, _MARKER)
        if stored in (marker, _REPLACED) or store.has_other_origin(connection, ORIGIN):
            return None
        return known_names(connection, files, ORIGIN)

    present = await database.read(known)
    if present is None:
        return 0
    pages = [
        DumpPage(number=number, title=title, namespace=0, revision=_revision(text), model="", text=text)
        for number, (title, text) in enumerate(files.items(), 1)
    ]
    items, counts = await asyncio.to_thread(plan, pages, present, frozenset({0}))
    assert not counts.failed, counts.failures

    def update(connection: apsw.Connection) -> int:
        if known(connection) is None:  # an import was faster
            return 0
        gone = store.names_of(connection, ORIGIN).keys() - files.keys()
        for title in gone:
            store.delete_title(connection, title)
        for item in items:
            put(connection, item, ORIGIN)
        store.set_state(connection, _MARKER, marker)
        return len(gone) + len(items)

    return await database.write(update)


def replace_sample(connection: apsw.Connection) -> int:
    """Remove the sample permanently; returns how many pages and redirects it had."""
    names = store.names_of(connection, ORIGIN)
    for title in names:
        store.delete_title(connection, title)
    store.set_state(connection, _MARKER, _REPLACED)
    return len(names)


def sample_loaded(connection: apsw.Connection) -> bool:
    """Whether the store has the sample, so nothing else."""
    return store.get_state(connection, _MARKER) not in (None, _REPLACED)


def _read(folder: Path) -> dict[str, str]:
    try:
        files = {
            unquote(file.stem).replace("_", " "): file.read_text(encoding="utf-8")
            for file in sorted(folder.glob("*.wiki"))
        }
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the sample wiki in {folder} cannot be read: {error}") from error
    if not files:
        raise ConfigurationError(
            f"the sample wiki is missing from {folder}: install hearth again, or set wiki.load_sample to false"
        )
    return files


def _revision(text: str) -> int:
    """A number derived from the text."""
    return 1 + (zlib.crc32(text.encode("utf-8")) & 0x7FFFFFFF)


def _digest(files: dict[str, str]) -> str:
    """``VERSION:hash`` of the whole sample."""
    data = msgspec.json.encode(sorted(files.items()))
    return f"{extract.VERSION}:{hashlib.blake2b(data, digest_size=16).hexdigest()}"
