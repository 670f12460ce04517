"""The tools of a chat request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.errors import InvalidRequestError
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


def host_tools(tools: Tools | None) -> list[Tool]:
    """The tools as the host knows them. Raises InvalidRequestError naming the field at fault."""
    made: list[Tool] = []
    for index, tool in enumerate(tools or []):
        function = tool.function
        place = f"tools[{index}].function"
        if any(other.name == function.name for other in made):
            raise InvalidRequestError(
                f"`{place}.name`: there are two tools named {function.name}", param=f"{place}.name"
            )
        parameters = function.parameters or {}
        if parameters.get("type", "object") != "object":
            raise InvalidRequestError(
                f"`{place}.parameters`: a function's parameters are an object; its `type` must be `object`",
                param=f"{place}.parameters",
            )
        made.append(Tool(function.name, function.description or "", parameters, bool(function.strict)))
    return made


def host_choice(choice: ToolChoice | None, tools: list[Tool]) -> str:
    """``auto``, ``none``, ``required`` or ``function:NAME``. Raises InvalidRequestError."""
    if choice is None:
        return "auto"
    if isinstance(choice, NamedTool):
        name = choice.function.name
        if all(tool.name != name for tool in tools):
            raise InvalidRequestError(
                f"`tool_choice.function.name`: `tools` has no {name}", param="tool_choice.function.name"
            )
        return f"function:{name}"
    if choice == "required" and not tools:
        raise InvalidRequestError("`tool_choice` required needs `tools`", param="tool_choice")
    return choice
