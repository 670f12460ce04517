"""SQL of the registry of projects."""

from __future__ import annotations

import secrets
import time

import apsw
from msgspec import Struct

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.store.rows import as_json, insert, select, select_one


class CodeProject(Struct, frozen=True, kw_only=True):
    """A registered folder. ``docs``: its documents alone are indexed; ``problem`` says why it is not up to date."""

    id: str
    name: str
    path: str
    docs: bool = False
    excludes: list[str] = []
    created_at: float
    used_at: float
    indexed_at: float | None = None
    files: int = 0
    definitions: int = 0
    size: int = 0
    problem: str | None = None


def add_project(
    connection: apsw.Connection, path: str, name: str, excludes: list[str], docs: bool
) -> CodeProject:
    """Register a folder, or replace name, globs and kind of a registered one.

    Raises InvalidRequestError for the name of another project.
    """
    known, now = select_one(connection, CodeProject, "code_projects WHERE path = ?", (path,)), time.time()
    other = select_one(connection, CodeProject, "code_projects WHERE name = ?", (name,))
    if other is not None and other.path != path:
        raise InvalidRequestError(
            f"the name `{name}` is that of {other.path}; choose another with --name", param="name"
        )
    if known is None:
        project = CodeProject(
            id=secrets.token_hex(16),
            name=name,
            path=path,
            docs=docs,
            excludes=excludes,
            created_at=now,
            used_at=now,
        )
        insert(connection, "code_projects", project)
        return project
    connection.execute(
        "UPDATE code_projects SET name = ?, excludes = ?, docs = ?, used_at = ? WHERE id = ?",
        (name, as_json(excludes), docs, now, known.id),
    )
    return project_of(connection, known.id)


def project_of(connection: apsw.Connection, which: str) -> CodeProject:
    """The project with this id or name. Raises NotFoundError, for a path as well: keys may not know folders."""
    for column in ("id", "name"):
        found = select_one(connection, CodeProject, f"code_projects WHERE {column} = ?", (which,))
        if found is not None:
            return found
    raise NotFoundError(
        f"there is no project `{which[:100]}`; `hearth context list` shows them", param="project"
    )


def chosen_project(connection: apsw.Connection, which: str) -> CodeProject:
    """:func:`project_of`, or the only project if ``which`` is "". Raises InvalidRequestError where there are others."""
    if which:
        return project_of(connection, which)
    known = list_projects(connection)
    if not known:
        raise InvalidRequestError(
            "no project is registered; on the server, `hearth context add PATH` adds one", param="project"
        )
    if len(known) > 1:
        names = ", ".join(f"`{each.name}`" for each in known)
        raise InvalidRequestError(f"`project` must name one of the projects: {names}", param="project")
    return known[0]


def list_projects(connection: apsw.Connection) -> list[CodeProject]:
    return select(connection, CodeProject, "code_projects ORDER BY name")


def remove_project(connection: apsw.Connection, identity: str) -> None:
    """Forget a project and all that was indexed of it."""
    connection.execute("DELETE FROM code_projects WHERE id = ?", (identity,))
    drop_unused_facts(connection)


def drop_unused_facts(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM code_facts WHERE hash NOT IN (SELECT hash FROM code_files)")


def touch_project(connection: apsw.Connection, identity: str) -> None:
    connection.execute("UPDATE code_projects SET used_at = ? WHERE id = ?", (time.time(), identity))


def set_indexed(connection: apsw.Connection, identity: str, problem: str | None) -> None:
    """Bring the counts of a project up to date."""
    connection.execute(
        "UPDATE code_projects SET problem = ?1, indexed_at = ?2, "
        "files = (SELECT count(*) FROM code_files WHERE project = ?3), "
        "size = (SELECT coalesce(sum(size), 0) FROM code_files WHERE project = ?3), "
        "definitions = (SELECT count(*) FROM code_definitions JOIN code_files ON code_files.id = file "
        "WHERE project = ?3 AND kind NOT IN ('module', 'variable', 'type')) WHERE id = ?3",
        (problem, time.time(), identity),
    )


def set_problem(connection: apsw.Connection, identity: str, problem: str) -> None:
    connection.execute("UPDATE code_projects SET problem = ? WHERE id = ?", (problem, identity))
