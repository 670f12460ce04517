"""From Anthropic's messages to the host's: blocks become turns, tool results turns of their own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from gateway.api.anthropic.bodies import (
    AnthropicMessage,
    AnyTool,
    Auto,
    Block,
    CountTokensBody,
    NoTool,
    OneTool,
    TextBlock,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
)
from gateway.base.errors import InvalidRequestError
from model_host.protocol import Message, Tool, ToolCall

_CHOICES: dict[type[ToolChoice], str] = {Auto: "auto", AnyTool: "required", NoTool: "none"}
# Between the texts of two messages that count as one turn. Blocks of one message are joined as they are.
_BETWEEN = "\n\n"


def host_messages(prompt: CountTokensBody) -> list[Message]:
    """The whole prompt. Raises InvalidRequestError for blocks in the wrong place."""
    made = []
    if prompt.system:
        made.append(Message("system", _text(prompt.system)))
    names: dict[str, str] = {}  # of the tools, by call
    numbered = enumerate(prompt.messages)
    for role, group in groupby(numbered, lambda pair: pair[1].role):
        turn = list(group)
        made += [_assistant(turn, names)] if role == "assistant" else _user(turn, names)
    return made


def host_tools(prompt: CountTokensBody) -> list[Tool]:
    """The tools that the model may call."""
    return [Tool(tool.name, tool.description or "", tool.input_schema) for tool in prompt.tools or []]


def tool_settings(prompt: CountTokensBody) -> dict[str, Any]:
    """The fields of GenerateCall about tools; none without tools."""
    tools, choice = host_tools(prompt), prompt.tool_choice
    if not tools or choice is None:
        return {"tools": tools}
    name = f"function:{choice.name}" if isinstance(choice, OneTool) else _CHOICES[type(choice)]
    serial = not isinstance(choice, NoTool) and choice.disable_parallel_tool_use
    return {"tools": tools, "tool_choice": name, "parallel_tool_calls": not serial}


def _assistant(turn: list[tuple[int, AnthropicMessage]], names: dict[str, str]) -> Message:
    """What the model said and called in one turn; remembers its calls in ``names``."""
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
                raise _misplaced(place, "a `tool_result` belongs to the user")
        texts.append(text)
    return Message("assistant", _joined(texts), tool_calls=calls)


def _user(turn: list[tuple[int, AnthropicMessage]], names: dict[str, str]) -> list[Message]:
    """The results of tools, then what the user said, in one turn."""
    texts: list[str] = []
    results = []
    for number, message in turn:
        text = ""
        for place, block in _blocks(number, message):
            if isinstance(block, TextBlock):
                text += block.text
            elif isinstance(block, ToolUseBlock):
                raise _misplaced(place, "a `tool_use` belongs to the assistant")
            elif text or any(texts):
                raise _misplaced(place, "the tools' results come before the text of a turn")
            else:
                results.append(_result(place, block, names))
        texts.append(text)
    said = _joined(texts)
    return [*results, Message("user", said)] if said or not results else results


def _result(place: str, block: ToolResultBlock, names: dict[str, str]) -> Message:
    name = names.get(block.tool_use_id)
    if name is None:
        raise InvalidRequestError(
            f"`{place}.tool_use_id`: no `tool_use` before it has the id `{block.tool_use_id}`",
            param=f"{place}.tool_use_id",
        )
    text = _text(block.content)
    content = f"error: {text}" if block.is_error else text
    return Message("tool", content, tool_call_id=block.tool_use_id, name=name)


def _blocks(number: int, message: AnthropicMessage) -> Iterator[tuple[str, Block]]:
    """The blocks of a message, each with its place in the request."""
    blocks = [TextBlock(message.content)] if isinstance(message.content, str) else message.content
    for index, block in enumerate(blocks):
        yield f"messages[{number}].content[{index}]", block


def _misplaced(place: str, rule: str) -> InvalidRequestError:
    return InvalidRequestError(f"`{place}`: {rule}", param=place)


def _text(content: str | list[TextBlock]) -> str:
    return content if isinstance(content, str) else "".join(block.text for block in content)


def _joined(texts: list[str]) -> str:
    return _BETWEEN.join(text for text in texts if text)
