"""The body of POST /v1/chat/completions: every field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.api.fields import convert, decode_object
from gateway.errors import InvalidRequestError
from model_host.protocol import Lane, Penalty, Role, StopString, Unit


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a message's content; text is the only type."""

    type: Literal["text"]
    text: str


class ChatMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """One turn. ``developer`` is OpenAI's newer name of ``system``."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part]

    @property
    def text(self) -> str:
        """The content as one string; parts are joined as they are."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)

    @property
    def host_role(self) -> Role:
        """The role as chat templates know it."""
        return "system" if self.role == "developer" else self.role


class JsonSchema(Struct, frozen=True, forbid_unknown_fields=True):
    """A named schema. The output follows it whether ``strict`` or not."""

    name: Annotated[str, Meta(max_length=64)] = ""
    schema: dict[str, Any] = {}
    strict: bool | None = None


class ResponseFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """What the output must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """``include_usage`` adds a last chunk with the token counts."""

    include_usage: bool | None = None


class ChatRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that are honoured. None leaves the default in force, as if the field were absent.

    The sampling defaults are those of ``model_host.protocol.Sampling`` (temperature 0.7, top_p 0.95,
    top_k 64), not OpenAI's (temperature 1): small models ramble at 1.
    """

    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=4096)]
    model: str = "default"
    stop: StopString | Annotated[list[StopString], Meta(max_length=16)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**32 - 2)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_p: Unit | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Annotated[str, Meta(max_length=256)] | None = None  # kept in the request log
    # Ours.
    priority: Lane | None = None
    keep_alive: float | str | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    min_p: Unit | None = None
    repeat_penalty: Annotated[float, Meta(ge=0.1, le=5.0)] | None = None
    grammar: Annotated[str, Meta(min_length=1, max_length=262_144)] | None = None
    ignore_eos: bool | None = None


# OpenAI's fields that we do not have, with the values that ask for nothing. null always asks for nothing.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "metadata": ({},),
    "modalities": (["text"],),
    "moderation": (),
    "n": (1,),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "prompt_cache_key": (),
    "prompt_cache_options": (),
    "prompt_cache_retention": (),
    "reasoning_effort": ("none",),
    "safety_identifier": (),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "verbosity": ("medium",),
    "web_search_options": (),
}
# What the official client sends along when a reply's message is sent back.
_UNSUPPORTED_IN_MESSAGE: dict[str, tuple[Any, ...]] = {
    "annotations": ([],),
    "audio": (),
    "function_call": (),
    "name": (),
    "refusal": (),
    "tool_call_id": (),
    "tool_calls": ([],),
}
_UNSUPPORTED_STREAM_OPTIONS: dict[str, tuple[Any, ...]] = {"include_obfuscation": (False,)}


def parse_chat(body: bytes) -> ChatRequest:
    """The request in ``body``. Raises InvalidRequestError naming the field at fault."""
    fields = _without_neutral(decode_object(body), _UNSUPPORTED, "")
    if isinstance(fields.get("messages"), list):
        fields["messages"] = [
            _without_neutral(message, _UNSUPPORTED_IN_MESSAGE, f"messages[{index}].")
            if isinstance(message, dict)
            else message
            for index, message in enumerate(fields["messages"])
        ]
    if isinstance(fields.get("stream_options"), dict):
        fields["stream_options"] = _without_neutral(
            fields["stream_options"], _UNSUPPORTED_STREAM_OPTIONS, "stream_options."
        )
    request = convert(fields, ChatRequest)
    _check(request)
    return request


def _without_neutral(
    fields: dict[str, Any], unsupported: dict[str, tuple[Any, ...]], prefix: str
) -> dict[str, Any]:
    """``fields`` less the unsupported ones that ask for nothing. Raises for those that ask for something."""
    kept = {}
    for name, value in fields.items():
        if name not in unsupported:
            kept[name] = value
        elif value is not None and not any(
            type(value) is type(neutral) and value == neutral for neutral in unsupported[name]
        ):
            raise InvalidRequestError(
                f"`{prefix}{name}` is not supported{_only(unsupported[name])}",
                param=prefix + name,
                code="unsupported_field",
            )
    return kept


def _only(neutral: tuple[Any, ...]) -> str:
    shown = " or ".join(str(value).lower() if isinstance(value, bool) else repr(value) for value in neutral)
    return f", except as {shown}" if neutral else ""


def _check(request: ChatRequest) -> None:
    """Rules over several fields."""
    if request.stream_options is not None and not request.stream:
        raise InvalidRequestError("`stream_options` needs `stream: true`", param="stream_options")
    limits = {request.max_tokens, request.max_completion_tokens} - {None}
    if len(limits) > 1:
        raise InvalidRequestError(
            "`max_tokens` and `max_completion_tokens` are two names of one limit; send one of them",
            param="max_completion_tokens",
        )
    wanted = request.response_format
    if wanted is None:
        return
    if (wanted.type == "json_schema") != (wanted.json_schema is not None):
        raise InvalidRequestError(
            "`response_format.json_schema` belongs to the type `json_schema`, and to it alone",
            param="response_format",
        )
    if wanted.type != "text" and request.grammar is not None:
        raise InvalidRequestError("`grammar` and `response_format` exclude each other", param="grammar")
