"""The tools of a chat request, and what the host makes of anybody's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct

from gateway.base.errors import InvalidRequestError
from model_host.protocol import Tool, ToolName


class Function(Struct, frozen=True, forbid_unknown_fields=True):
    """A function the model may call. ``parameters`` is a JSON schema of an object.

    Calls that are constrained follow the schema as far as it can be enforced; with ``strict`` a schema that cannot is
    refused.
    """

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool; functions are the only type."""

    type: Literal["function"]
    function: Function


class NamedFunction(Struct, frozen=True, forbid_unknown_fields=True):
    """The name of one of the tools."""

    name: ToolName


class NamedTool(Struct, frozen=True, forbid_unknown_fields=True):
    """The one tool that the reply must call."""

    type: Literal["function"]
    function: NamedFunction


ToolChoice = Literal["none", "auto", "required"] | NamedTool
Tools = Annotated[list[FunctionTool], Meta(max_length=128)]


class DescribedFunction(Protocol):
    """A function as any of OpenAI's bodies describes it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str | None: ...
    @property
    def parameters(self) -> dict[str, Any] | None: ...
    @property
    def strict(self) -> bool | None: ...


def host_tools(functions: Sequence[DescribedFunction], place: str) -> list[Tool]:
    """The tools as the host knows them. Raises InvalidRequestError naming the field at fault.

    ``place`` is where a function is in the body, with ``{}`` for its number.
    """
    made: list[Tool] = []
    for index, function in enumerate(functions):
        here = place.format(index)
        if any(other.name == function.name for other in made):
            raise InvalidRequestError(
                f"`{here}.name`: there are two tools named {function.name}", param=f"{here}.name"
            )
        parameters = function.parameters or {}
        if parameters.get("type", "object") != "object":
            raise InvalidRequestError(
                f"`{here}.parameters`: a function's parameters are an object; its `type` must be `object`",
                param=f"{here}.parameters",
            )
        made.append(Tool(function.name, function.description or "", parameters, bool(function.strict)))
    return made


def host_choice(choice: str | None, named: str | None, tools: list[Tool], place: str) -> str:
    """``auto``, ``none``, ``required`` or ``function:NAME``; ``place`` is where NAME is. Raises InvalidRequestError."""
    if named is not None:
        if all(tool.name != named for tool in tools):
            raise InvalidRequestError(f"`{place}`: `tools` has no {named}", param=place)
        return f"function:{named}"
    if choice == "required" and not tools:
        raise InvalidRequestError("`tool_choice` required needs `tools`", param="tool_choice")
    return choice or "auto"
