"""SQL of vectors in general: the extension sqlite-vec, and the space that all stored vectors belong to."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import apsw
from msgspec import Struct

from gateway.errors import HearthError
from gateway.store.rows import columns, load_one

PASSAGE_TABLE = "wiki_vectors"


class Space(Struct, frozen=True):
    """What the stored vectors were made with; ``identity`` is the configured model's when that was last checked."""

    name: str
    dimensions: int
    identity: str


def use_extension(connection: apsw.Connection) -> None:
    """Make sqlite-vec's functions and tables usable on this connection. Raises HearthError where it cannot run."""
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
    """Path of the library. The package itself is not imported: it would import numpy, which nobody here needs."""
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
    """The space of the stored vectors; None before there were any."""
    return load_one(Space, connection.execute(f"SELECT {columns(Space)} FROM vector_space"))


def has_vectors(connection: apsw.Connection) -> bool:
    """Whether any vectors were ever stored."""
    return get_space(connection) is not None


def use_space(connection: apsw.Connection, space: Space) -> bool:
    """Vectors of ``space`` are stored from now on. Those of another one are dropped; then returns True."""
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
    connection.execute(f"DROP TABLE IF EXISTS {PASSAGE_TABLE}")
    connection.execute(
        f"CREATE VIRTUAL TABLE {PASSAGE_TABLE} USING "
        f"vec0(passage INTEGER PRIMARY KEY, vector float[{space.dimensions}] distance_metric=cosine)"
    )
    connection.execute("DELETE FROM wiki_embedded")
    connection.execute("DELETE FROM wiki_passages_gone")
    connection.execute("DELETE FROM fact_vectors")
    return known is not None
