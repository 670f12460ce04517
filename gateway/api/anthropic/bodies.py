"""The bodies of Anthropic's Messages API: each field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from gateway.api.parsing.fields import CallId, Neutral, User, invalid
from gateway.base.errors import InvalidRequestError
from model_host.protocol import StopString, ToolName, Unit

Nothing = Annotated[list[Any], Meta(max_length=0)] | None


class CacheControl(Struct, frozen=True, forbid_unknown_fields=True):
    """A request to cache up to here. It has no effect: any prefix of a prompt is reused where possible."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="text"):
    """A piece of text."""

    text: str
    cache_control: CacheControl | None = None
    citations: Nothing = None  # null or empty in replies


class DirectCaller(Struct, frozen=True, forbid_unknown_fields=True):
    """The caller of a tool: the model."""

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
    """The result of a tool. ``is_error`` tells the model that the call failed."""

    tool_use_id: CallId
    content: str | list[TextBlock] = ""
    is_error: bool | None = None
    cache_control: CacheControl | None = None
    toolset_name: None = None


OutputBlock = TextBlock | ToolUseBlock | ToolResultBlock


class AnthropicMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A turn, or part of one: adjacent messages of a role are joined."""

    role: Literal["user", "assistant"]
    content: str | list[OutputBlock]


class AnthropicTool(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A tool of the client; ``input_schema`` is a JSON schema of an object."""

    name: ToolName
    input_schema: dict[str, Any]
    description: str | None = None
    type: Literal["custom"] | None = None
    strict: bool | None = None  # inputs follow the schema either way
    cache_control: CacheControl | None = None


class AutoTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="auto"):
    """The model decides whether to call a tool."""

    disable_parallel_tool_use: bool | None = None


class AnyTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="any"):
    """The model must call some tool."""

    disable_parallel_tool_use: bool | None = None


class OneTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="tool"):
    """The model must call this tool."""

    name: ToolName
    disable_parallel_tool_use: bool | None = None


class NoTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="none"):
    """The model must not call a tool."""


ToolChoice = AutoTool | AnyTool | OneTool | NoTool


class Metadata(Struct, frozen=True, forbid_unknown_fields=True):
    """The request log stores ``user_id``."""

    user_id: User | None = None


class Thinking(Struct, frozen=True, forbid_unknown_fields=True):
    """Thinking is not supported."""

    type: Literal["disabled"]


class JsonFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON schema for the text of the reply."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The format of the reply."""

    format: JsonFormat | None = None


class CountTokensBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/messages/count_tokens: the parts of a prompt."""

    neutral: ClassVar[Neutral] = {
        "context_management": (),
        "mcp_servers": ([],),
        "speed": ("standard",),
        "user_profile_id": (),
        "output_config.effort": (),
        "output_config.task_budget": (),
        "tools[].allowed_callers": (["direct"],),
        "tools[].defer_loading": (False,),
        "tools[].eager_input_streaming": (False,),
        "tools[].input_examples": ([],),
    }

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[AnthropicMessage], Meta(min_length=1, max_length=4096)]
    system: str | list[TextBlock] | None = None
    tools: Annotated[list[AnthropicTool], Meta(max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    cache_control: CacheControl | None = None

    @property
    def json_schema(self) -> dict[str, Any] | None:
        wanted = self.output_config.format if self.output_config is not None else None
        return wanted.schema if wanted is not None else None

    def __post_init__(self) -> None:
        if self.messages[-1].role == "assistant":
            raise InvalidRequestError(
                "`messages` ends with an assistant message; continuing it is not supported. End with a user message.",
                param="messages",
                code="unsupported_prefill",
            )
        names = [tool.name for tool in self.tools or []]
        if isinstance(self.tool_choice, OneTool) and self.tool_choice.name not in names:
            raise invalid("tool_choice.name", f"`tools` has no `{self.tool_choice.name}`")
        if isinstance(self.tool_choice, AnyTool) and not names:
            raise invalid("tool_choice", "`any` needs `tools`")
        if self.json_schema is not None and names and not isinstance(self.tool_choice, NoTool):
            raise invalid(
                "output_config.format", "it can be combined with `tools` only if `tool_choice` is `none`"
            )
        if len(set(names)) < len(names):
            raise invalid("tools", "two tools have the same name")


class MessagesBody(CountTokensBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/messages; null means absent. The sampling defaults are this server's."""

    neutral: ClassVar[Neutral] = {
        **CountTokensBody.neutral,
        "container": (),
        "diagnostics": (),
        "inference_geo": (),
        "service_tier": ("auto", "standard_only"),
        "workspace_id": (),
    }

    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)]
    stop_sequences: Annotated[list[StopString], Meta(max_length=16)] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    top_p: Unit | None = None
    stream: bool | None = None
    metadata: Metadata | None = None
