"""/v1/projects: the registered projects, and questions about their code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import asdict

from gateway.api.http.endpoint import Endpoint
from gateway.api.services import ApiRequest
from gateway.base.ranking import K_SEARCH, fuse
from gateway.base.structs import view
from gateway.code import queries
from gateway.code.neighbourhood import Level, Neighbourhood, neighbourhood
from gateway.code.outline import HITS, Outline, outline
from gateway.code.source import lines_of
from gateway.store.code import projects
from gateway.store.code.graph import Place
from gateway.store.memory.facts import search_facts

_SHOWN_LINES = 40  # of a hit
_DEFINITIONS = 5  # of one name that are shown with their code
_DEFINITION_LINES = 120  # of each

Text = Annotated[str, Meta(min_length=1, max_length=400)]


class ProjectRow(Struct, frozen=True, kw_only=True):
    """A project without its folder, which is the administrator's affair."""

    id: str
    name: str
    docs: bool
    created_at: float
    used_at: float
    indexed_at: float | None
    files: int
    definitions: int
    size: int
    problem: str | None


class ProjectList(Struct, frozen=True):
    data: list[ProjectRow]


class Named(Struct, frozen=True, kw_only=True):
    """``name``: a qualified name, the end of one, or ``path:line``."""

    name: Text


class Depth(Named, frozen=True, kw_only=True):
    depth: Annotated[int, Meta(ge=1, le=10)] = 3


class Ends(Struct, frozen=True, kw_only=True):
    start: Text
    end: Text


class WordsQuery(Struct, frozen=True, kw_only=True):
    q: Annotated[str, Meta(min_length=1, max_length=2000)]
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class MapQuery(Struct, frozen=True, kw_only=True):
    tokens: Annotated[int, Meta(ge=50, le=100_000)] = 1000
    about: Annotated[str, Meta(max_length=2000)] = ""


class GraphQuery(Struct, frozen=True, kw_only=True):
    """``name`` is the centre; without it, the most important definitions are shown."""

    name: Annotated[str, Meta(max_length=400)] = ""
    level: Level = "function"
    depth: Annotated[int, Meta(ge=1, le=5)] = 1
    most: Annotated[int, Meta(ge=1, le=300)] = 100


class PlaceList(Struct, frozen=True):
    data: list[Place]


class ShownDefinition(Struct, frozen=True):
    """Lines ``line`` to ``shown_to`` of a definition that ends at ``end_line``."""

    name: str
    kind: str
    path: str
    line: int
    end_line: int
    shown_to: int
    code: str


class ShownDefinitions(Struct, frozen=True):
    """``left_out`` definitions have the name as well."""

    definitions: list[ShownDefinition]
    left_out: int


class FoundPart(Struct, frozen=True, kw_only=True):
    """A part of a file, whose lines to ``shown_to`` are ``text``, or a fact about the caller, whose key is ``path``."""

    kind: Literal["code", "document", "fact"]
    path: str
    line: int
    end_line: int
    shown_to: int
    text: str


class FoundParts(Struct, frozen=True):
    """Best first: both rankings fused."""

    data: list[FoundPart]


async def list_all(request: ApiRequest) -> ProjectList:
    """The registered projects, by name."""
    found = await request.read_local(projects.list_projects)
    return ProjectList([view(ProjectRow, each) for each in found])


async def show(request: ApiRequest) -> ProjectRow:
    """One project; `{id}` is its id or its name."""
    return view(ProjectRow, await _project(request))


async def _project(request: ApiRequest) -> projects.CodeProject:
    return await request.read_local(lambda c: projects.project_of(c, request.path_id))


async def code(request: ApiRequest, asked: Named) -> ShownDefinitions:
    """The code of a definition."""
    return await shown_definitions(request, await _project(request), asked.name)


