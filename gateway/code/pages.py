"""The files of a project as pages of a wiki of its own. Sections are headings or definitions, cited as `path:line`."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import apsw

from gateway.base.errors import NotFoundError
from gateway.code import queries
from gateway.code.answers.asked import known_answer
from gateway.code.answers.paragraphs import ASKING
from gateway.code.answers.quoting import formal_answer, quoted_answer
from gateway.code.meaning import Nearness
from gateway.code.parts import headings, is_test
from gateway.code.source import lines_of
from gateway.store.code import graph, projects
from gateway.store.code.files import FileRow, file_at
from gateway.store.code.graph import Hit, Place
from gateway.store.db import Database
from gateway.wiki.source import Hits, KnownAnswer, Page, PageRef, Section, Site, WikiHealth

_LAST = 1 << 30
_HITS_COMPARED = 200
_HITS_NEAR = 30
_LIKE_CODE = re.compile(r"\w[_.]\w|^_|[a-z][A-Z]|\(\)|`")


async def project_pages(database: Database, which: str, nearness: Nearness) -> ProjectPages:
    """The pages of the project with this id or name. Raises NotFoundError, also when its folder is gone."""
    project = await database.read(lambda c: projects.project_of(c, which))
    if not await asyncio.to_thread(Path(project.path).is_dir):
        raise NotFoundError(
            f"the folder of the project {project.name} is gone: bring it back, or register it where it is now with "
            "`hearth context add`"
        )
    await database.write(lambda c: projects.touch_project(c, project.id))
    return ProjectPages(database, project, nearness)


class ProjectPages:
    """A :class:`gateway.wiki.source.WikiSource` over one project. Text is read from the files as they are now."""

    def __init__(self, database: Database, project: projects.CodeProject, nearness: Nearness) -> None:
        self._database, self._project, self._nearness = database, project, nearness

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Files that define a name in the term. Plain words of a question are no names."""
        if " " in term.strip():
            term = " ".join(word for word in term.split() if _LIKE_CODE.search(word))
        return _refs(await self._database.read(lambda c: queries.named(c, self._project.id, term)), limit)

    async def search_text(self, term: str, limit: int) -> Hits:
        """Files by words and meaning. Documents are written for readers, so they come first; tests come last."""
        near = await self._nearness.hits(self._project.id, term, _HITS_NEAR)
        telling = [word for word in re.findall(r"[^\s?!,;]+", term) if word.lower() not in ASKING]
        words = " ".join(telling) or term
        worded = await self._database.read(
            lambda c: queries.by_words(c, self._project.id, words, _HITS_COMPARED)
        )
        found = queries.merged([worded, near])
        documents = [hit for hit in found if hit.kind == "document"]
        code = [hit for hit in found if hit.kind == "code" and not is_test(hit.path)]
        tests = [hit for hit in found if hit.kind == "code" and is_test(hit.path)]
        pairs = itertools.zip_longest(documents, code)
        return Hits(_refs([hit for pair in pairs for hit in pair if hit] + tests, limit))

    async def known(self, question: str) -> KnownAnswer | None:
        """The answer of the code graph, for questions about callers, definitions and the like."""
        return await self._database.read(
            lambda c: known_answer(c, self._project.id, question) or formal_answer(c, self._project, question)
        )

    async def quoted(self, question: str) -> KnownAnswer:
        """The same, and a quotation or a refusal for other questions."""
        if known := await self.known(question):
            return known
        near = await self._nearness.hits(self._project.id, question, _HITS_NEAR)
        return await self._database.read(lambda c: quoted_answer(c, self._project, question, near))

    async def fetch(self, title: str) -> Page:
        """The file at that path. Raises NotFoundError, also when it has just vanished."""

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
            "\n".join(lines[mark.line - (not mark.text) : end]).strip("\n=-~^ "),
        )
        for mark, end in zip(marks, ends, strict=True)
    ]


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
