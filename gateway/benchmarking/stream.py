"""One streamed chat completion, timed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.errors import HearthError


class BenchError(HearthError, code="bench"):
    """The server refused a request, broke off a reply, or omits data that a measurement needs."""


@dataclass(frozen=True, slots=True)
class TimedReply:
    """Seconds count from sending the request. ``cached_tokens`` is None if the server does not report them.

    A reply without text counts as one whose text came at its end: a token can be a part of a character.
    """

    first_seconds: float  # to the first piece of text
    last_seconds: float  # to the last one
    seconds: float  # to the end of the stream
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None
    text: str

    @property
    def decode_speed(self) -> float:
        """Tokens per second after the first one; 0 for replies in one piece."""
        between = self.last_seconds - self.first_seconds
        return (self.completion_tokens - 1) / between if between > 0 else 0.0

    @property
    def prefill_speed(self) -> float:
        """Uncached prompt tokens per second until the first text."""
        return (self.prompt_tokens - (self.cached_tokens or 0)) / self.first_seconds


class _Delta(Struct, frozen=True):
    content: str | None = None


class _Choice(Struct, frozen=True):
    delta: _Delta = _Delta()


class PromptTokenDetails(Struct, frozen=True):
    cached_tokens: int | None = None


class TokenUsage(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: PromptTokenDetails | None = None


class _Chunk(Struct, frozen=True):
    choices: list[_Choice] = []
    usage: TokenUsage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)


class StreamClock:
    """Collects and times the chunks of one reply."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first: float | None = None
        self._last = 0.0
        self.usage: TokenUsage | None = None  # as the server counts it
        self._pieces: list[str] = []

    def add(self, data: str) -> None:
        """Add one event. Raises BenchError for an error event and a malformed chunk."""
        try:
            chunk = _decoder.decode(data)
        except msgspec.DecodeError as error:
            raise BenchError(
                f"a chunk of the stream is not a chat completion ({error}): {data[:200]}"
            ) from None
        if chunk.error is not None:
            raise BenchError(f"the reply was broken off: {message_of(chunk.error)}")
        text = "".join(choice.delta.content or "" for choice in chunk.choices)
        if text:
            self._last = time.perf_counter() - self._start
            self._first = self._last if self._first is None else self._first
            self._pieces.append(text)
        if chunk.usage is not None:
            self.usage = chunk.usage

    def reply(self, prompt_estimate: int) -> TimedReply:
        """Return the complete reply. If the server sent no counts, a chunk counts as a token."""
        usage = self.usage or TokenUsage(prompt_tokens=prompt_estimate, completion_tokens=len(self._pieces))
        details = usage.prompt_tokens_details
        seconds = time.perf_counter() - self._start
        return TimedReply(
            first_seconds=seconds if self._first is None else self._first,
            last_seconds=seconds if self._first is None else self._last,
            seconds=seconds,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=details.cached_tokens if details is not None else None,
            text="".join(self._pieces),
        )


def message_of(error: Any) -> str:
    """Extract an error's message, with or without OpenAI's envelope."""
    if isinstance(error, dict):
        inner = error.get("error", error)
        return str(inner.get("message", inner) if isinstance(inner, dict) else inner)[:500]
    return str(error)[:500]