async def shown_definitions(
    request: ApiRequest, project: projects.CodeProject, name: str
) -> ShownDefinitions:
    found = await request.read_local(lambda c: queries.find(c, project.id, name))

    def shown(place: Place) -> ShownDefinition:
        last = min(place.end_line, place.line + _DEFINITION_LINES - 1)
        text = "\n".join(lines_of(Path(project.path), place.path, place.line, last))
        return ShownDefinition(place.name, place.kind, place.path, place.line, place.end_line, last, text)

    return await asyncio.to_thread(
        lambda: ShownDefinitions([shown(each) for each in found[:_DEFINITIONS]], len(found[_DEFINITIONS:]))
    )


async def search(request: ApiRequest, asked: WordsQuery) -> FoundParts:
    """Code, documents and the caller's facts by words, side by side."""
    return await found_parts(request, await _project(request), asked.q, asked.limit)


async def found_parts(
    request: ApiRequest, project: projects.CodeProject, query: str, limit: int
) -> FoundParts:
    """Parts of the project and facts about the caller, fused."""
    owner, root = request.owner, Path(project.path)
    near = await request.services.nearness.hits(project.id, query, limit, owner)
    hits = await request.read_local(lambda c: queries.search(c, project.id, query, limit, near))
    scopes = [("owner", ""), ("project", project.id), ("project", project.name)]
    facts = await request.read(lambda c: search_facts(c, owner, scopes, query, limit))  # type: ignore[arg-type]

    def shown() -> dict[tuple[str, int], FoundPart]:
        parts = {}
        for hit in hits:
            last = min(hit.end_line, hit.line + _SHOWN_LINES - 1)
            text = "\n".join(lines_of(root, hit.path, hit.line, last))
            parts[hit.path, hit.line] = FoundPart(**to_builtins(hit), shown_to=last, text=text)
        return parts

    parts = await asyncio.to_thread(shown)
    for fact in facts:
        parts[fact.key, 0] = FoundPart(
            kind="fact", path=fact.key, line=0, end_line=0, shown_to=0, text=fact.text
        )
    rankings = [[(hit.path, hit.line) for hit in hits], [(fact.key, 0) for fact in facts]]
    return FoundParts([parts[key] for key, _ in fuse(rankings, K_SEARCH)][:limit])


async def map_(request: ApiRequest, asked: MapQuery) -> Outline:
    """The outline of the most important definitions that fits into a number of tokens."""
    return await outline_for(request, await _project(request), asked.tokens, asked.about)


async def outline_for(request: ApiRequest, project: projects.CodeProject, tokens: int, about: str) -> Outline:
    near = await request.services.nearness.hits(project.id, about, HITS, request.owner)
    return await request.read_local(lambda c: outline(c, project.id, tokens, about, near))


_BASE = "/v1/projects/{id}"


def _query(name: str, ask: Callable[..., Any], reply: Any, query: type[Struct] = Named) -> Endpoint:
    """Result of a function of the connection, the project and the fields of ``query``."""

    async def handler(request: ApiRequest, asked: Struct) -> object:
        project = await _project(request)
        found = await request.read_local(lambda c: ask(c, project.id, **asdict(asked)))
        return PlaceList(found) if isinstance(found, list) else found

    handler.__doc__ = getdoc(ask)
    return Endpoint("GET", f"{_BASE}/{name}", handler, reply=reply, query=query)


ENDPOINTS = (
    Endpoint("GET", "/v1/projects", list_all, reply=ProjectList),
    Endpoint("GET", _BASE, show, reply=ProjectRow),
    _query("callers", queries.callers, queries.Callers),
    _query("callees", queries.callees, queries.Callees),
    _query("references", queries.references, queries.Callers),
    _query("definition", queries.find, PlaceList),
    _query("subclasses", queries.subclasses, PlaceList),
    _query("imports", queries.imports, queries.Imports),
    _query("impact", queries.impact, queries.Impact, Depth),
    _query("path", queries.route, queries.Route, Ends),
    _query("graph", neighbourhood, Neighbourhood, GraphQuery),
    Endpoint("GET", f"{_BASE}/map", map_, reply=Outline, query=MapQuery),
    Endpoint("GET", f"{_BASE}/code", code, reply=ShownDefinitions, query=Named),
    Endpoint("GET", f"{_BASE}/search", search, reply=FoundParts, query=WordsQuery),
)
