"""One streamed chat completion, with the times at which its pieces came."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec
from msgspec import Struct

from gateway.base.errors import HearthError


class BenchError(HearthError):
    """The server could not be measured: it refused, broke off, or leaves out what a measurement needs."""

    code = "bench"


@dataclass(frozen=True, slots=True)
class TimedReply:
    """Seconds count from the sending of the request. ``cached_tokens`` is None where the server does not say.

    A token can be without text, such as a part of a character. A reply without any counts as one that came at its end.
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
        """Tokens a second after the first one; 0 for replies that came in one piece."""
        between = self.last_seconds - self.first_seconds
        return (self.completion_tokens - 1) / between if between > 0 else 0.0

    @property
    def prefill_speed(self) -> float:
        """Prompt tokens that were not in a cache, a second until the first text."""
        return (self.prompt_tokens - (self.cached_tokens or 0)) / self.first_seconds


class _Delta(Struct, frozen=True):
    content: str | None = None


class _Choice(Struct, frozen=True):
    delta: _Delta = _Delta()


class PromptTokenDetails(Struct, frozen=True):
    """Of a prompt: ``cached_tokens`` are None where the server does not say."""

    cached_tokens: int | None = None


class TokenUsage(Struct, frozen=True):
    """OpenAI's count of tokens, as far as it is used here."""

    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: PromptTokenDetails | None = None


class _Chunk(Struct, frozen=True):
    choices: list[_Choice] = []
    usage: TokenUsage | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_Chunk)


class StreamClock:
    """Takes in the chunks of one reply as they come."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._first: float | None = None
        self._last = 0.0
        self._usage: TokenUsage | None = None
        self._pieces: list[str] = []

    def add(self, data: str) -> None:
        """One event. Raises BenchError for an error event and for what is no chunk."""
        try:
            chunk = _decoder.decode(data)
        except msgspec.DecodeError as error:
            raise BenchError(f"a chunk of the stream is no chat completion ({error}): {data[:200]}") from None
        if chunk.error is not None:
            raise BenchError(f"the reply was broken off: {message_of(chunk.error)}")
        text = "".join(choice.delta.content or "" for choice in chunk.choices)
        if text:
            self._last = time.perf_counter() - self._begun
            self._first = self._last if self._first is None else self._first
            self._pieces.append(text)
        if chunk.usage is not None:
            self._usage = chunk.usage

    @property
    def pieces(self) -> int:
        """Chunks with text so far: about as many as tokens."""
        return len(self._pieces)

    @property
    def has_usage(self) -> bool:
        """Whether the server has counted the tokens."""
        return self._usage is not None

    def reply(self, estimate: TokenUsage) -> TimedReply:
        """The whole reply; ``estimate`` counts its tokens where the server did not."""
        usage = self._usage or estimate
        details = usage.prompt_tokens_details
        seconds = time.perf_counter() - self._begun
        return TimedReply(
            first_seconds=seconds if self._first is None else self._first,
            last_seconds=seconds if self._first is None else self._last,
            seconds=seconds,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=details.cached_tokens if details is not None else None,
            text="".join(self._pieces),
        )


async def events(response: httpx2.Response) -> AsyncIterator[str]:
    """The data of every server-sent event up to ``[DONE]``."""
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data = line.removeprefix("data:").strip()
            if data == "[DONE]":
                return
            yield data


def message_of(error: Any) -> str:
    """What an error says, in OpenAI's envelope or not."""
    if isinstance(error, dict):
        inner = error.get("error", error)
        return str(inner.get("message", inner) if isinstance(inner, dict) else inner)[:500]
    return str(error)[:500]
