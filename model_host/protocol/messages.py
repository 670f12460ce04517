"""Events, and messages to and from lines.

A line is one JSON object in UTF-8 of at most :data:`MAX_LINE_BYTES`, newline included. Requests go to the host's stdin
and carry ``"op"``; events come from its stdout and carry ``"event"``. Each request has an ``id``, chosen by its sender,
and gets exactly one terminal event (:data:`Terminal`), whatever happens.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from model_host.protocol.counters import GetStats, Ping, Pong, Stats
from model_host.protocol.parts import EventBase, TokenLogprob, Unit
from model_host.protocol.requests import Cancel, Count, Detokenize, Embed, Forget, Generate, Shutdown

PROTOCOL_VERSION = 3
MAX_LINE_BYTES = 8 * 1024 * 1024

Request = Generate | Count | Detokenize | Embed | Cancel | Forget | GetStats | Ping | Shutdown

FinishReason = Literal["stop", "length", "cancelled", "tool_calls"]

FailureCode = Literal[
    "bad_request",  # malformed line, unknown op, field out of range
    "line_too_long",
    "duplicate_id",
    "prompt_too_long",  # details: tokens, limit
    "bad_grammar",
    "bad_template",
    "bad_tool_call",  # the model wrote an incomplete or malformed call
    "wrong_host",  # `embed` sent to a generating host, or the reverse
    "cancelled",  # an `embed`, `count` or `detokenize` was stopped
    "reply_too_long",  # the reply would be over the line limit
    "not_erased",  # files of a forgotten owner could not be deleted; retriable
    "overloaded",  # queue full; retriable
    "out_of_memory",  # the model or its KV cache did not fit
    "model_missing",
    "model_corrupt",
    "model_unsupported",
    "adapter_unusable",
    "shutting_down",  # retriable
    "internal",
]


class Loading(EventBase, frozen=True):
    """Model load progress, 0 to 1."""

    progress: Unit


class Ready(EventBase, frozen=True, kw_only=True):
    """The model is loaded; requests are served from now on."""

    protocol: int
    pid: int
    model: str  # general.name of the GGUF, or its file name
    architecture: str
    description: str  # such as "gemma3 4B Q4_0"
    parameters: int
    size_bytes: int
    vocabulary: int
    n_ctx: int  # limit of one sequence: the cells of the cache or ``n_ctx_train``, whichever is less
    n_ctx_train: int
    n_parallel: int
    threads: int
    build: str  # llama-cpp-python version
    load_seconds: float
    fingerprint: str  # BLAKE2b of the GGUF's size, head and tail: identifies the weights
    dimensions: int = 0  # of an embedding model's vectors
    thread_plan: dict[int, int] = {}  # threads by batch size; empty: always ``threads``
    thread_speeds: dict[int, dict[int, float]] = {}  # tokens/s by batch size and threads, if just measured
    adapters: dict[str, str] = {}  # LoRA adapters that requests may name, with their files' checksums


class Queued(EventBase, frozen=True):
    """The request waits; sent whenever its position changes. ``wait_seconds`` is an estimate, None if unknown."""

    id: str
    position: int  # 1: the next one
    wait_seconds: float | None


class Started(EventBase, frozen=True):
    """The request left the queue. ``cached_tokens`` of its prompt were already in the KV cache."""

    id: str
    prompt_tokens: int
    cached_tokens: int
    queue_seconds: float


class Prefill(EventBase, frozen=True):
    """Prompt progress: ``done`` of ``total`` tokens are in the KV cache."""

    id: str
    done: int
    total: int


class PromptLogprobs(EventBase, frozen=True, omit_defaults=True, tag="prompt_logprobs"):
    """Log-probabilities of the next tokens of the prompt, if requested.

    ``first``: no token is before the first one of them, so its probability is unknown, and its ``logprob`` is 0.
    """

    id: str
    tokens: list[TokenLogprob]
    first: bool = False


class Delta(EventBase, frozen=True, omit_defaults=True):
    """New text in whole characters. ``tokens`` were sampled since the last delta. ``logprobs``: if requested."""

    id: str
    text: str
    tokens: int
    logprobs: list[TokenLogprob] = []


class Thought(EventBase, frozen=True):
    """New text of a thought, which is not part of the reply. ``tokens`` counts those sampled since the last delta."""

    id: str
    text: str
    tokens: int


class ToolDelta(EventBase, frozen=True, tag="tool_delta"):
    """A piece of a tool call. The first one of each ``index`` (0, 1, …) has the call's id and the tool's name.

    The ``arguments`` of one ``index`` concatenate to a JSON object.
    """

    id: str
    index: int
    call_id: str | None
    name: str | None
    arguments: str


class Finished(EventBase, frozen=True, kw_only=True):
    """Terminal event of a generation; one that did not begin has only zeros."""

    id: str
    reason: FinishReason
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    queue_seconds: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    seed: int = 0
    stop_string: str | None = None


class Failed(EventBase, frozen=True, omit_defaults=True):
    """Terminal event of a request that failed. ``id`` is None where no open request can be named."""

    id: str | None
    code: FailureCode
    message: str
    retriable: bool = False
    details: dict[str, int | float | str] = {}


class Counted(EventBase, frozen=True, omit_defaults=True):
    """Terminal event of ``count``: one count per text, or one for the rendered messages."""

    id: str
    counts: list[int]
    tokens: list[list[int]] | None = None


class Detokenized(EventBase, frozen=True, omit_defaults=True):
    """Terminal event of ``detokenize``. ``text`` has U+FFFD for bytes that are not valid UTF-8."""

    id: str
    text: str
    pieces: list[list[int]] | None = None


class Embedded(EventBase, frozen=True):
    """Terminal event of ``embed``: one vector per text, little-endian float32, on the line in base64.

    ``tokens`` counts each text's tokens, the model's special tokens around it included.
    """

    id: str
    embeddings: list[bytes]
    tokens: list[int]


class Cancelled(EventBase, frozen=True):
    """Terminal event of ``cancel``. ``found`` is False when the target had already ended."""

    id: str
    target: str
    found: bool


class Forgotten(EventBase, frozen=True):
    """Terminal event of ``forget``."""

    id: str


class Closing(EventBase, frozen=True):
    """Terminal event of ``shutdown`` and the last line of the host."""

    id: str


Terminal = (
    Finished | Failed | Counted | Detokenized | Embedded | Cancelled | Forgotten | Stats | Pong | Closing
)
Event = Loading | Ready | Queued | Started | Prefill | PromptLogprobs | Delta | Thought | ToolDelta | Terminal

# Events of requests for work; control requests get the others.
RequestEvent = (
    Queued
    | Started
    | Prefill
    | PromptLogprobs
    | Delta
    | Thought
    | ToolDelta
    | Finished
    | Failed
    | Counted
    | Detokenized
    | Embedded
    | Forgotten
)

_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # what msgspec raises for a line


class ProtocolError(ValueError):
    """A line that is not a valid message. ``request_id`` is the id that the line names, if any."""

    def __init__(self, message: str, request_id: str | None = None) -> None:
        super().__init__(message)
        self.request_id = request_id


def encode(message: Request | Event) -> bytes:
    """Return the message as a line with its newline. Raises :class:`ProtocolError` if it exceeds the line limit."""
    line = _encoder.encode(message) + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolError(f"message of {len(line)} bytes is over the line limit of {MAX_LINE_BYTES} bytes")
    return line


def decode_request(line: bytes) -> Request:
    """Parse and range-check a request line. Raises :class:`ProtocolError` that names the field at fault."""
    try:
        request = _request_decoder.decode(line)
    except _UNREADABLE as error:
        raise ProtocolError(_explain(error), named_id(line)) from None
    if problem := request.problem():
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


# A string, possibly unterminated, or a bracket.
_MARK = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[][{}]', re.DOTALL)
_ID_VALUE = re.compile(rb'\s*:\s*"([A-Za-z0-9._:-]{1,128})"')


def named_id(line: bytes) -> str | None:
    """Find the top-level ``id`` of a line, however malformed or deeply nested the rest is."""
    depth = 0
    for mark in _MARK.finditer(line):
        if mark[0] in (b"{", b"["):
            depth += 1
        elif mark[0] in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and mark[0] == b'"id"' and (value := _ID_VALUE.match(line, mark.end())):
            return value[1].decode()
    return None
