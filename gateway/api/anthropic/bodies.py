"""The bodies of Anthropic's Messages API: every field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.neutral import Neutral, without_neutral, without_neutral_in
from gateway.base.errors import InvalidRequestError
from model_host.protocol import StopString, ToolName, Unit

CallId = Annotated[str, Meta(min_length=1, max_length=256)]
Nothing = Annotated[list[Any], Meta(max_length=0)] | None


class CacheControl(Struct, frozen=True, forbid_unknown_fields=True):
    """A wish to cache up to here. It asks for nothing: every prompt's beginning is reused where it can be."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="text"):
    """A piece of text."""

    text: str
    cache_control: CacheControl | None = None
    citations: Nothing = None  # replies carry it as null or empty


class DirectCaller(Struct, frozen=True, forbid_unknown_fields=True):
    """Who called a tool: the model itself."""

    type: Literal["direct"]


class ToolUseBlock(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="tool_use"):
    """A call that the model made in an earlier turn."""

    id: CallId
    name: ToolName
    input: dict[str, Any]
    cache_control: CacheControl | None = None
    caller: DirectCaller | None = None
    toolset_name: None = None


class ToolResultBlock(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="tool_result"):
    """What a tool answered. With ``is_error`` the model is told that the call failed."""

    tool_use_id: CallId
    content: str | list[TextBlock] = ""
    is_error: bool | None = None
    cache_control: CacheControl | None = None
    toolset_name: None = None


Block = TextBlock | ToolUseBlock | ToolResultBlock


class AnthropicMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn, or a part of one: neighbours of one role are joined."""

    role: Literal["user", "assistant"]
    content: str | list[Block]


class AnthropicTool(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A tool of the client's own; ``input_schema`` is a JSON schema of an object."""

    name: ToolName
    input_schema: dict[str, Any]
    description: str | None = None
    type: Literal["custom"] | None = None
    strict: bool | None = None  # inputs follow the schema either way
    cache_control: CacheControl | None = None


class Auto(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="auto"):
    """The model decides whether to call a tool."""

    disable_parallel_tool_use: bool | None = None


class AnyTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="any"):
    """The model must call a tool, whichever."""

    disable_parallel_tool_use: bool | None = None


class OneTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="tool"):
    """The model must call this tool."""

    name: ToolName
    disable_parallel_tool_use: bool | None = None


class NoTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="none"):
    """The model must not call a tool."""


ToolChoice = Auto | AnyTool | OneTool | NoTool


class Metadata(Struct, frozen=True, forbid_unknown_fields=True):
    """``user_id`` is kept in the request log."""

    user_id: Annotated[str, Meta(max_length=256)] | None = None


class Thinking(Struct, frozen=True, forbid_unknown_fields=True):
    """Thinking is off, and can be no more than that."""

    type: Literal["disabled"]


class JsonFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON schema that the reply's text follows."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What the reply must be. ``format`` None leaves it free."""

    format: JsonFormat | None = None


class CountTokensBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/messages/count_tokens: what a prompt is made of."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[AnthropicMessage], Meta(min_length=1, max_length=4096)]
    system: str | list[TextBlock] | None = None
    tools: Annotated[list[AnthropicTool], Meta(max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    cache_control: CacheControl | None = None


class MessagesBody(CountTokensBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/messages. None leaves the default in force; the sampling defaults are this server's."""

    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)]
    stop_sequences: Annotated[list[StopString], Meta(max_length=16)] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    top_p: Unit | None = None
    stream: bool | None = None
    metadata: Metadata | None = None


_PROMPT: Neutral = {
    "context_management": (),
    "mcp_servers": ([],),
    "speed": ("standard",),
    "user_profile_id": (),
}
_MESSAGES: Neutral = {
    **_PROMPT,
    "container": (),
    "diagnostics": (),
    "inference_geo": (),
    "service_tier": ("auto", "standard_only"),
    "workspace_id": (),
}
_OUTPUT: Neutral = {"effort": (), "task_budget": ()}
_TOOL: Neutral = {
    "allowed_callers": (["direct"],),
    "defer_loading": (False,),
    "eager_input_streaming": (False,),
    "input_examples": ([],),
}


def parse_messages(body: bytes) -> MessagesBody:
    """The body of POST /v1/messages. Raises InvalidRequestError naming the field at fault."""
    parsed = convert(_fields(body, _MESSAGES), MessagesBody)
    _check(parsed)
    return parsed


def parse_prompt(body: bytes) -> CountTokensBody:
    """The body of POST /v1/messages/count_tokens. Raises InvalidRequestError naming the field at fault."""
    parsed = convert(_fields(body, _PROMPT), CountTokensBody)
    _check(parsed)
    return parsed


def _fields(body: bytes, unsupported: Neutral) -> dict[str, Any]:
    fields = without_neutral(decode_object(body), unsupported)
    if "output_config" in fields:
        fields["output_config"] = without_neutral_in(fields["output_config"], _OUTPUT, "output_config.")
    tools = fields.get("tools")
    if isinstance(tools, list):
        fields["tools"] = [
            without_neutral_in(tool, _TOOL, f"tools[{index}].") for index, tool in enumerate(tools)
        ]
    return fields


def _check(prompt: CountTokensBody) -> None:
    """Rules over several fields."""
    if prompt.messages[-1].role == "assistant":
        raise InvalidRequestError(
            "`messages` ends with the assistant's, and a reply that goes on from there is not supported; end with "
            "the user's",
            param="messages",
            code="unsupported_prefill",
        )
    names = [tool.name for tool in prompt.tools or []]
    if isinstance(prompt.tool_choice, OneTool) and prompt.tool_choice.name not in names:
        raise InvalidRequestError(
            f"`tool_choice.name`: there is no tool `{prompt.tool_choice.name}`", param="tool_choice.name"
        )
    if isinstance(prompt.tool_choice, AnyTool) and not names:
        raise InvalidRequestError("`tool_choice` any needs `tools`", param="tool_choice")
    shaped = prompt.output_config is not None and prompt.output_config.format is not None
    if shaped and names and not isinstance(prompt.tool_choice, NoTool):
        raise InvalidRequestError(
            "`output_config.format` cannot be combined with `tools`, unless `tool_choice` is none",
            param="output_config.format",
        )
    if len(set(names)) < len(names):
        raise InvalidRequestError("two of the `tools` have the same name", param="tools")
