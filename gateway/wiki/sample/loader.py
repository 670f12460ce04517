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
from gateway.wiki.ingest import NewRedirect, prepare, put
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
    present = await database.read(lambda connection: _present(connection, marker))
    if present is None:
        return 0
    changed = {title: text for title, text in files.items() if present.get(title) != _revision(text)}
    items = await asyncio.to_thread(
        lambda: [prepare(title, _revision(text), text) for title, text in changed.items()]
    )
    return await database.write(lambda connection: _store(connection, items, set(files), marker))


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


def _present(connection: apsw.Connection, marker: str) -> dict[str, int] | None:
    """Revisions of the stored sample pages that are still valid; None when there is nothing to do."""
    stored = store.get_state(connection, _MARKER)
    if stored in (marker, _REPLACED) or store.has_other_origin(connection, ORIGIN):
        return None
    if stored is None or stored.partition(":")[0] != marker.partition(":")[0]:
        return {}  # extracted by another version of hearth
    return store.revisions_of(connection, ORIGIN)


def _store(
    connection: apsw.Connection, items: list[store.NewPage | NewRedirect], titles: set[str], marker: str
) -> int:
    if store.has_other_origin(connection, ORIGIN) or store.get_state(connection, _MARKER) == _REPLACED:
        return 0  # an import was faster
    names = store.names_of(connection, ORIGIN)
    gone = names.keys() - titles
    new = [
        item for item in items if not (isinstance(item, NewRedirect) and names.get(item.title) == item.target)
    ]
    for title in gone:
        store.delete_title(connection, title)
    for item in new:
        put(connection, item, ORIGIN)
    store.set_state(connection, _MARKER, marker)
    return len(gone) + len(new)


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
