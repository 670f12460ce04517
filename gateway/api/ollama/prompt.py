"""From Ollama's messages and tools to the host's."""

from __future__ import annotations

from typing import Any

from gateway.api.ollama.bodies import ChatBody, GenerateBody, OllamaMessage, OllamaTool
from gateway.base.errors import InvalidRequestError
from model_host.protocol import Message, Tool, ToolCall

_BELONGS = {"tool_calls": "assistant", "tool_name": "tool", "tool_call_id": "tool"}


def chat_fields(body: ChatBody) -> dict[str, Any]:
    """The prompt's fields of GenerateCall for /api/chat."""
    sent = body.messages or []
    fields: dict[str, Any] = {"messages": _messages(sent)}
    if body.tools:
        fields["tools"] = [_tool(tool) for tool in body.tools]
    return fields


def generate_fields(body: GenerateBody) -> dict[str, Any]:
    """The prompt's fields of GenerateCall for /api/generate: one turn of the user, or raw text."""
    prompt = body.prompt or ""
    if body.raw:
        return {"prompt": prompt}
    system = [Message("system", body.system)] if body.system else []
    return {"messages": [*system, Message("user", prompt)]}


def _messages(sent: list[OllamaMessage]) -> list[Message]:
    """The turns. A ``tool`` message answers the call it names, else the first one that has no answer yet."""
    made = []
    waiting: list[ToolCall] = []
    for number, message in enumerate(sent):
        _check_fields(number, message)
        if message.role == "assistant":
            waiting = _calls(number, message)
            made.append(Message("assistant", message.content or "", tool_calls=list(waiting)))
        elif message.role == "tool":
            answered = _answered(number, message, waiting)
            waiting.remove(answered)
            made.append(Message("tool", message.content or "", tool_call_id=answered.id, name=answered.name))
        else:
            made.append(Message(message.role, message.content or ""))
    return made


def _calls(number: int, message: OllamaMessage) -> list[ToolCall]:
    """The calls of a reply that is sent back. Replies carry an id for each; one that was lost is made up."""
    return [
        ToolCall(
            call.id or f"call_{number}_{index}",
            call.function.name,
            call.function.arguments,
        )
        for index, call in enumerate(message.tool_calls or [])
    ]


def _answered(number: int, message: OllamaMessage, waiting: list[ToolCall]) -> ToolCall:
    wanted_id, wanted_name = message.tool_call_id, message.tool_name
    for call in waiting:
        if wanted_id in (None, call.id) and wanted_name in (None, call.name):
            return call
    raise InvalidRequestError(
        f"`messages[{number}]` answers no open tool call of the message before: its `tool_call_id` or `tool_name` "
        "must be that of one",
        param=f"messages[{number}]",
    )


def _check_fields(number: int, message: OllamaMessage) -> None:
    for name, role in _BELONGS.items():
        if getattr(message, name) and message.role != role:
            raise InvalidRequestError(
                f"`messages[{number}].{name}` has no place in a message of the role `{message.role}`",
                param=f"messages[{number}].{name}",
            )


def _tool(tool: OllamaTool) -> Tool:
    function = tool.function
    return Tool(function.name, function.description or "", function.parameters or {})
