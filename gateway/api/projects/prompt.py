"""The part of a prompt about the project that its conversation is bound to."""

from __future__ import annotations

import re
from pathlib import Path

import apsw

from gateway.base.errors import NotFoundError
from gateway.code import passages
from gateway.code.meaning import Nearness
from gateway.code.outline import Outline, outline
from gateway.code.pages import ProjectPages
from gateway.code.source import lines_of
from gateway.memory.context import MemoryParts
from gateway.memory.types import Block, LeftOut, Offer
from gateway.store.code import projects
from gateway.store.code.graph import Hit
from gateway.store.memory.conversations import Conversation

_SHARE = 4  # the block takes at most a quarter of a prompt
_MAP_SHARE = 4  # the outline takes at most a quarter of the block
_HITS, _CALLERS, _LINES = 4, 12, 60
_LEAST_MAP = 50
_NUMBERS = re.compile(r" \[\d+\]$", re.M)  # of citations, whose places are in the text as well


class ProjectContext:
    """A source of a prompt block: callers, definitions, sections and an outline, if the message touches the project."""

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts

    async def offer(self, conversation: Conversation, asked: str) -> Offer:
        which = conversation.project
        if which is None or not asked.strip():
            return Offer()
        try:
            project = await self._parts.database.local.read(lambda c: projects.project_of(c, which))
        except NotFoundError:
            return Offer([], [LeftOut("project", "it is no longer registered (`hearth context list`)")])
        if self._parts.served.current.small:  # it would garble what the index knows exactly
            pages = ProjectPages(self._parts.database, project, Nearness(self._parts.database, None))
            if known := await pages.known(asked):
                return Offer(answer=_NUMBERS.sub("", known.text))
        root = Path(project.path)
        room = (await self._parts.budget()).limit // _SHARE
        # A short message that names nothing is often about what the one before it was about; the prompt has that.
        found, called, more = await self._parts.database.local.read(
            lambda c: _found(c, project.id, root, asked)
        )
        if not found and not called:
            return Offer([], [LeftOut(f"project {project.name}", "the message does not touch it")])
        map_tokens = max(_LEAST_MAP, room // _MAP_SHARE)
        overview = await self._parts.database.local.read(lambda c: outline(c, project.id, map_tokens, asked))
        texts = [*called, *[_text(root, hit) for hit in found], *([overview.text] if overview.text else [])]
        names = [
            *["callers" for _ in called],
            *[f"{hit.path}:{hit.line}" for hit in found],
            *(["outline"] if overview.text else []),
        ]
        return await self._block(project, names, texts, room, overview, more)

    async def _block(
        self,
        project: projects.CodeProject,
        names: list[str],
        texts: list[str],
        room: int,
        overview: Outline,
        more: int,
    ) -> Offer:
        """The texts that fit, best first; one that does not is left out, and named."""
        head = f"From the source of the project {project.name}, quoted:"
        [used, *counts] = await self._parts.inference.count([head, *texts])
        kept, left_out = [head], []
        for name, text, tokens in zip(names, texts, counts, strict=True):
            if used + tokens + 2 > room:
                why = f"no room: {tokens} tokens, and a project's block has at most {room}"
                left_out.append(LeftOut(f"project {name}", why))
                continue
            used += tokens + 2
            kept.append(text)
            if name == "outline" and overview.left_out:
                why = f"less important than the {overview.definitions} shown"
                left_out.append(LeftOut(f"project outline: {overview.left_out} definitions", why))
        if more:
            left_out.append(LeftOut(f"project callers: {more} more", f"the first {_CALLERS} are shown"))
        if len(kept) == 1:
            return Offer([], left_out)
        text = "\n\n".join(kept)
        [tokens] = await self._parts.inference.count([text])
        return Offer([Block("project", tokens, text)], left_out)


def _found(
    connection: apsw.Connection, project: str, root: Path, asked: str
) -> tuple[list[Hit], list[str], int]:
    name = passages.callers_asked(connection, project, asked)
    called, more = passages.callers(connection, project, root, name, _CALLERS) if name else ([], 0)
    sentences = "\n".join(passages.sentence(each) for each in called)
    return (
        passages.hits_for(connection, project, root, asked, _HITS),
        [sentences] if sentences else [],
        more,
    )


def _text(root: Path, hit: Hit) -> str:
    lines = lines_of(root, hit.path, hit.line, hit.end_line)
    more = [f"[{len(lines) - _LINES} more lines]"] if len(lines) > _LINES else []
    return "\n".join([f"{hit.path}:{hit.line}", *lines[:_LINES], *more])
