"""The messages of a chat request and their translation for the model host."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gateway.api.parsing.fields import CallId, invalid, unsupported
from gateway.api.parsing.json_faults import NO_OBJECT, json_object
from model_host.protocol import Message, ToolCall, ToolName


class ContentPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a message's content; only text is supported."""

    type: Literal["text"]
    text: str


class SentFunction(Struct, frozen=True, forbid_unknown_fields=True):
    """The function that an earlier reply called; ``arguments`` is a JSON object as text."""

    name: ToolName
    arguments: str


class SentCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of an earlier reply, sent back."""

    id: CallId
    type: Literal["function"]
    function: SentFunction


class ChatMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. ``developer`` means ``system``; ``tool`` is the result of the call ``tool_call_id``.

    ``content`` may be null or absent next to ``tool_calls``.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    tool_calls: Annotated[list[SentCall], Meta(max_length=128)] | None = None
    tool_call_id: CallId | None = None
    name: ToolName | None = None

    @property
    def text(self) -> str:
        """The content; parts are joined without a separator."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


def host_messages(messages: list[ChatMessage]) -> list[Message]:
    """The turns in the host's form. Raises InvalidRequestError naming the field at fault."""
    made: list[Message] = []
    unanswered: dict[str, str] = {}  # calls of the last assistant's turn: name by id
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        _check_fields(message, place)
        if message.role == "tool":
            made.append(_result(message, unanswered, place))
            continue
        if unanswered:
            raise invalid(place, f"send the `tool` messages of the calls {', '.join(unanswered)} first")
        calls = [_call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls or [])]
        unanswered = {call.id: call.name for call in calls}
        if len(unanswered) < len(calls):
            raise invalid(f"{place}.tool_calls", "two calls have the same `id`")
        role = "system" if message.role == "developer" else message.role
        made.append(Message(role, message.text, tool_calls=calls))
    if unanswered:
        raise invalid(
            "messages", f"the calls {', '.join(unanswered)} need `tool` messages with their results"
        )
    return made


def _check_fields(message: ChatMessage, place: str) -> None:
    if message.tool_calls and message.role != "assistant":
        raise invalid(f"{place}.tool_calls", "only assistant messages can have tool calls")
    if message.content is None and not message.tool_calls:
        raise invalid(f"{place}.content", "it is missing; only a message with `tool_calls` can omit it")
    if (message.tool_call_id is not None) != (message.role == "tool"):
        raise invalid(f"{place}.tool_call_id", "`tool` messages, and no others, need it")
    if message.name is not None and message.role != "tool":
        raise unsupported(f"{place}.name", ", except in a `tool` message")


def _result(message: ChatMessage, unanswered: dict[str, str], place: str) -> Message:
    assert message.tool_call_id is not None
    name = unanswered.pop(message.tool_call_id, None)
    if name is None:
        raise invalid(
            f"{place}.tool_call_id", f"no unanswered call before it has the id {message.tool_call_id[:80]!r}"
        )
    if message.name not in (None, name):
        raise invalid(f"{place}.name", f"the call was to {name}")
    return Message("tool", message.text, tool_call_id=message.tool_call_id, name=name)


def _call(call: SentCall, place: str) -> ToolCall:
    arguments = json_object(call.function.arguments or "{}")
    if arguments is None:
        raise invalid(f"{place}.function.arguments", NO_OBJECT)
    return ToolCall(call.id, call.function.name, arguments)
