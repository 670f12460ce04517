"""Items of checklists before they are stored. Pure."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.runs.planning.when import TIME_WITHIN
from gateway.runs.tool import RunTool, Toolbox
from gateway.store.memory.tasks import Task

MAX_ITEMS = 12
MAX_TITLE = 300
RESULT = re.compile(r"\{\{(\d{1,3})\}\}")  # in an argument: the result of that step


class PlannedItem(Struct, frozen=True, kw_only=True):
    """An item to make: a call, a question to the owner (``asks``), or else a question to the model."""

    title: str
    tool: dict[str, Any] | None = None
    asks: bool = False


def item_of_call(tool: RunTool, given: dict[str, Any]) -> PlannedItem:
    """A call whose times have dates. Raises InvalidRequestError that names the argument."""
    arguments = tool.prepared(given)
    tool.checked(arguments)
    names = tool.arguments.__struct_encode_fields__
    title = f"{tool.name}: {' | '.join(str(arguments[name]) for name in names if name in arguments)}"
    return PlannedItem(title=title[:MAX_TITLE], tool={"name": tool.name, "arguments": arguments})


def line_of(item: Task) -> str:
    """The line that makes an item of a checklist; a task of an objective is its title."""
    if item.level != "checklist":
        return item.title
    if item.tool is None:
        return f"ask: {item.question}" if item.breakpoint else f"think: {item.title}"
    given = item.tool["arguments"]
    if len(item.title) < MAX_TITLE and not any("|" in str(value) for value in given.values()):
        return item.title
    return f"{item.tool['name']}: {msgspec.json.encode(given).decode()}"


def times_in(text: str, tools: Toolbox) -> list[str]:
    """The complete times that a text has."""
    found = (match["time"] for match in TIME_WITHIN.finditer(text))
    return [time for time in dict.fromkeys(found) if _is_moment(time, tools)]


def _is_moment(time: str, tools: Toolbox) -> bool:
    tool = tools.find("wait_until")
    try:
        return tool is not None and bool(tool.prepared({"time": time}))
    except InvalidRequestError:  # past, or a day without an hour
        return False
