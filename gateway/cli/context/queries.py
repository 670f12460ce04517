"""Questions about the code of the project that is meant, and its graph in the browser."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import apsw
import click
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.client import ReplyError, ServerOptions, UnreachableError, with_server
from gateway.cli.common.files import opened_database
from gateway.cli.common.options import LocalOptions, json_option, with_local
from gateway.cli.common.text import say
from gateway.code import queries
from gateway.code.languages.facts import shortened
from gateway.code.outline import Outline, outline
from gateway.code.source import lines_of
from gateway.store.code.graph import CodeUse, Place
from gateway.store.code.projects import CodeProject, list_projects
from gateway.store.db import Database

_PLACES = 10  # shown of definitions with one name
_WIDTH = 100  # characters of a line
Ask = Callable[[apsw.Connection, str], Any]


class _Found(Struct):
    """A hit of the server's search: a part of a file, or a fact, which has no line."""

    path: str
    line: int
    text: str


def _answer(
    project: str | None, local: LocalOptions, as_json: bool, ask: Ask, show: Callable[[Any, Path], None]
) -> None:
    with opened_project(local, project) as (database, found):
        answer = database.read_sync(lambda c: ask(c, found.id))
    if not Path(found.path).is_dir():
        say(f"{found.path} is gone; this is what the index holds", err=True)
    if as_json:
        say(answer if not isinstance(answer, list) else {"data": answer})
    else:
        show(answer, Path(found.path))


def _served(
    server: ServerOptions, project: str | None, query: str, **values: object
) -> dict[str, Any] | None:
    """The answer of the running server, which has vectors and facts; None, with a note, where none answers."""
    try:
        client = server.connect()
    except UnreachableError as error:
        say(f"by words and names alone: {error.message}", err=True)
        return None
    if client.local:
        project = project_meant(server.local, project).id
    elif project is None:
        raise InvalidRequestError(f"name a project of {client.url} with --project", param="project")
    try:
        return client.get(f"/v1/projects/{quote(project, safe='')}/{query}?{urlencode(values)}")
    except (UnreachableError, ReplyError) as error:
        if not client.local:
            raise
        say(f"by words and names alone: {error.message}", err=True)
        return None


def _project(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--project", help="Name, id or path. Default: the project around the working directory."
    )(command)


def _query(
    name: str,
    help_text: str,
    ask: Callable[[apsw.Connection, str, str], Any],
    show: Callable[[Any, Path], None],
) -> click.Command:
    @click.command(name, help=help_text)
    @click.argument("name")
    @_project
    @json_option
    @with_local
    def run(name: str, project: str | None, as_json: bool, local: LocalOptions) -> None:
        _answer(project, local, as_json, lambda c, found: ask(c, found, name), show)

    return run


def _groups(groups: Mapping[str, Callable[[CodeUse], str] | None]) -> Callable[[Any, Path], None]:
    """Shows groups of uses; a function says what stands for a use, else it is the caller."""

    def show(answer: Any, root: Path) -> None:
        for place in answer.of[:_PLACES]:
            say(_place(place))
        if len(answer.of) > _PLACES:
            say(
                f"and {len(answer.of) - _PLACES} more of this name; a longer name, as `Class.name`, means fewer"
            )
        for name, shown in groups.items():
            rows: Sequence[CodeUse] = getattr(answer, name)
            if rows:
                cut = f" (the first {len(rows)})" if name in answer.cut else ""
                say(f"\n{name.replace('_', ' ')}{cut}:")
            several = len(answer.of) > 1
            lines = []
            for use in rows:
                caller = f"{use.caller} -> {use.target}" if several and use.target else use.caller
                lines.append(_use(use, shown(use) if shown else caller, root))
            for line in dict.fromkeys(lines):  # an import of several names is one line
                say(line)
        if not any(getattr(answer, name) for name in groups):
            say("nothing found", err=True)

    return show


def _use(use: CodeUse, name: str, root: Path) -> str:
    line = next(iter(lines_of(root, use.path, use.line, use.line)), "").strip()
    how = f"  [{use.origin} {use.confidence:.2f}]" if use.origin and use.confidence else ""
    return f"  {use.path}:{use.line}  {name}  {shortened(line, _WIDTH)}{how}"


def _target(use: CodeUse) -> str:
    """Known targets of a site."""
    return use.target or use.external or ".".join(filter(None, [use.receiver, use.name]))


def _place(place: Place) -> str:
    return f"{place.path}:{place.line}  {place.kind} {place.name}"


def _places(answer: list[Place], _root: Path) -> None:
    for place in answer:
        say(_place(place))
        if place.signature:
            say(f"    {place.signature}")
    if not answer:
        say("nothing found", err=True)


