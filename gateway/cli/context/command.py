"""The registry: add, list, index again, show and remove projects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn

import click
import msgspec
from tqdm import tqdm

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.files import opened_database
from gateway.cli.common.options import CommandGroup, LocalOptions, PathType, json_option, with_local
from gateway.cli.common.text import say, size_text, table, time_text
from gateway.cli.context.queries import COMMANDS, opened_project, project_meant
from gateway.code.index import ProjectIndexer
from gateway.code.processes import seldom_search_for_garbage
from gateway.code.walk import exclusion
from gateway.code.watch import touch_registry
from gateway.store.code import projects
from gateway.store.code.projects import CodeProject
from gateway.store.db import Database

_NAME = re.compile(r"[\w][\w .+-]{0,63}")


@click.group(cls=CommandGroup)
def context() -> None:
    """Understand a codebase: who calls what, and what a change concerns. Nothing is written into a project."""


for command in COMMANDS:
    context.add_command(command)


@context.command()
@click.argument("path", type=PathType())
@click.option("--name", help="Name of the project. Default: that of the folder.")
@click.option(
    "--exclude", "excludes", metavar="GLOB", multiple=True, help="Files to leave out, as in .gitignore."
)
@click.option("--docs", is_flag=True, help="A folder of notes: index documents alone.")
@json_option
@with_local
def add(
    path: Path, name: str | None, excludes: tuple[str, ...], docs: bool, as_json: bool, local: LocalOptions
) -> None:
    """Register the folder PATH and index it. A registered one gets the new name, globs and kind."""
    folder = path.expanduser().resolve()
    if not folder.is_dir():
        raise InvalidRequestError(f"{path} is not a folder", param="path")
    name = name if name is not None else folder.name or "root"
    if not _NAME.fullmatch(name):
        raise InvalidRequestError(f"`{name}` is not a project's name: give another with --name", param="name")
    exclusion(excludes)
    with opened_database(local.settings.database_path) as database:
        project = database.write_sync(
            lambda c: projects.add_project(c, str(folder), name, list(excludes), docs=docs)
        )
        _index(database, project, as_json)
    touch_registry(local.settings.data_dir)


@context.command()
@click.argument("project", required=False)
@json_option
@with_local
def refresh(project: str | None, as_json: bool, local: LocalOptions) -> None:
    """Index what has changed in PROJECT. A running server does so on its own."""
    with opened_project(local, project) as (database, found):
        _index(database, found, as_json)


@context.command(name="list")
@json_option
@with_local
def list_(as_json: bool, local: LocalOptions) -> None:
    """List the projects."""
    with opened_database(local.settings.database_path) as database:
        found = database.read_sync(projects.list_projects)
    if as_json:
        say({"projects": found})
    elif found:
        head = ["NAME", "FILES", "DEFINITIONS", "SIZE", "INDEXED", "PATH"]
        say(table([head, *map(_row, found)]))
    else:
        say("there are no projects; `hearth context add PATH` registers one", err=True)


@context.command()
@click.argument("project", required=False)
@json_option
@with_local
def status(project: str | None, as_json: bool, local: LocalOptions) -> None:
    """Show one project: counts, globs, and what keeps it from being up to date."""
    found = project_meant(local, project)
    if as_json:
        say(found)
        return
    say(f"{found.name}  {found.path}")
    say(
        f"{_count(found.files, 'file')}, {_count(found.definitions, 'definition')}, {size_text(found.size)}, "
        f"indexed {time_text(found.indexed_at)}"
    )
    if found.excludes:
        say(f"without {', '.join(found.excludes)}")
    if found.problem:
        say(f"problem: {found.problem}")


@context.command()
@click.argument("project")
@with_local
def remove(project: str, local: LocalOptions) -> None:
    """Forget PROJECT: a name, a path or an id. Its files stay as they are.

    The database keeps its size: what is stored next uses the space.
    """
    with opened_project(local, project) as (database, found):
        database.write_sync(lambda c: projects.remove_project(c, found.id))
    touch_registry(local.settings.data_dir)
    say(f"removed {found.name} ({found.path}); the database reuses its space, and does not shrink")


def _index(database: Database, project: CodeProject, as_json: bool) -> None:
    seldom_search_for_garbage()
    bars: dict[str, tqdm[NoReturn]] = {}

    def progress(stage: str, done: int, total: int) -> None:
        if stage not in bars or done < bars[stage].n:
            for bar in bars.values():
                bar.close()
            bars[stage] = tqdm(total=total, desc=stage, unit="files", leave=False, disable=as_json or None)
        bars[stage].update(done - bars[stage].n)

    try:
        done = ProjectIndexer(database, project, progress).run()
    except KeyboardInterrupt:
        say(f"\nstopped; what is indexed is kept: `hearth context refresh {project.name}` goes on", err=True)
        raise
    finally:
        for bar in bars.values():
            bar.close()
    after = database.read_sync(lambda c: projects.project_of(c, project.id))
    if as_json:
        counts = {"parsed": done.parsed, "resolved": done.resolved, "removed": done.removed}
        say({**msgspec.to_builtins(after), **counts, "left_out": done.walk.left_out})
        return
    left = ", ".join(f"{count} {reason}" for reason, count in sorted(done.walk.left_out.items()))
    held = f"{_count(after.files, 'file')}, {_count(after.definitions, 'definition')}"
    changed = "1 file was" if done.parsed == 1 else f"{done.parsed} files were"
    text = f"{after.name}: {held}; {changed} new or changed"
    say(f"{text}; left out: {left}" if left else text)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _row(project: CodeProject) -> list[str]:
    counts = [str(project.files), str(project.definitions), size_text(project.size)]
    return [project.name, *counts, project.problem or time_text(project.indexed_at), project.path]
