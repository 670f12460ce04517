"""The body of POST /v1/chat/completions and its translation for the model host."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from gateway.api.openai.bodies import (
    Function,
    MaxTokens,
    NamedFunction,
    PromptFields,
    TopLogprobs,
    host_choice,
    host_tools,
    to_call,
)
from gateway.api.parsing.fields import Body, CallId, ignore, invalid, parse_object, unsupported
from gateway.base.errors import InvalidRequestError
from gateway.inference.interface import GenerateCall
from model_host.protocol import Message, ToolCall, ToolName


class ContentPart(Body, frozen=True):
    """A part of a message's content; only text is supported."""

    type: Literal["text"]
    text: str


class SentFunction(Body, frozen=True):
    """The function that an earlier reply called; ``arguments`` is a JSON object as text."""

    name: ToolName
    arguments: str


class SentCall(Body, frozen=True):
    id: CallId
    type: Literal["function"]
    function: SentFunction


class ChatMessage(Body, frozen=True):
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
        calls = []
        for i, call in enumerate(message.tool_calls or []):
            arguments = parse_object(
                call.function.arguments or "{}", f"{place}.tool_calls[{i}].function.arguments"
            )
            calls.append(ToolCall(call.id, call.function.name, arguments))
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
        ignore("messages[].name")


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


class FunctionTool(Body, frozen=True):
    type: Literal["function"]
    function: Function


class NamedTool(Body, frozen=True):
    type: Literal["function"]
    function: NamedFunction


class ChatRequest(PromptFields, frozen=True, kw_only=True):
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=4096)]
    max_completion_tokens: MaxTokens | None = None
    tools: Annotated[list[FunctionTool], Meta(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    # Not in OpenAI's API: the reply continues the last message, which is the assistant's.
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None
    # As in `ThoughtFields`:
    chat_template_kwargs: dict[str, Any] | None = None
    think: bool | str | None = None
    thinking: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    store: bool | None = None  # false: the request log does not record it

    @classmethod
    def prepare(cls, fields: dict[str, Any]) -> None:
        super().prepare(fields)
        _check_text(fields.get("messages"))

    def __post_init__(self) -> None:
        if self.store:
            ignore("store")
        if self.continue_final_message and self.add_generation_prompt:
            raise invalid("add_generation_prompt", "it must be false with `continue_final_message`")
        if self.add_generation_prompt is False and not self.continue_final_message:
            raise unsupported("add_generation_prompt", " as false, except with `continue_final_message`")
        if None not in (self.max_tokens, self.max_completion_tokens) and (
            self.max_tokens != self.max_completion_tokens
        ):
            raise invalid(
                "max_completion_tokens", "`max_tokens` is another name of this limit; send one of them"
            )
        if self.top_logprobs is not None and not self.logprobs:
            raise invalid("top_logprobs", "it needs `logprobs: true`")
        if self.tools and self.tool_choice != "none" and (self.grammar or self.json_schema is not None):
            raise invalid(
                "tools",
                "`response_format` and `grammar` cannot be combined with it, except with `tool_choice: none`",
            )
        super().__post_init__()


def _check_text(messages: Any) -> None:
    """Raises InvalidRequestError for parts other than text, such as images."""
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        parts = message.get("content") if isinstance(message, dict) else None
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind != "text":
                place = f"messages[{number}].content[{index}].type"
                raise InvalidRequestError(
                    f"`{place}` is `{kind[:40]}`, but only `text` is supported: no images, sounds or files",
                    param=place,
                )


def chat_call(chat: ChatRequest, request_id: str, owner: str) -> GenerateCall:
    """The generation that the request asks for. Raises InvalidRequestError."""
    messages = host_messages(chat.messages)
    if chat.continue_final_message and not messages[-1].continuable:
        raise invalid("continue_final_message", "the last message must be the assistant's, with text")
    tools = host_tools({f"tools[{at}].function": tool.function for at, tool in enumerate(chat.tools or [])})
    choice = chat.tool_choice
    named = choice.function.name if isinstance(choice, NamedTool) else None
    return to_call(
        chat,
        request_id,
        owner,
        messages=messages,
        max_tokens=chat.max_completion_tokens or chat.max_tokens,
        grammar=chat.grammar,
        json_schema=chat.json_schema,
        schema_field="response_format",
        ignore_eos=bool(chat.ignore_eos),
        tools=tools,
        tool_choice=host_choice(
            choice if isinstance(choice, str) else None, named, tools, "tool_choice.function.name"
        ),
        parallel_tool_calls=chat.parallel_tool_calls is not False,
        logprobs=(chat.top_logprobs or 0) if chat.logprobs else None,
        continue_final=bool(chat.continue_final_message),
    )
