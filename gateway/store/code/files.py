"""SQL of the files of projects, their definitions, the names of both, and what is found in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import apsw
from msgspec import Struct
from msgspec.structs import asdict

from gateway.store.rows import as_json, column, insert, select, select_one, update

TEXT_INDEX = "code_text"


class FileRow(Struct, frozen=True):
    """An indexed file of a project."""

    id: int
    path: str
    module: str
    language: str
    hash: bytes
    size: int
    mtime_ns: int
    version: int  # of the indexer that parsed it


class NewDefinition(Struct, frozen=True, kw_only=True):
    ordinal: int
    parent: int
    name: str
    qualified: str
    kind: str
    line: int
    end_line: int
    signature: str
    doc: str


class Part(Struct, frozen=True, kw_only=True):
    """A stretch of a file that full-text search finds."""

    title: str
    line: int
    end_line: int
    body: str


class NewSite(Struct, frozen=True, kw_only=True):
    """``edges`` are (target, origin, confidence)."""

    scope: int
    kind: str
    name: str
    receiver: str
    line: int
    column: int
    external: str | None
    edges: list[tuple[int, str, float]]


class Argument(Struct, frozen=True):
    """A definition, or what ``kind`` says of it, that goes to the parameter ``name`` of ``callee``; both are ids."""

    callee: int
    name: str
    value: int
    kind: str  # as in gateway.code.resolving.values.Value


def files_of(connection: apsw.Connection, project: str) -> list[FileRow]:
    return select(connection, FileRow, "code_files WHERE project = ? ORDER BY path", (project,))


def file_at(connection: apsw.Connection, project: str, path: str) -> FileRow | None:
    return select_one(connection, FileRow, "code_files WHERE project = ? AND path = ?", (project, path))


def files_named(connection: apsw.Connection, project: str, name: str) -> list[str]:
    """Paths of up to two files whose path is ``name`` or ends in it; one that is exactly that is the only one."""
    if file_at(connection, project, name) is not None:
        return [name]
    ends = "substr(path, -length(?2) - 1) = '/' || ?2"
    found = select(connection, FileRow, f"code_files WHERE project = ?1 AND {ends} LIMIT 2", (project, name))
    return [each.path for each in found]


def documents_of(connection: apsw.Connection, project: str, endings: Sequence[str]) -> list[str]:
    """Paths of the files whose name ends so, such as ``.md``."""
    any_of = " OR ".join("path LIKE '%' || ?" for _ in endings)
    return column(
        connection, f"SELECT path FROM code_files WHERE project = ? AND ({any_of})", (project, *endings)
    )


def facts_of(connection: apsw.Connection, digest: bytes) -> bytes | None:
    found = connection.execute("SELECT facts FROM code_facts WHERE hash = ?", (digest,)).get
    return found if isinstance(found, bytes) else None


def put_facts(connection: apsw.Connection, digest: bytes, facts: bytes) -> None:
    connection.execute("INSERT OR IGNORE INTO code_facts VALUES (?, ?)", (digest, facts))


def put_file(connection: apsw.Connection, project: str, row: FileRow) -> int:
    """Insert or update the file at its path and return its id, which stays the same; ``row.id`` is ignored.

    A file of code is to be resolved from then on.
    """
    known = file_at(connection, project, row.path)
    values = {**asdict(row), "project": project, "pending": row.module != ""}
    if known is None:
        del values["id"]
        return insert(connection, "code_files", values)
    update(connection, "code_files", {**values, "id": known.id}, "id", "project", "path")
    return known.id


def is_current(connection: apsw.Connection, row: FileRow) -> bool:
    """Whether the file is still there with this content."""
    found = connection.execute("SELECT hash FROM code_files WHERE id = ?", (row.id,)).get
    return bool(found == row.hash)


def pending_files(connection: apsw.Connection, project: str) -> set[int]:
    """Files that are to be resolved."""
    return set(column(connection, "SELECT id FROM code_files WHERE project = ? AND pending", (project,)))


def set_pending(connection: apsw.Connection, files: Iterable[int], *, pending: bool) -> None:
    connection.executemany(
        "UPDATE code_files SET pending = ? WHERE id = ?", ((pending, file) for file in files)
    )


def delete_files(connection: apsw.Connection, identities: Iterable[int]) -> None:
    connection.executemany("DELETE FROM code_files WHERE id = ?", ((each,) for each in identities))


def put_definitions(connection: apsw.Connection, file: int, rows: Sequence[NewDefinition]) -> None:
    """Replace the definitions of a file. Those of the same qualified name keep their ids, and so edges to them."""
    known: dict[str, list[int]] = {}
    for number, qualified in connection.execute(
        "SELECT id, qualified FROM code_definitions WHERE file = ? ORDER BY ordinal", (file,)
    ):
        known.setdefault(qualified, []).append(number)
    for row in rows:
        values = {**asdict(row), "file": file}
        if kept := known.get(row.qualified):
            update(connection, "code_definitions", {**values, "id": kept.pop(0)}, "id", "file")
        else:
            insert(connection, "code_definitions", values)
    gone = [(number,) for numbers in known.values() for number in numbers]
    connection.executemany("DELETE FROM code_definitions WHERE id = ?", gone)


def definition_names(connection: apsw.Connection, project: str) -> list[tuple[int, int, int, str]]:
    """File, ordinal and id of each definition of a project; the name of functions and classes, else ""."""
    rows = connection.execute(
        "SELECT file, ordinal, code_definitions.id, iif(kind IN ('class', 'function', 'method'), name, '') "
        "FROM code_files JOIN code_definitions ON file = code_files.id WHERE project = ?",
        (project,),
    )
    return list(rows)


def put_parts(connection: apsw.Connection, file: int, parts: Iterable[Part]) -> None:
    """Replace what a search finds in a file. Parts with the same text keep their ids, and so their vectors."""
    known: dict[object, list[int]] = {}
    for number, digest in connection.execute("SELECT id, digest FROM code_parts WHERE file = ?", (file,)):
        known.setdefault(digest, []).append(number)
    for part in parts:
        digest = hashlib.blake2b(f"{part.title}\0{part.body}".encode(), digest_size=16).digest()
        if kept := known.get(digest):
            values = (part.line, part.end_line, kept.pop())
            connection.execute("UPDATE code_parts SET line = ?, end_line = ? WHERE id = ?", values)
            continue
        row = asdict(part)
        text = {"title": part.title, "body": row.pop("body")}
        number = insert(connection, "code_parts", row, file=file, digest=digest)
        insert(connection, TEXT_INDEX, text, rowid=number)
    gone = [(number,) for numbers in known.values() for number in numbers]
    connection.executemany("DELETE FROM code_parts WHERE id = ?", gone)


def put_sites(
    connection: apsw.Connection,
    file: int,
    sites: Iterable[NewSite],
    lookups: Iterable[str],
    arguments: set[Argument],
) -> None:
    """Replace what resolving a file has found."""
    for table in ("code_sites", "code_lookups", "code_arguments"):
        connection.execute(f"DELETE FROM {table} WHERE file = ?", (file,))
    for site in sites:
        connection.execute(
            "INSERT INTO code_sites (file, scope, kind, name, receiver, line, column, external) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (file, site.scope, site.kind, site.name, site.receiver, site.line, site.column, site.external),
        )
        if site.edges:
            number = connection.last_insert_rowid()
            connection.executemany(
                # Another process may have removed the target.
                "INSERT OR IGNORE INTO code_edges SELECT ?1, id, ?3, ?4 FROM code_definitions WHERE id = ?2",
                ((number, *edge) for edge in site.edges),
            )
    connection.executemany("INSERT INTO code_lookups VALUES (?, ?)", ((name, file) for name in lookups))
    connection.executemany(
        "INSERT INTO code_arguments SELECT ?1, callee.id, ?3, value.id, ?5 FROM code_definitions AS callee "
        "JOIN code_definitions AS value ON value.id = ?4 WHERE callee.id = ?2",
        ((file, each.callee, each.name, each.value, each.kind) for each in arguments),
    )


def reopen_files_that_looked_up(connection: apsw.Connection, project: str, names: Iterable[str]) -> None:
    """Files whose resolution asked for one of these names are to be resolved again."""
    connection.execute(
        "UPDATE code_files SET pending = 1 WHERE project = ? AND id IN (SELECT file FROM json_each(?) AS wanted "
        "CROSS JOIN code_lookups ON name = wanted.value)",
        (project, as_json(list(names))),
    )


def arguments_of(connection: apsw.Connection, project: str) -> dict[int, set[Argument]]:
    """Arguments that each file passes to parameters."""
    rows = connection.execute(
        "SELECT file, callee, name, value, code_arguments.kind FROM code_files "
        "JOIN code_arguments ON file = code_files.id WHERE project = ?",
        (project,),
    )
    found: dict[int, set[Argument]] = {}
    for file, *values in rows:
        found.setdefault(file, set()).add(Argument(*values))
    return found


def paths_named(connection: apsw.Connection, project: str, name: str) -> list[str]:
    """The file at a path; else those whose paths, with or without the suffix, end in it."""
    found = column(
        connection,
        "SELECT path FROM code_files WHERE project = ?1 AND (?2 IN (path, module) "
        "OR '/' || ?2 IN (substr(path, -length(?2) - 1), substr(module, -length(?2) - 1))) ORDER BY path",
        (project, name),
    )
    return [name] if name in found else found


def exported(connection: apsw.Connection, project: str, module: str, name: str) -> list[str]:
    """The qualified names of what a module has imported under a name, or may have with all names of another."""
    return column(
        connection,
        "SELECT DISTINCT iif(t.kind = 'module', t.qualified || '.' || ?3, t.qualified) "
        "FROM code_definitions AS m JOIN code_files AS f ON f.id = m.file AND m.kind = 'module' "
        "JOIN code_sites AS s ON s.file = f.id "
        "AND s.scope = 0 AND s.kind = 'import' JOIN code_edges AS e ON e.site = s.id "
        "JOIN code_definitions AS t ON t.id = e.target "
        "WHERE m.name = ?4 AND f.project = ?1 AND m.qualified = ?2 AND (t.kind = 'module' OR s.name = ?3)",
        (project, module, name, module.rpartition(".")[2]),
    )


def names_like(connection: apsw.Connection, project: str, name: str) -> list[str]:
    """Names of definitions that begin like this one and are about as long."""
    return column(
        connection,
        "SELECT DISTINCT code_definitions.name FROM code_files JOIN code_definitions ON file = code_files.id "
        "WHERE project = ?1 AND kind <> 'lambda' AND lower(substr(code_definitions.name, 1, 1)) = "
        "lower(substr(?2, 1, 1)) AND abs(length(code_definitions.name) - length(?2)) <= 3",
        (project, name),
    )