def _impact(answer: queries.Impact, _root: Path) -> None:
    for each in answer.reached:
        say(f"{each.distance}  {_place(each.place)}")
    say(
        f"{len(answer.reached)} definitions in {len(answer.files)} files; "
        f"{len(answer.unresolved)} calls of that name are unresolved",
        err=True,
    )


@click.command("path")
@click.argument("start")
@click.argument("end")
@_project
@json_option
@with_local
def route(start: str, end: str, project: str | None, as_json: bool, local: LocalOptions) -> None:
    """A shortest chain of calls from START to END."""

    def show(answer: queries.Route, root: Path) -> None:
        if answer.path:
            _places(answer.path, root)
        else:
            say(f"no chain of confirmed or possible calls leads from {start} to {end}", err=True)

    _answer(project, local, as_json, lambda c, found: queries.route(c, found, start, end), show)


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@_project
@json_option
@with_server
def search(
    words: tuple[str, ...], limit: int, project: str | None, as_json: bool, server: ServerOptions
) -> None:
    """Find code, documents and facts by words and, with a running server, by meaning."""

    def show(answer: list[Any], root: Path) -> None:
        for hit in answer:
            found = isinstance(hit, _Found)
            lines = hit.text.splitlines() if found else lines_of(root, hit.path, hit.line, hit.end_line)
            text = next((line.strip() for line in lines if any(map(str.isalnum, line))), "")
            text = shortened(text, _WIDTH)
            say(f"{hit.path}:{hit.line}  {text}" if hit.line else f"{hit.path}  {text}")
        if not answer:
            say("nothing found", err=True)

    query = " ".join(words)
    if (reply := _served(server, project, "search", q=query, limit=limit)) is None:
        _answer(project, server.local, as_json, lambda c, found: queries.search(c, found, query, limit), show)
    elif as_json:
        say(reply)
    else:
        show(msgspec.convert(reply["data"], list[_Found]), Path())


@click.command("map")
@click.option("--tokens", type=click.IntRange(50, 100_000), default=1000, show_default=True)
@click.option("--about", default="", help="What the outline is for: its names and files count more.")
@_project
@json_option
@with_server
def map_(tokens: int, about: str, project: str | None, as_json: bool, server: ServerOptions) -> None:
    """The outline of a project's most used definitions that fits into a number of tokens."""

    def show(answer: Outline, _root: Path) -> None:
        if answer.text:
            say(answer.text)
        elif answer.left_out:
            say(f"no definition fits into {tokens} tokens; raise --tokens", err=True)
        else:
            say("nothing found: this project has no code", err=True)

    if not about or (reply := _served(server, project, "map", tokens=tokens, about=about)) is None:
        _answer(project, server.local, as_json, lambda c, found: outline(c, found, tokens, about), show)
    elif as_json:
        say(reply)
    else:
        show(msgspec.convert(reply, Outline), Path())


@click.command()
@click.argument("name", default="")
@click.option("--project", help="Name or id. Default: the project around the working directory.")
@click.option("--no-open", is_flag=True, help="Only print the address.")
@with_server
def visualize(name: str, project: str | None, no_open: bool, server: ServerOptions) -> None:
    """Open the graph around NAME in a browser, on the page of the running server; without NAME, an overview."""
    client = server.connect()
    if project is None and client.local:
        project = project_meant(server.local, None).name
    # Of another machine's server nothing is known; its page begins with the first project.
    path = "/".join(quote(part, safe="") for part in (project, name if project else None) if part)
    address = f"{client.url}/#/code/{path}"
    say(address)
    if not no_open and not webbrowser.open(address):
        say("no browser could be opened here: open the address in one", err=True)


COMMANDS = (
    _query(
        "callers",
        "Who calls NAME: confirmed, possible, and calls that could not be resolved.",
        queries.callers,
        _groups(dict.fromkeys(("confirmed", "possible", "unresolved"))),
    ),
    _query(
        "callees",
        "What NAME calls.",
        queries.callees,
        _groups(dict.fromkeys(("confirmed", "possible", "external", "unresolved"), _target)),
    ),
    _query(
        "references",
        "Every use of NAME: calls, imports, bases, and places that hand it on.",
        queries.references,
        _groups(dict.fromkeys(("confirmed", "possible", "unresolved"))),
    ),
    _query("definition", "Where NAME is defined.", queries.find, _places),
    _query("subclasses", "All classes below NAME.", queries.subclasses, _places),
    _query(
        "imports",
        "What a module imports, and who imports it.",
        queries.imports,
        _groups({"imports": _target, "imported_by": None}),
    ),
    _query("impact", "What depends on NAME, directly and over others.", queries.impact, _impact),
    route,
    search,
    map_,
    visualize,
)


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
