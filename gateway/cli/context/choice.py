"""Choose the project that a command means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.database import opened_database
from gateway.cli.common.options import LocalOptions
from gateway.store.code.projects import CodeProject, list_projects
from gateway.store.db import Database


@contextmanager
def opened_project(local: LocalOptions, which: str | None) -> Iterator[tuple[Database, CodeProject]]:
    """Open the database, with the project that is meant as :func:`project_meant` says."""
    with opened_database(local.settings.database_path) as database:
        yield database, _chosen(database.read_sync(list_projects), which)


def project_meant(local: LocalOptions, which: str | None) -> CodeProject:
    """The project with this name, id or path; by default the one around the working directory, or the only one.

    Raises InvalidRequestError.
    """
    with opened_project(local, which) as (_, project):
        return project


def _chosen(found: list[CodeProject], which: str | None) -> CodeProject:
    if which is not None:
        path = str(Path(which).expanduser().resolve())
        for each in found:
            if which in (each.id, each.name) or each.path == path:
                return each
        raise InvalidRequestError(
            f"there is no project `{which}`; `hearth context list` shows them", param="project"
        )
    here = Path.cwd()
    around = [each for each in found if here.is_relative_to(each.path)]
    if around or len(found) == 1:
        return max(around or found, key=lambda each: len(each.path))
    problem = (
        "no project contains this folder; name one of `hearth context list`"
        if found
        else "there are no projects; `hearth context add PATH` registers one"
    )
    raise InvalidRequestError(problem, param="project")
