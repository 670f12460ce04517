"""The body of POST /v1/chat/completions: every field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.api.chat_messages import ChatMessage
from gateway.api.chat_tools import ToolChoice, Tools
from gateway.api.fields import convert, decode_object
from gateway.api.generation import (
    ChoiceCount,
    GenerationFields,
    Grammar,
    MaxTokens,
    StreamOptions,
    TopLogprobs,
)
from gateway.api.neutral import without_neutral
from gateway.errors import InvalidRequestError


class JsonSchema(Struct, frozen=True, forbid_unknown_fields=True):
    """A named schema. The output follows it whether ``strict`` or not."""

    name: Annotated[str, Meta(max_length=64)] = ""
    schema: dict[str, Any] = {}
    strict: bool | None = None


class ResponseFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """What the output must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


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
            without_neutral(message, _UNSUPPORTED_IN_MESSAGE, f"messages[{index}].")
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
    if wanted is None:
        return
    if (wanted.type == "json_schema") != (wanted.json_schema is not None):
        raise InvalidRequestError(
            "`response_format.json_schema` belongs to the type `json_schema`, and to it alone",
            param="response_format",
        )
    if wanted.type != "text" and request.grammar is not None:
        raise InvalidRequestError("`grammar` and `response_format` exclude each other", param="grammar")
