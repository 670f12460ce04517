"""The bodies of Anthropic's Messages API and their translation for the model host."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.api.parsing.fields import Body, CallId, ThoughtFields, User, ignore, invalid
from model_host.protocol import Message, StopString, Tool, ToolCall, ToolName, Unit


class TextBlock(Body, frozen=True, tag_field="type", tag="text"):
    text: str


class ToolUseBlock(Body, frozen=True, tag_field="type", tag="tool_use"):
    id: CallId
    name: ToolName
    input: dict[str, Any]


class ToolResultBlock(Body, frozen=True, tag_field="type", tag="tool_result"):
    """The result of a tool. ``is_error`` tells the model that the call failed."""

    tool_use_id: CallId
    content: str | list[TextBlock] = ""
    is_error: bool | None = None


class ThinkingBlock(Struct, frozen=True, tag_field="type", tag="thinking"):
    """Thoughts of an earlier reply, which the model does not see again."""


class RedactedThinkingBlock(Struct, frozen=True, tag_field="type", tag="redacted_thinking"):
    """Encrypted thoughts of an earlier reply, for their vendor."""


ShownBlock = TextBlock | ToolUseBlock | ToolResultBlock


class AnthropicMessage(Body, frozen=True):
    """A turn, or part of one: adjacent messages of a role are joined."""

    role: Literal["user", "assistant"]
    content: str | list[ShownBlock | ThinkingBlock | RedactedThinkingBlock]


class AnthropicTool(Body, frozen=True, kw_only=True):
    """A tool of the client; ``input_schema`` is a JSON schema of an object."""

    name: ToolName
    input_schema: dict[str, Any]
    description: str | None = None
    strict: bool | None = None  # inputs follow the schema either way


class AutoTool(Body, frozen=True, tag_field="type", tag="auto"):
    disable_parallel_tool_use: bool | None = None


class AnyTool(Body, frozen=True, tag_field="type", tag="any"):
    disable_parallel_tool_use: bool | None = None


class OneTool(Body, frozen=True, tag_field="type", tag="tool"):
    name: ToolName
    disable_parallel_tool_use: bool | None = None


class NoTool(Body, frozen=True, tag_field="type", tag="none"):
    """The model must not call a tool."""


ToolChoice = AutoTool | AnyTool | OneTool | NoTool


class Metadata(Body, frozen=True):
    """The request log stores ``user_id``."""

    user_id: User | None = None


class JsonFormat(Body, frozen=True):
    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Body, frozen=True):
    format: JsonFormat | None = None
    effort: str | None = None


class CountTokensBody(ThoughtFields, frozen=True, kw_only=True):
    """POST /v1/messages/count_tokens: the parts of a prompt."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    messages: Annotated[list[AnthropicMessage], Meta(min_length=1, max_length=4096)]
    system: str | list[TextBlock] | None = None
    tools: Annotated[list[AnthropicTool], Meta(max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    output_config: OutputConfig | None = None

    @property
    def effort(self) -> str | None:
        return self.output_config.effort if self.output_config is not None else None

    @property
    def json_schema(self) -> dict[str, Any] | None:
        wanted = self.output_config.format if self.output_config is not None else None
        return wanted.schema if wanted is not None else None

    def __post_init__(self) -> None:
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


class MessagesBody(CountTokensBody, frozen=True, kw_only=True):
    """POST /v1/messages; null means absent. The sampling defaults are this server's."""

    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)]
    stop_sequences: Annotated[list[StopString], Meta(max_length=16)] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    top_p: Unit | None = None
    stream: bool | None = None
    metadata: Metadata | None = None

    @classmethod
    def prepare(cls, fields: dict[str, Any]) -> None:
        super().prepare(fields)
        metadata = fields.get("metadata")
        if isinstance(metadata, dict) and (others := metadata.keys() - {"user_id"}):
            fields["metadata"] = {name: value for name, value in metadata.items() if name not in others}
            ignore("metadata")


