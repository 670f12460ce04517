"""The files of a project as pages of a wiki of its own. Sections are headings or definitions, cited as `path:line`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import apsw

from gateway.base.errors import NotFoundError
from gateway.code import passages, queries
from gateway.code.parts import headings
from gateway.code.source import lines_of
from gateway.store.code import graph, projects
from gateway.store.code.files import FileRow, file_at
from gateway.store.code.graph import Hit, Place
from gateway.store.db import Database
from gateway.wiki.source import Hits, Page, PageRef, Section, Site, WikiHealth

_LAST = 1 << 30
_CALLERS = "Callers of "  # the title of a page that the graph makes
_MOST_CALLERS = 30
_DEFINITION = "Definition of "
_MOST_PLACES, _SHOWN_LINES = 5, 20


async def project_pages(database: Database, which: str) -> ProjectPages:
    """The pages of the project with this id or name. Raises NotFoundError."""
    project = await database.read(lambda c: projects.project_of(c, which))
    await database.write(lambda c: projects.touch_project(c, project.id))
    return ProjectPages(database, project)


class ProjectPages:
    """A :class:`gateway.wiki.source.WikiSource` over one project. Text is read from the files as they are now."""

    def __init__(self, database: Database, project: projects.CodeProject) -> None:
        self._database, self._project = database, project

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Files that define a name in the term, or only its callers or its place if the term asks for that."""
        hits = await self._database.read(lambda c: queries.named(c, self._project.id, term))
        return await self._asked(term) or _refs(hits, limit)

    async def search_text(self, term: str, limit: int) -> Hits:
        """Files by their words; or callers or a place, as above."""
        hits = await self._database.read(lambda c: queries.by_words(c, self._project.id, term, limit))
        return Hits(await self._asked(term) or _refs(hits, limit))

    async def _asked(self, term: str) -> list[PageRef]:
        for title, asked in (_DEFINITION, passages.definition_asked), (_CALLERS, passages.callers_asked):
            if name := await self._database.read(partial(asked, project=self._project.id, text=term)):
                return [PageRef(f"{title}{name}", 1.0)]
        return []

    async def fetch(self, title: str) -> Page:
        """The file at that path, or what the graph says of a name. Raises NotFoundError, also for a vanished file."""
        if title.startswith(_CALLERS):
            return await self._callers(title)
        if title.startswith(_DEFINITION):
            return await self._places(title)

        def find(connection: apsw.Connection) -> tuple[FileRow, list[Place]] | None:
            row = file_at(connection, self._project.id, title)
            return None if row is None else (row, graph.places_in(connection, row.id))

        found = await self._database.read(find)
        lines = await asyncio.to_thread(lines_of, Path(self._project.path), title, 1, _LAST)
        if found is None or not lines:
            raise NotFoundError(f"{title} is gone")
        row, places = found
        sections = _definitions(lines, places) if row.module else _headings(lines, row.language)
        return Page(title, int.from_bytes(row.hash[:7], "big"), title, sections)

    async def _callers(self, title: str) -> Page:
        """A section for each call, whose anchor is its place."""
        name, root = title.removeprefix(_CALLERS), Path(self._project.path)
        found, more = await self._database.read(
            lambda c: passages.callers(c, self._project.id, root, name, _MOST_CALLERS)
        )
        sections = [
            Section(each.use.caller, f"{each.use.path}:{each.use.line}", 2, passages.sentence(each))
            for each in found
        ]
        if more:
            sections.append(Section("", "", 1, f"{more} more calls of `{name}` are not shown."))
        return Page(title, 0, "", sections)

    async def _places(self, title: str) -> Page:
        """A section for each definition of a name, with the beginning of its code."""
        name, root = title.removeprefix(_DEFINITION), Path(self._project.path)
        places = await self._database.read(lambda c: queries.find(c, self._project.id, name))
        sections = []
        shown = [each for each in places if each.kind not in ("module", "lambda")]
        shown.sort(key=lambda each: each.name.count("."))  # `isatty` is rather a function than a method
        for place in shown[:_MOST_PLACES]:
            lines = await asyncio.to_thread(
                lines_of, root, place.path, place.line, min(place.end_line, place.line + _SHOWN_LINES)
            )
            head = f"The {place.kind} `{place.name}` is defined in {place.path}, line {place.line}."
            anchor = f"{place.path}:{place.line}"
            sections.append(Section(place.name, anchor, 2, "\n".join([head, "", *lines])))
        return Page(title, 0, "", sections)

    async def site(self) -> Site:
        return Site(f"the project {self._project.name}")

    async def subjects(self, limit: int) -> list[str]:
        return []

    async def health(self) -> WikiHealth:
        return WikiHealth(source="local", status="ok", address=self._project.name, pages=self._project.files)


def _refs(hits: Sequence[Hit], limit: int) -> list[PageRef]:
    """Each file once, by its best part."""
    paths = list(dict.fromkeys(hit.path for hit in hits))[:limit]
    return [PageRef(path, 1 / (rank + 1)) for rank, path in enumerate(paths)]


def _headings(lines: list[str], language: str) -> list[Section]:
    marks = headings(lines, language)
    ends = [mark.line - 1 for mark in marks[1:]] + [len(lines)]
    return [
        Section(
            mark.text,
            f":{mark.line}",
            mark.level,
            _paragraphs(lines[mark.line - 1 : end], skip=bool(mark.text)),
        )
        for mark, end in zip(marks, ends, strict=True)
    ]


def _paragraphs(lines: list[str], *, skip: bool) -> str:
    """The text below a heading. Lines of a paragraph are joined by the model's reader, not here."""
    return "\n".join(lines[1:] if skip else lines).strip("\n=-~^ ")


def _definitions(lines: list[str], places: Sequence[Place]) -> list[Section]:
    """A section for each outermost definition and each method; the lead is what is before the first."""
    chosen = [place for place in places if place.kind in ("class", "function", "method")]
    marks: list[Place] = []
    for place in chosen:
        if not marks or place.line > marks[-1].end_line or marks[-1].kind == "class":
            marks.append(place)
    starts = [(mark.line, mark.name, 2 + (mark.kind == "method")) for mark in marks]
    if not starts or starts[0][0] > 1:
        starts.insert(0, (1, "", 1))
    ends = [line - 1 for line, _, _ in starts[1:]] + [len(lines)]
    return [
        Section(name.rpartition(".")[2], f":{line}", level, "\n".join(lines[line - 1 : end]).strip("\n"))
        for (line, name, level), end in zip(starts, ends, strict=True)
    ]
