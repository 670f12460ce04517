"""Tools of the registered projects. Their files are the owner's, and text that others may have written."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.code import queries
from gateway.code.source import lines_of
from gateway.runs.tool import Calling, Risk, RunTool, ToolOutput
from gateway.store.code.files import file_at
from gateway.store.code.projects import chosen_project
from gateway.store.db import Database

_RISKS: frozenset[Risk] = frozenset({"untrusted", "private"})
_HITS = 5
_USES = 20
_FILE_LINES = 400
_NO_HIT = "nothing was found"

Text = Annotated[str, Meta(min_length=1, max_length=400)]
Project = Annotated[str, Meta(max_length=400)]


class CodeSearchArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """``project`` may be left out if there is one."""

    query: Text
    project: Project = ""


class CallersArgs(Struct, frozen=True, forbid_unknown_fields=True):
    name: Text
    project: Project = ""


class FileArgs(Struct, frozen=True, forbid_unknown_fields=True):
    path: Text
    project: Project = ""


def code_tools(database: Database) -> list[RunTool]:
    async def search_code(calling: Calling, asked: CodeSearchArgs) -> ToolOutput:
        """Find parts of a project's code and documents by words."""
        project = await database.read(lambda c: chosen_project(c, asked.project))
        hits = await database.read(lambda c: queries.search(c, project.id, asked.query, _HITS))

        def shown() -> list[str]:
            root = Path(project.path)
            return [
                "\n".join(
                    [
                        f"{hit.path}:{hit.line}",
                        *lines_of(root, hit.path, hit.line, min(hit.end_line, hit.line + 9)),
                    ]
                )
                for hit in hits
            ]

        return ToolOutput("\n\n".join(await asyncio.to_thread(shown)) or _NO_HIT)

    async def callers_of(calling: Calling, asked: CallersArgs) -> ToolOutput:
        """List who calls a function or a method of a project."""
        project = await database.read(lambda c: chosen_project(c, asked.project))
        found = await database.read(lambda c: queries.callers(c, project.id, asked.name))
        lines = [
            f"{sure}: {use.caller} ({use.path}:{use.line})"
            for sure, uses in (("confirmed", found.confirmed), ("possible", found.possible))
            for use in uses
        ]
        more = [f"{len(lines) - _USES} more"] if len(lines) > _USES else []
        unresolved = (
            [f"{len(found.unresolved)} calls of that name could not be resolved"] if found.unresolved else []
        )
        return ToolOutput("\n".join([*lines[:_USES], *more, *unresolved]) or f"nobody calls {asked.name}")

    async def read_file(calling: Calling, asked: FileArgs) -> ToolOutput:
        """Read a text file of a project."""
        project = await database.read(lambda c: chosen_project(c, asked.project))

        def read() -> list[str]:
            root = Path(project.path).resolve()
            if not (root / asked.path).resolve().is_relative_to(root):
                raise InvalidRequestError(f"`{asked.path}` leads out of the project", param="path")
            return lines_of(root, asked.path, 1, _FILE_LINES + 1)

        indexed = await database.read(lambda c: file_at(c, project.id, asked.path))
        lines = await asyncio.to_thread(read) if indexed is not None else []
        if not lines:
            raise NotFoundError(f"the project `{project.name}` has no file `{asked.path}` with text")
        more = [f"[the file goes on after line {_FILE_LINES}]"] if len(lines) > _FILE_LINES else []
        return ToolOutput("\n".join([*lines[:_FILE_LINES], *more]))

    return [
        RunTool(CodeSearchArgs, search_code, _RISKS, nothing=_NO_HIT),
        RunTool(CallersArgs, callers_of, _RISKS),
        RunTool(FileArgs, read_file, _RISKS),
    ]
