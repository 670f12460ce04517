"""Tools as plain text, for chat templates without tools, in the form that most templates with tools use (Hermes). Pure.

Descriptions go into the system message, calls into the text of assistants, results into messages of users.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec.structs import replace

from model_host.protocol import Message, TextPart, Tool
from model_host.replies.tool_forms import ToolForm

GENERIC_FORM = ToolForm("json", "<tool_call>", "</tool_call>", key="arguments")

_OFFER = """You may call functions to help with the user's request. These are available, with JSON schemas of their \
arguments:
<tools>
{tools}
</tools>
To call one, reply with its name and arguments as JSON between tags, and nothing else:
<tool_call>
{{"name": NAME, "arguments": {{...}}}}
</tool_call>
If no function helps, reply without a call."""
_BETWEEN = TextPart("\n\n")


def as_plain_messages(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The conversation without tools, calls and results, which are text in it. Roles still alternate."""
    plain: list[Message] = []
    if tools:
        offer = _OFFER.format(tools="\n".join(_described(tool) for tool in tools))
        plain.append(Message("system", [TextPart(offer)]))
    answering = False  # the message before is a result of a tool
    for message in messages:
        result = message.role == "tool"
        if result:
            turn = Message("user", _tagged("tool_response", message.content))
        elif message.tool_calls:
            turn = Message("assistant", [*_parts(message.content), *_calls(message)])
        else:
            turn = replace(message, content=_parts(message.content))
        joined = turn.role == "system" if len(plain) == 1 and tools else answering and turn.role == "user"
        if joined:
            assert isinstance(plain[-1].content, list) and isinstance(turn.content, list)
            plain[-1] = replace(turn, content=[*plain[-1].content, _BETWEEN, *turn.content])
        else:
            plain.append(turn)
        answering = result or (joined and answering)
    return plain


def _described(tool: Tool) -> str:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


def _calls(message: Message) -> list[TextPart]:
    parts: list[TextPart] = []
    for call in message.tool_calls:
        text = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
        parts += [TextPart("\n"), *_tagged("tool_call", text)]
    return parts


def _tagged(tag: str, content: str | list[TextPart]) -> list[TextPart]:
    return [TextPart(f"<{tag}>\n"), *_parts(content), TextPart(f"\n</{tag}>")]


def _parts(content: str | list[TextPart]) -> list[TextPart]:
    return [TextPart(content)] if isinstance(content, str) else content
