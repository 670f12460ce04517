"""SQL common to all vectors: the extension sqlite-vec, and the space of the stored vectors."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import apsw
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.store.rows import select_one


class PageTables(Struct, frozen=True):
    """Table names of one kind of pages: pages, embedded pages, passages, deleted passages, vectors."""

    pages: str
    embedded: str
    passages: str
    gone: str
    vectors: str


IMPORTED = PageTables("wiki_pages", "wiki_embedded", "wiki_passages", "wiki_passages_gone", "wiki_vectors")
FETCHED = PageTables(
    "wiki_fetched",
    "wiki_fetched_embedded",
    "wiki_fetched_passages",
    "wiki_fetched_gone",
    "wiki_fetched_vectors",
)
_ALL_PAGES = (IMPORTED, FETCHED)


class Space(Struct, frozen=True):
    """The model that made the stored vectors; ``identity`` is the one it had at the last check."""

    name: str
    dimensions: int
    identity: str


def use_extension(connection: apsw.Connection) -> None:
    """Load sqlite-vec into this connection. Raises HearthError where it cannot run."""
    try:
        connection.execute("SELECT vec_version()")
        return
    except apsw.SQLError:  # not loaded yet
        pass
    try:
        connection.enable_load_extension(True)
        connection.load_extension(_extension())
    except apsw.ExtensionLoadingError as error:
        raise _unusable(error) from error
    finally:
        connection.enable_load_extension(False)


def _extension() -> str:
    """Path of the library. Importing the package would import numpy, which the gateway must not."""
    spec = find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        raise _unusable("it is not installed")
    return str(Path(spec.origin).with_name("vec0"))


def _unusable(why: object) -> HearthError:
    return HearthError(
        f"the SQLite extension sqlite-vec cannot be loaded ({why}): install hearth again, or leave "
        "`embedding.model` empty",
        code="vectors_unavailable",
    )


def get_space(connection: apsw.Connection) -> Space | None:
    """The space of the stored vectors; None before the first one."""
    return select_one(connection, Space, "vector_space")


def has_vectors(connection: apsw.Connection) -> bool:
    """Whether any vectors were ever stored."""
    return get_space(connection) is not None


def can_search(connection: apsw.Connection, space: str) -> bool:
    """Whether the stored vectors belong to this space; if so, load the extension."""
    known = get_space(connection)
    if known is None or known.name != space:
        return False
    use_extension(connection)
    return True


def use_space(connection: apsw.Connection, space: Space) -> bool:
    """Store vectors of ``space`` from now on. Drops those of another space; then returns True."""
    known = get_space(connection)
    if known == space:
        return False
    connection.execute(
        "INSERT OR REPLACE INTO vector_space VALUES (1, ?, ?, ?)",
        (space.name, space.dimensions, space.identity),
    )
    if known is not None and known.name == space.name:
        return False
    use_extension(connection)
    for tables in _ALL_PAGES:
        connection.execute(f"DROP TABLE IF EXISTS {tables.vectors}")
        connection.execute(f"DELETE FROM {tables.embedded}")
        connection.execute(f"DELETE FROM {tables.gone}")
        make_table(connection, tables, space.dimensions)
    connection.execute("DELETE FROM fact_vectors")
    connection.execute("DELETE FROM message_vectors")
    connection.execute("DELETE FROM code_vectors")
    return known is not None


def make_table(connection: apsw.Connection, tables: PageTables, dimensions: int) -> None:
    """Create the table of these pages' vectors if it is missing. Needs :func:`use_extension`."""
    connection.execute(
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {tables.vectors} USING "
        f"vec0(passage INTEGER PRIMARY KEY, vector float[{dimensions}] distance_metric=cosine)"
    )
