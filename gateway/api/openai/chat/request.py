"""The body of POST /v1/chat/completions: every field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from gateway.api.openai.chat.messages import ChatMessage
from gateway.api.openai.chat.tools import ToolChoice, Tools
from gateway.api.openai.generation import (
    ChoiceCount,
    GenerationFields,
    Grammar,
    MaxTokens,
    ResponseFormat,
    StreamOptions,
    TopLogprobs,
    check_format,
)
from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.neutral import without_neutral
from gateway.base.errors import InvalidRequestError


class ChatRequest(GenerationFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that are honoured besides those of every generation."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=4096)]
    max_tokens: MaxTokens | None = None
    max_completion_tokens: MaxTokens | None = None
    response_format: ResponseFormat | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    n: ChoiceCount | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None  # false: no record of it is kept in the request log
    # Ours.
    grammar: Grammar | None = None
    ignore_eos: bool | None = None


# OpenAI's fields that we do not have, with the values that ask for nothing. null always asks for nothing.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
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
}
# What the official client sends along when a reply's message is sent back.
_UNSUPPORTED_IN_MESSAGE: dict[str, tuple[Any, ...]] = {
    "annotations": ([],),
    "audio": (),
    "function_call": (),
    "refusal": (),
}
_UNSUPPORTED_STREAM_OPTIONS: dict[str, tuple[Any, ...]] = {"include_obfuscation": (False,)}


def parse_chat(body: bytes) -> ChatRequest:
    """The request in ``body``. Raises InvalidRequestError naming the field at fault."""
    fields = without_neutral(decode_object(body), _UNSUPPORTED, "")
    if isinstance(fields.get("messages"), list):
        fields["messages"] = [
            _text_alone(
                without_neutral(message, _UNSUPPORTED_IN_MESSAGE, f"messages[{index}]."), f"messages[{index}]"
            )
            if isinstance(message, dict)
            else message
            for index, message in enumerate(fields["messages"])
        ]
    if isinstance(fields.get("stream_options"), dict):
        fields["stream_options"] = without_neutral(
            fields["stream_options"], _UNSUPPORTED_STREAM_OPTIONS, "stream_options."
        )
    request = convert(fields, ChatRequest)
    _check(request)
    return request


def _text_alone(message: dict[str, Any], place: str) -> dict[str, Any]:
    """The message. Raises InvalidRequestError for parts that are no text, such as images."""
    parts = message.get("content")
    for index, part in enumerate(parts if isinstance(parts, list) else ()):
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise InvalidRequestError(
                f"`{place}.content[{index}].type` is `{kind[:40]}`, and only `text` can be read here: no images, "
                "sounds or files",
                param=f"{place}.content[{index}].type",
            )
    return message


def _check(request: ChatRequest) -> None:
    """Rules over several fields."""
    if request.store:
        raise InvalidRequestError(
            "`store: true` is not supported: replies cannot be fetched again; `store: false` keeps the request out of "
            "the request log",
            param="store",
            code="unsupported_field",
        )
    if request.stream_options is not None and not request.stream:
        raise InvalidRequestError("`stream_options` needs `stream: true`", param="stream_options")
    limits = {request.max_tokens, request.max_completion_tokens} - {None}
    if len(limits) > 1:
        raise InvalidRequestError(
            "`max_tokens` and `max_completion_tokens` are two names of one limit; send one of them",
            param="max_completion_tokens",
        )
    if request.top_logprobs is not None and not request.logprobs:
        raise InvalidRequestError("`top_logprobs` needs `logprobs: true`", param="top_logprobs")
    _check_shape(request)


def _check_shape(request: ChatRequest) -> None:
    """At most one thing shapes the output: tools, a response format, or a grammar."""
    wanted = request.response_format
    shaped = request.grammar is not None or (wanted is not None and wanted.type != "text")
    if request.tools and request.tool_choice != "none" and shaped:
        raise InvalidRequestError(
            "`tools` cannot be combined with `response_format` or `grammar`; send `tool_choice: none` for such a reply",
            param="tools",
        )
    check_format(wanted, request.grammar)
