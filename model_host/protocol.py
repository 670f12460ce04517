"""Every message between the gateway and a model host.

One JSON object per line, UTF-8, at most :data:`MAX_LINE_BYTES` including the newline. Requests travel to
the host on its stdin and carry ``"op"``; events come back on its stdout and carry ``"event"``. Every request
has an ``id`` chosen by the sender and gets exactly one terminal event (:data:`TERMINAL`), whatever happens.

This module is the only part of ``model_host`` that the gateway imports. It imports no model code.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from model_host.checks import check_count, check_embed, check_generate
from model_host.counters import GetStats, Ping, Pong, Stats
from model_host.parts import (
    Lane,
    Message,
    Owner,
    Penalty,
    RequestId,
    Role,
    Sampling,
    StopString,
    TextPart,
    TokenId,
    TokenLogprob,
    Tool,
    ToolCall,
    ToolChoice,
    ToolName,
    TopLogprob,
    Unit,
    owner_digest,
)
from model_host.vectors import MAX_TEXTS, Embed, Embedded

__all__ = [  # besides what is defined here
    "MAX_TEXTS",
    "Embed",
    "Embedded",
    "GetStats",
    "Lane",
    "Message",
    "Owner",
    "Penalty",
    "Ping",
    "Pong",
    "RequestId",
    "Role",
    "Sampling",
    "Stats",
    "StopString",
    "TextPart",
    "TokenId",
    "TokenLogprob",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolName",
    "TopLogprob",
    "Unit",
    "owner_digest",
]

PROTOCOL_VERSION = 3
MAX_LINE_BYTES = 8 * 1024 * 1024

# --------------------------------------------------------------------------------------- requests


class Generate(
    Struct, frozen=True, tag_field="op", tag="generate", forbid_unknown_fields=True, omit_defaults=True
):
    """Generate text after a chat (``messages``) or after plain text (``prompt``): exactly one of the two.

    ``max_tokens`` None means the rest of the context. At most one of ``grammar`` (GBNF, rule ``root``),
    ``json_schema`` and ``tools`` shapes the output. ``tool_choice`` is ``auto``, ``none``, ``required`` or
    ``function:NAME``. ``logprobs`` asks for that many alternatives of each token (0: the token's own only).
    """

    id: RequestId
    messages: Annotated[list[Message], Meta(min_length=1, max_length=4096)] | None = None
    prompt: str | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None
    sampling: Sampling = Sampling()
    stop: Annotated[list[StopString], Meta(max_length=16)] = []
    grammar: Annotated[str, Meta(max_length=262_144)] | None = None
    json_schema: dict[str, Any] | bool | None = None
    lane: Lane = "interactive"
    owner: Owner = ""
    ignore_eos: bool = False
    tools: Annotated[list[Tool], Meta(max_length=128)] = []
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None


class Count(Struct, frozen=True, tag_field="op", tag="count", forbid_unknown_fields=True, omit_defaults=True):
    """Count tokens: of each of ``texts`` as plain text, or of ``messages`` (and ``tools``) as a whole prompt."""

    id: RequestId
    texts: Annotated[list[str], Meta(max_length=65_536)] | None = None
    messages: Annotated[list[Message], Meta(min_length=1, max_length=4096)] | None = None
    return_tokens: bool = False
    tools: Annotated[list[Tool], Meta(max_length=128)] = []


class Detokenize(
    Struct, frozen=True, tag_field="op", tag="detokenize", forbid_unknown_fields=True, omit_defaults=True
):
    """The text of token ids; control tokens add nothing to it. ``return_pieces``: the bytes of each one too."""

    id: RequestId
    tokens: Annotated[list[TokenId], Meta(max_length=1_048_576)]
    return_pieces: bool = False


class Cancel(Struct, frozen=True, tag_field="op", tag="cancel", forbid_unknown_fields=True):
    """Stop the request ``target``, which still gets its own terminal event (reason or code ``cancelled``)."""

    id: RequestId
    target: RequestId


class Forget(Struct, frozen=True, tag_field="op", tag="forget", forbid_unknown_fields=True):
    """Drop what is cached and saved of an owner's text. Requests of that owner go on and leave nothing behind."""

    id: RequestId
    owner: Owner


class Shutdown(Struct, frozen=True, tag_field="op", tag="shutdown", forbid_unknown_fields=True):
    """End the host. Open requests finish as cancelled, then ``closing`` is the last event."""

    id: RequestId


Request = Generate | Count | Detokenize | Embed | Cancel | Forget | GetStats | Ping | Shutdown

# ----------------------------------------------------------------------------------------- events

FinishReason = Literal["stop", "length", "cancelled", "tool_calls"]

# What went wrong, for programs. ``message`` says it for people.
FailureCode = Literal[
    "bad_request",  # malformed line, unknown op, field out of range
    "line_too_long",
    "duplicate_id",
    "prompt_too_long",  # details: tokens, limit
    "bad_grammar",
    "bad_template",
    "tools_unsupported",  # the model's chat template has no tools
    "bad_tool_call",  # the model broke off a call, or wrote one that is none
    "wrong_host",  # embed sent to a host that generates text, or the reverse
    "cancelled",  # an embed, a count or a detokenize that was stopped
    "overloaded",  # queue full; retriable
    "out_of_memory",  # the model or its KV cache did not fit
    "model_missing",
    "model_corrupt",
    "model_unsupported",
    "shutting_down",  # retriable
    "internal",
]


class Loading(Struct, frozen=True, tag_field="event", tag="loading"):
    """Model load progress, 0 to 1."""

    progress: Unit


class Ready(Struct, frozen=True, tag_field="event", tag="ready", kw_only=True):
    """The model is loaded; requests are served from now on."""

    protocol: int
    pid: int
    model: str  # general.name of the GGUF, or its file name
    architecture: str
    description: str  # e.g. "gemma3 4B Q4_0"
    parameters: int
    size_bytes: int
    vocabulary: int
    n_ctx: int  # cells of the KV cache, shared by all sequences
    n_ctx_train: int
    n_parallel: int
    threads: int
    build: str  # llama-cpp-python version
    load_seconds: float
    fingerprint: str  # BLAKE2b of the GGUF's size, head and tail: names the weights in logs and snapshots
    tools: bool = False  # the chat template takes tools, in a format that is understood
    dimensions: int = 0  # of an embedding model's vectors
    thread_plan: dict[int, int] = {}  # threads by size of batch; empty: always ``threads``
    thread_speeds: dict[int, dict[int, float]] = {}  # tokens a second by size and threads, if just measured


class Queued(Struct, frozen=True, tag_field="event", tag="queued"):
    """The request waits; sent when its position changes. ``wait_seconds`` is an estimate, None if unknown."""

    id: str
    position: int  # 1: the next one
    wait_seconds: float | None


class Started(Struct, frozen=True, tag_field="event", tag="started"):
    """The request left the queue. ``cached_tokens`` of its prompt were already in the KV cache."""

    id: str
    prompt_tokens: int
    cached_tokens: int
    queue_seconds: float


class Prefill(Struct, frozen=True, tag_field="event", tag="prefill"):
    """Prompt progress: ``done`` of ``total`` tokens are in the KV cache."""

    id: str
    done: int
    total: int


class Delta(Struct, frozen=True, tag_field="event", tag="delta", omit_defaults=True):
    """New text, whole characters only. ``tokens`` sampled since the last delta; ``logprobs`` where asked for."""

    id: str
    text: str
    tokens: int
    logprobs: list[TokenLogprob] = []


class ToolDelta(Struct, frozen=True, tag_field="event", tag="tool_delta"):
    """A piece of a tool call. The first one of each ``index`` (0, 1, …) has the call's id and the tool's name.

    The ``arguments`` of an index join to the text of a JSON object.
    """

    id: str
    index: int
    call_id: str | None
    name: str | None
    arguments: str


class Finished(Struct, frozen=True, tag_field="event", tag="finished", kw_only=True):
    """Terminal event of a generation."""

    id: str
    reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    queue_seconds: float
    prefill_seconds: float
    decode_seconds: float
    seed: int
    stop_string: str | None = None


class Failed(Struct, frozen=True, tag_field="event", tag="failed", omit_defaults=True):
    """Terminal event of a request that could not be served. ``id`` is None when no open request is meant."""

    id: str | None
    code: FailureCode
    message: str
    retriable: bool = False
    details: dict[str, int | float | str] = {}


class Counted(Struct, frozen=True, tag_field="event", tag="counted", omit_defaults=True):
    """Terminal event of ``count``: one count per text, or one for the rendered messages."""

    id: str
    counts: list[int]
    tokens: list[list[int]] | None = None


class Detokenized(Struct, frozen=True, tag_field="event", tag="detokenized", omit_defaults=True):
    """Terminal event of ``detokenize``. Bytes that are no UTF-8 are U+FFFD in ``text``."""

    id: str
    text: str
    pieces: list[list[int]] | None = None


class Cancelled(Struct, frozen=True, tag_field="event", tag="cancelled"):
    """Terminal event of ``cancel``. ``found`` is False when the target had already ended."""

    id: str
    target: str
    found: bool


class Forgotten(Struct, frozen=True, tag_field="event", tag="forgotten"):
    """Terminal event of ``forget``."""

    id: str


class Closing(Struct, frozen=True, tag_field="event", tag="closing"):
    """Terminal event of ``shutdown`` and the last line of the host."""

    id: str


Event = (
    Loading
    | Ready
    | Queued
    | Started
    | Prefill
    | Delta
    | ToolDelta
    | Finished
    | Failed
    | Counted
    | Detokenized
    | Embedded
    | Cancelled
    | Forgotten
    | Stats
    | Pong
    | Closing
)
TERMINAL = (Finished, Failed, Counted, Detokenized, Embedded, Cancelled, Forgotten, Stats, Pong, Closing)

_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


class ProtocolError(ValueError):
    """A line that is no valid message. ``request_id`` is set when the line still names one."""

    def __init__(self, message: str, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


def encode(message: Request | Event) -> bytes:
    """One message as a line, newline included. Raises :class:`ProtocolError` over the line limit."""
    line = _encoder.encode(message) + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(f"message of {len(line)} bytes is over the line limit of {MAX_LINE_BYTES} bytes")
    return line


def decode_request(line: bytes) -> Request:
    """Parse and range-check a request line. Raises :class:`ProtocolError` naming the field at fault."""
    try:
        request = _request_decoder.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(_explain(error), _id_of(line)) from None
    problem = _check(request)
    if problem:
        raise ProtocolError(problem, request.id)
    return request


def decode_event(line: bytes) -> Event:
    """Parse an event line. Raises :class:`ProtocolError`."""
    try:
        return _event_decoder.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(_explain(error)) from None


def _explain(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _check(request: Request) -> str | None:
    if isinstance(request, Generate):
        return check_generate(request)
    if isinstance(request, Embed):
        return check_embed(request)
    return check_count(request) if isinstance(request, Count) else None


class _JustId(Struct):
    id: RequestId


def _id_of(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=_JustId).id
    except (msgspec.DecodeError, RecursionError):
        return None
