"""Translation of Anthropic's messages for the model host: tool results become separate turns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from gateway.api.anthropic.bodies import (
    AnthropicMessage,
    AnyTool,
    AutoTool,
    CountTokensBody,
    NoTool,
    OneTool,
    OutputBlock,
    TextBlock,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
)
from gateway.api.parsing.fields import invalid
from model_host.protocol import Message, Tool, ToolCall

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


def _blocks(number: int, message: AnthropicMessage) -> Iterator[tuple[str, OutputBlock]]:
    """The blocks of a message, each with its path in the request."""
    blocks = [TextBlock(message.content)] if isinstance(message.content, str) else message.content
    for index, block in enumerate(blocks):
        yield f"messages[{number}].content[{index}]", block


def _text(content: str | list[TextBlock]) -> str:
    return content if isinstance(content, str) else "".join(block.text for block in content)


def _joined(texts: list[str]) -> str:
    return _BETWEEN.join(text for text in texts if text)
