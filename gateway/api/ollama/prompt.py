"""Translation of Ollama's messages and tools for the model host."""

from __future__ import annotations

from typing import Any

from gateway.api.ollama.bodies import ChatBody, GenerateBody, OllamaMessage
from gateway.api.parsing.fields import invalid
from model_host.protocol import Message, Tool, ToolCall

_ROLES = {"tool_calls": "assistant", "tool_name": "tool", "tool_call_id": "tool"}


def chat_fields(body: ChatBody) -> dict[str, Any]:
    """The prompt's fields of GenerateCall for /api/chat."""
    functions = [tool.function for tool in body.tools or []]
    tools = [Tool(each.name, each.description or "", each.parameters or {}) for each in functions]
    return {"messages": _messages(body.messages or []), "tools": tools}


def generate_fields(body: GenerateBody) -> dict[str, Any]:
    """The prompt's fields of GenerateCall for /api/generate: a user's turn, or raw text."""
    prompt = body.prompt or ""
    if body.raw:
        return {"prompt": prompt}
    system = [Message("system", body.system)] if body.system else []
    return {"messages": [*system, Message("user", prompt)]}


def _messages(sent: list[OllamaMessage]) -> list[Message]:
    """The turns. A ``tool`` message answers the call that it names, or else the first unanswered one."""
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
    """The calls of a reply that is sent back; an id that the client did not send is made up."""
    return [
        ToolCall(call.id or f"call_{number}_{index}", call.function.name, call.function.arguments)
        for index, call in enumerate(message.tool_calls or [])
    ]


def _answered(number: int, message: OllamaMessage, waiting: list[ToolCall]) -> ToolCall:
    wanted_id, wanted_name = message.tool_call_id, message.tool_name
    for call in waiting:
        if wanted_id in (None, call.id) and wanted_name in (None, call.name):
            return call
    raise invalid(
        f"messages[{number}]",
        "no open call of the last assistant message has its `tool_call_id` and `tool_name`",
    )


def _check_fields(number: int, message: OllamaMessage) -> None:
    for name, role in _ROLES.items():
        if getattr(message, name) and message.role != role:
            raise invalid(
                f"messages[{number}].{name}", f"messages of the role `{message.role}` cannot have it"
            )
