"""The body of POST /v1/chat/completions: each field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from gateway.api.openai.bodies import (
    MaxTokens,
    NamedFunction,
    PromptFields,
    TopLogprobs,
    host_choice,
    host_tools,
    to_call,
)
from gateway.api.openai.chat.messages import ChatMessage, host_messages
from gateway.api.parsing.fields import Neutral, convert, decode_object, invalid, unsupported
from gateway.base.errors import InvalidRequestError
from gateway.inference.interface import GenerateCall
from model_host.protocol import ToolName


class Function(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call. ``parameters`` is a JSON schema of an object.

    Constrained calls follow the schema as far as it can be enforced; ``strict`` refuses a schema that cannot.
    """

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool; functions are the only type."""

    type: Literal["function"]
    function: Function


class NamedTool(Struct, frozen=True, forbid_unknown_fields=True):
    """The tool that the reply must call."""

    type: Literal["function"]
    function: NamedFunction


class ChatRequest(PromptFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of chat completions besides those of every completion."""

    # The fields of `messages[]` are those that the official client adds when it sends a reply's message back.
    neutral: ClassVar[Neutral] = {
        **PromptFields.neutral,
        "audio": (),
        "function_call": ("none", "auto"),
        "functions": ([],),
        "metadata": ({},),
        "modalities": (["text"],),
        "moderation": (),
        "prediction": (),
        "prompt_cache_key": (),
        "prompt_cache_options": (),
        "prompt_cache_retention": (),
        "reasoning_effort": ("none",),
        "safety_identifier": (),
        "service_tier": ("auto", "default"),
        "verbosity": ("medium",),
        "web_search_options": (),
        "messages[].annotations": ([],),
        "messages[].audio": (),
        "messages[].function_call": (),
        "messages[].refusal": (),
    }

    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=4096)]
    max_completion_tokens: MaxTokens | None = None
    tools: Annotated[list[FunctionTool], Meta(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    store: bool | None = None  # false: the request log does not record it

    def __post_init__(self) -> None:
        if self.store:
            raise unsupported(
                "store",
                " as true: replies cannot be fetched again; `store: false` keeps the request out of the request log",
            )
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


def parse_chat(body: bytes) -> ChatRequest:
    """Raises InvalidRequestError naming the field at fault."""
    fields = decode_object(body)
    _check_text(fields.get("messages"))
    return convert(fields, ChatRequest)


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
    tools = host_tools([tool.function for tool in chat.tools or []], "tools[{}].function")
    choice = chat.tool_choice
    named = choice.function.name if isinstance(choice, NamedTool) else None
    return to_call(
        chat,
        request_id,
        owner,
        messages=host_messages(chat.messages),
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
    )
