"""The messages of a chat request: what they may say, and what the host makes of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gateway.api.parsing.json_faults import NO_OBJECT, json_object
from gateway.base.errors import InvalidRequestError
from model_host.protocol import Message, ToolCall, ToolName

CallId = Annotated[str, Meta(min_length=1, max_length=256)]


class ContentPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a message's content; text is the only type."""

    type: Literal["text"]
    text: str


class SentFunction(Struct, frozen=True, forbid_unknown_fields=True):
    """What an earlier reply called. ``arguments`` is the text of a JSON object."""

    name: ToolName
    arguments: str


class SentCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of an earlier reply, sent back."""

    id: CallId
    type: Literal["function"]
    function: SentFunction


class ChatMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. ``developer`` is OpenAI's newer name of ``system``; ``tool`` answers the call ``tool_call_id``.

    ``content`` may be null or absent beside ``tool_calls``.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    tool_calls: Annotated[list[SentCall], Meta(max_length=128)] | None = None
    tool_call_id: CallId | None = None
    name: ToolName | None = None

    @property
    def text(self) -> str:
        """The content as one string; parts are joined as they are."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


def host_messages(messages: list[ChatMessage]) -> list[Message]:
    """The turns as the host knows them. Raises InvalidRequestError naming the field at fault."""
    made: list[Message] = []
    unanswered: dict[str, str] = {}  # calls of the last assistant's turn: name by id
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        _check_fields(message, place)
        if message.role == "tool":
            made.append(_result(message, unanswered, place))
            continue
        if unanswered:
            raise _wrong(place, f"the calls {', '.join(unanswered)} need their `tool` messages first")
        calls = [_call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(message.tool_calls or [])]
        unanswered = {call.id: call.name for call in calls}
        if len(unanswered) < len(calls):
            raise _wrong(f"{place}.tool_calls", "two calls have the same `id`")
        role = "system" if message.role == "developer" else message.role
        made.append(Message(role, message.text, tool_calls=calls))
    if unanswered:
        raise _wrong(
            "messages", f"the calls {', '.join(unanswered)} have no `tool` message with their result"
        )
    return made


def _check_fields(message: ChatMessage, place: str) -> None:
    """Which fields go with which role."""
    if message.tool_calls and message.role != "assistant":
        raise _wrong(f"{place}.tool_calls", "only an assistant's message has tool calls")
    if message.content is None and not message.tool_calls:
        raise _wrong(f"{place}.content", "it is missing; only a message with `tool_calls` may go without")
    if (message.tool_call_id is not None) != (message.role == "tool"):
        raise _wrong(f"{place}.tool_call_id", "it belongs to a `tool` message, which needs it")
    if message.name is not None and message.role != "tool":
        raise InvalidRequestError(
            f"`{place}.name` is not supported, except in a `tool` message",
            param=f"{place}.name",
            code="unsupported_field",
        )


def _result(message: ChatMessage, unanswered: dict[str, str], place: str) -> Message:
    assert message.tool_call_id is not None
    name = unanswered.pop(message.tool_call_id, None)
    if name is None:
        raise _wrong(
            f"{place}.tool_call_id", f"no open call before it has the id {message.tool_call_id[:80]!r}"
        )
    if message.name not in (None, name):
        raise _wrong(f"{place}.name", f"the call was of {name}")
    return Message("tool", message.text, tool_call_id=message.tool_call_id, name=name)


def _call(call: SentCall, place: str) -> ToolCall:
    arguments = json_object(call.function.arguments or "{}")
    if arguments is None:
        raise _wrong(f"{place}.function.arguments", NO_OBJECT)
    return ToolCall(call.id, call.function.name, arguments)


def _wrong(place: str, what: str) -> InvalidRequestError:
    return InvalidRequestError(f"`{place}`: {what}", param=place)
