"""Checklists from lines that a user wrote. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.runs.planning.items import MAX_ITEMS, MAX_TITLE, PlannedItem, item_of_call
from gateway.runs.planning.words import item_of_words
from gateway.runs.tool import RunTool, Toolbox

_LINE = re.compile(r"\s*([a-z_]+(?:\.[A-Za-z0-9_.-]+)?)\s*:\s*(.+?)\s*", re.S)


def items_of_lines(lines: Sequence[str], tools: Toolbox) -> list[PlannedItem]:
    """One item a line: ``tool: argument | argument``, ``tool: {json}``, ``ask: …``, ``think: …``, or words.

    Raises InvalidRequestError that names the line.
    """
    if not 1 <= len(lines) <= MAX_ITEMS:
        raise InvalidRequestError(f"a checklist has 1 to {MAX_ITEMS} steps, not {len(lines)}", param="steps")
    found: list[PlannedItem] = []
    for line in lines:
        match = _LINE.fullmatch(line)
        if match and match[1] == "ask":
            found.append(PlannedItem(title=match[2][:MAX_TITLE], asks=True))
        elif match and match[1] == "think":
            found.append(PlannedItem(title=match[2][:MAX_TITLE]))
        elif match and ("." in match[1] or tools.find(match[1])):
            found.append(item_of_call(tools.get(match[1]), _given(tools.get(match[1]), match[2])))
        elif words := item_of_words(line, tools):
            found.append(words)
        else:
            there = ", ".join([*tools.names, "ask", "think"])
            raise InvalidRequestError(
                f"the step {line[:100]!r} names no tool; write `TOOL: ARGUMENT` with one of: {there}",
                param="steps",
            )
    return found


def lines_in(text: str, tools: Toolbox) -> list[str]:
    """The lines of a text, which may have several in one, as on IRC: ``ask_wiki: QUESTION; notify: {{1}}``."""
    found: list[str] = []
    for line in text.splitlines():
        pieces = line.split(";")
        found.append(pieces[0])
        for piece in pieces[1:]:
            match = _LINE.fullmatch(piece)
            if match and (match[1] in ("ask", "think") or "." in match[1] or tools.find(match[1])):
                found.append(piece)
            else:
                found[-1] += f";{piece}"
    return [line.strip() for line in found if line.strip()]


def named_tools(lines: Sequence[str]) -> list[str]:
    """The tools that lines name."""
    return [match[1] for line in lines if (match := _LINE.fullmatch(line))]


def _given(tool: RunTool, text: str) -> dict[str, Any]:
    """The arguments in a line: a JSON object, or texts in order with ``|`` between them."""
    if text.startswith("{") and not text.startswith("{{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise InvalidRequestError(
                f"`{tool.name}`: its arguments are no JSON: {error}", param="steps"
            ) from None
    names = tool.arguments.__struct_encode_fields__
    return dict(zip(names, (part.strip() for part in text.split("|", len(names) - 1)), strict=False))
