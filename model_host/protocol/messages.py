"""Every message between the gateway and a model host.

One JSON object per line, UTF-8, at most :data:`MAX_LINE_BYTES` including the newline. Requests travel to
the host on its stdin and carry ``"op"``; events come back on its stdout and carry ``"event"``. Every request
has an ``id`` chosen by the sender and gets exactly one terminal event (:data:`TERMINAL`), whatever happens.

The package :mod:`model_host.protocol` exports them; nothing else of ``model_host`` is imported by the gateway.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from model_host.protocol.checks import check_count, check_embed, check_generate
from model_host.protocol.counters import GetStats, Ping, Pong, Stats
from model_host.protocol.generation import Count, Generate
from model_host.protocol.parts import (
    Owner,
    RequestId,
    TokenId,
    TokenLogprob,
    Unit,
)
from model_host.protocol.vectors import Embed, Embedded

PROTOCOL_VERSION = 3
MAX_LINE_BYTES = 8 * 1024 * 1024

# --------------------------------------------------------------------------------------- requests


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
    "reply_too_long",  # the reply would be over the line limit
    "not_erased",  # files of a forgotten owner could not be deleted; retriable
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
    n_ctx: int  # tokens that one sequence may have: no more than cells, nor than it was trained for
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


RequestEvent = (
    Queued
    | Started
    | Prefill
    | Delta
    | ToolDelta
    | Finished
    | Failed
    | Counted
    | Detokenized
    | Embedded
    | Forgotten
)
Event = Loading | Ready | RequestEvent | Cancelled | Stats | Pong | Closing
TERMINAL = (Finished, Failed, Counted, Detokenized, Embedded, Cancelled, Forgotten, Stats, Pong, Closing)

_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # what msgspec raises for a line


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
    except _UNREADABLE as error:
        raise ProtocolError(_explain(error), named_id(line)) from None
    problem = _check(request)
    if problem:
        raise ProtocolError(problem, request.id)
    return request


def decode_event(line: bytes) -> Event:
    """Parse an event line. Raises :class:`ProtocolError`."""
    try:
        return _event_decoder.decode(line)
    except _UNREADABLE as error:
        raise ProtocolError(_explain(error)) from None


def _explain(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _check(request: Request) -> str | None:
    if isinstance(request, Generate):
        return check_generate(request)
    if isinstance(request, Embed):
        return check_embed(request)
    return check_count(request) if isinstance(request, Count) else None


_MARK = re.compile(
    rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[][{}]', re.DOTALL
)  # a string, even a broken one, or a bracket
_ID_VALUE = re.compile(rb'\s*:\s*"([A-Za-z0-9._:-]{1,128})"')


def named_id(line: bytes) -> str | None:
    """A line's own ``id``, however malformed or deeply nested the rest is."""
    depth = 0
    for mark in _MARK.finditer(line):
        if mark[0] in (b"{", b"["):
            depth += 1
        elif mark[0] in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and mark[0] == b'"id"' and (value := _ID_VALUE.match(line, mark.end())):
            return value[1].decode()
    return None
