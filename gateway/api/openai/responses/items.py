"""The items of a response's input and their translation for the model host."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from gateway.api.generation import Status
from gateway.api.parsing.fields import CallId, invalid
from gateway.api.parsing.json_faults import NO_OBJECT, json_object
from model_host.protocol import Message, ToolCall, ToolName

# Between the instructions and a system message that follows them, which are one turn.
_BETWEEN = "\n\n"


class InputText(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_text"):
    """Text for the model."""

    text: str


class OutputText(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="output_text"):
    """Text of an earlier reply. The model does not see ``logprobs``."""

    text: str
    logprobs: list[Any] | None = None


class MessageItem(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="message"
):
    """One turn. ``type`` is optional; ``id`` and ``status`` are those of an earlier reply's item."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputText | OutputText]
    id: str | None = None
    status: Status | None = None


class CallItem(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="function_call"
):
    """A call of an earlier reply; ``arguments`` is a JSON object as text."""

    call_id: CallId
    name: ToolName
    arguments: str
    id: str | None = None
    status: Status | None = None


class ResultItem(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="type",
    tag="function_call_output",
):
    """The result of the call ``call_id``."""

    call_id: CallId
    output: str | list[InputText]
    id: str | None = None
    status: Status | None = None


InputItem = MessageItem | CallItem | ResultItem


def host_messages(instructions: str | None, items: str | list[InputItem]) -> list[Message]:
    """The turns in the host's form. Raises InvalidRequestError naming the item at fault."""
    turns = _Turns(instructions)
    if isinstance(items, str):
        turns.message(MessageItem(role="user", content=items), "input")
    else:
        for index, item in enumerate(items):
            place = f"input[{index}]"
            match item:
                case MessageItem():
                    turns.message(item, place)
                case CallItem():
                    turns.call(item, place)
                case ResultItem():
                    turns.result(item, place)
    turns.check_answered("input")
    return turns.made


class _Turns:
    """The prompt so far. A text of the model and the calls after it are one turn."""

    def __init__(self, instructions: str | None) -> None:
        self.made = [Message("system", instructions)] if instructions else []
        self._unanswered: dict[str, str] = {}  # calls of the last turn: name by id

    def message(self, item: MessageItem, place: str) -> None:
        self.check_answered(place)
        role = "system" if item.role == "developer" else item.role
        content = _text(item, place)
        if role == "system" and len(self.made) == 1 and self.made[0].role == "system":
            self.made = [Message("system", f"{self.made[0].content}{_BETWEEN}{content}")]
        else:
            self.made.append(Message(role, content))

    def call(self, item: CallItem, place: str) -> None:
        if item.call_id in self._unanswered:
            raise invalid(f"{place}.call_id", "an earlier call has the same id")
        if not self.made or self.made[-1].role != "assistant":
            self.check_answered(place)
            self.made.append(Message("assistant", ""))
        turn = self.made.pop()
        self.made.append(replace(turn, tool_calls=[*turn.tool_calls, _call(item, place)]))
        self._unanswered[item.call_id] = item.name

    def result(self, item: ResultItem, place: str) -> None:
        name = self._unanswered.pop(item.call_id, None)
        if name is None:
            raise invalid(
                f"{place}.call_id", f"no unanswered call before it has the id {item.call_id[:80]!r}"
            )
        text = item.output if isinstance(item.output, str) else "".join(part.text for part in item.output)
        self.made.append(Message("tool", text, tool_call_id=item.call_id, name=name))

    def check_answered(self, place: str) -> None:
        if self._unanswered:
            open_calls = ", ".join(self._unanswered)[:200]
            raise invalid(place, f"send the `function_call_output` of the calls {open_calls} first")


def _text(item: MessageItem, place: str) -> str:
    if isinstance(item.content, str):
        return item.content
    wanted = OutputText if item.role == "assistant" else InputText
    for index, part in enumerate(item.content):
        if not isinstance(part, wanted):
            raise invalid(
                f"{place}.content[{index}].type",
                f"the role {item.role} takes parts of the type {wanted.__struct_config__.tag}",
            )
    return "".join(part.text for part in item.content)


def _call(item: CallItem, place: str) -> ToolCall:
    arguments = json_object(item.arguments or "{}")
    if arguments is None:
        raise invalid(f"{place}.arguments", NO_OBJECT)
    return ToolCall(item.call_id, item.name, arguments)