_CHOICES: dict[type[ToolChoice], str] = {AutoTool: "auto", AnyTool: "required", NoTool: "none"}
# Between the texts of messages that are one turn. Blocks of one message are joined without a separator.
_BETWEEN = "\n\n"


def host_messages(prompt: CountTokensBody) -> list[Message]:
    """The turns in the host's form. Raises InvalidRequestError for misplaced blocks."""
    made = []
    if prompt.system:
        made.append(Message("system", _text(prompt.system)))
    names: dict[str, str] = {}  # tools by call id
    numbered = enumerate(prompt.messages)
    for role, group in groupby(numbered, lambda pair: pair[1].role):
        turn = list(group)
        made += [_assistant(turn, names)] if role == "assistant" else _user(turn, names)
    return made


def host_tools(prompt: CountTokensBody) -> list[Tool]:
    return [Tool(tool.name, tool.description or "", tool.input_schema) for tool in prompt.tools or []]


def tool_settings(prompt: CountTokensBody) -> dict[str, Any]:
    """The tool fields of GenerateCall."""
    tools, choice = host_tools(prompt), prompt.tool_choice
    if not tools or choice is None:
        return {"tools": tools}
    name = f"function:{choice.name}" if isinstance(choice, OneTool) else _CHOICES[type(choice)]
    serial = not isinstance(choice, NoTool) and choice.disable_parallel_tool_use
    return {"tools": tools, "tool_choice": name, "parallel_tool_calls": not serial}


def _assistant(turn: list[tuple[int, AnthropicMessage]], names: dict[str, str]) -> Message:
    """One turn of the model; adds its calls to ``names``."""
    texts, calls = [], []
    for number, message in turn:
        text = ""
        for place, block in _blocks(number, message):
            if isinstance(block, TextBlock):
                text += block.text
            elif isinstance(block, ToolUseBlock):
                names[block.id] = block.name
                calls.append(ToolCall(block.id, block.name, block.input))
            else:
                raise invalid(place, "a `tool_result` is only allowed in user messages")
        texts.append(text)
    return Message("assistant", _joined(texts), tool_calls=calls)


def _user(turn: list[tuple[int, AnthropicMessage]], names: dict[str, str]) -> list[Message]:
    """The results of tools, then the user's text."""
    texts: list[str] = []
    results = []
    for number, message in turn:
        text = ""
        for place, block in _blocks(number, message):
            if isinstance(block, TextBlock):
                text += block.text
            elif isinstance(block, ToolUseBlock):
                raise invalid(place, "a `tool_use` is only allowed in assistant messages")
            elif text or any(texts):
                raise invalid(place, "send the results of tools before the text of a turn")
            else:
                results.append(_result(place, block, names))
        texts.append(text)
    said = _joined(texts)
    return [*results, Message("user", said)] if said or not results else results


def _result(place: str, block: ToolResultBlock, names: dict[str, str]) -> Message:
    name = names.get(block.tool_use_id)
    if name is None:
        raise invalid(f"{place}.tool_use_id", f"no `tool_use` before it has the id `{block.tool_use_id}`")
    text = _text(block.content)
    content = f"error: {text}" if block.is_error else text
    return Message("tool", content, tool_call_id=block.tool_use_id, name=name)


def _blocks(number: int, message: AnthropicMessage) -> Iterator[tuple[str, ShownBlock]]:
    """The blocks of a message that the model sees, each with its path in the request."""
    blocks = [TextBlock(message.content)] if isinstance(message.content, str) else message.content
    for index, block in enumerate(blocks):
        if isinstance(block, ThinkingBlock | RedactedThinkingBlock):
            ignore("messages[].content[].thinking")
            continue
        yield f"messages[{number}].content[{index}]", block


def _text(content: str | list[TextBlock]) -> str:
    return content if isinstance(content, str) else "".join(block.text for block in content)


def _joined(texts: list[str]) -> str:
    return _BETWEEN.join(text for text in texts if text)
