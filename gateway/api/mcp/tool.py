"""A tool: its types, which validate and describe its arguments and its result, and the function behind it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from gateway.api.parsing.fields import convert
from gateway.api.services import ApiRequest
from gateway.store.rows import as_json

MISSING = "MCP needs the extra hearth[mcp]; install it with: python -m pip install 'mcp>=2.3,<3'"

# Tells the client's user what is being done.
Progress = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class OfferedTool:
    """``run`` works for the owner of the request; its docstring describes the tool to models.

    ``text`` makes the form of a result for models that read no structured content.
    """

    title: str
    arguments: type[Struct]
    result: type[Struct]
    run: Callable[[ApiRequest, Any, Progress], Awaitable[Any]]
    text: Callable[[Any], str] = as_json
    writes: bool = False

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def description(self) -> str:
        return " ".join((inspect.getdoc(self.run) or "").split())

    def call(self, request: ApiRequest, given: dict[str, Any], progress: Progress) -> Awaitable[Any]:
        """Raises InvalidRequestError naming the argument at fault, and whatever ``run`` raises."""
        # Models send null for what they leave out, and numbers as text.
        present = {name: value for name, value in given.items() if value is not None}
        return self.run(request, convert(present, self.arguments, strict=False), progress)


def schema_of(kind: type[Struct]) -> dict[str, Any]:
    """The JSON schema of a struct, itself at the top."""
    schema = msgspec.json.schema(kind)
    parts: dict[str, Any] = schema["$defs"]
    own: dict[str, Any] = parts.pop(kind.__name__)
    return own | ({"$defs": parts} if parts else {})
