"""A database, and projects made of texts by path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from gateway.cli.common.files import opened_database
from gateway.code import queries
from gateway.code.index import Indexed, ProjectIndexer
from gateway.code.meaning import Nearness
from gateway.code.pages import project_pages
from gateway.store.code.projects import CodeProject, add_project, project_of
from gateway.store.db import Database
from gateway.wiki.source import KnownAnswer
from tests.writing import write_files

Ask = Callable[[str], Awaitable[KnownAnswer]]


class Indexable:
    """A project on disk and its index."""

    def __init__(self, database: Database, root: Path) -> None:
        self.database, self.root = database, root
        self.id = database.write_sync(lambda c: add_project(c, str(root), root.name, [], docs=False)).id

    def write(self, files: dict[str, str | bytes]) -> None:
        write_files(self.root, files)

    def index(self) -> Indexed:
        return ProjectIndexer(self.database, self.row).run()

    def indexed(self) -> Indexable:
        self.index()
        return self

    @property
    def row(self) -> CodeProject:
        return self.database.read_sync(lambda c: project_of(c, self.id))

    def callers(self, name: str) -> tuple[list[str], list[str], list[str]]:
        """Callers of a definition: confirmed, possible, and those of calls that are not resolved."""
        found = self.database.read_sync(lambda c: queries.callers(c, self.id, name))
        confirmed, possible, unresolved = (
            [use.caller for use in group] for group in (found.confirmed, found.possible, found.unresolved)
        )
        return confirmed, possible, unresolved

    def edges(self, kind: str = "call") -> set[tuple[str, str, str]]:
        """Caller, target and origin of each edge."""
        rows = self.database.read_sync(
            lambda c: c.execute(
                "SELECT caller.qualified, callee.qualified, origin FROM code_sites AS s "
                "JOIN code_definitions AS caller ON caller.file = s.file AND caller.ordinal = s.scope "
                "JOIN code_edges ON site = s.id JOIN code_definitions AS callee ON callee.id = target WHERE s.kind = ?",
                (kind,),
            ).fetchall()
        )
        return {(str(a), str(b), str(c)) for a, b, c in rows}


Make = Callable[[dict[str, str | bytes]], Indexable]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with opened_database(tmp_path / "data" / "hearth.db") as made:
        yield made


@pytest.fixture
def project(database: Database, tmp_path: Path) -> Make:
    def make(files: dict[str, str | bytes], name: str = "shop") -> Indexable:
        root = tmp_path / name
        root.mkdir()
        made = Indexable(database, root)
        made.write(files)
        made.index()
        return made

    return make


@pytest.fixture
def ask(request: pytest.FixtureRequest, project: Make, database: Database) -> Ask:
    """Questions about the project of the test module's ``FILES``, answered without a model."""
    made = project(request.module.FILES)

    async def asked(question: str) -> KnownAnswer:
        return await (await project_pages(database, made.id, Nearness(database, None))).quoted(question)

    return asked
