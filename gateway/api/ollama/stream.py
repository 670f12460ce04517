"""From generation events to Ollama's lines, streamed or all in one."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET, Struct

from gateway.api.ollama.replies import (
    ChatLine,
    DoneReason,
    GenerateLine,
    Line,
    OllamaFunctionReply,
    OllamaLogprobReply,
    OllamaMessageReply,
    OllamaToolCallReply,
    OllamaTopLogprobReply,
)
from gateway.api.parsing.json_faults import json_object
from gateway.inference.interface import GenerationEvent
from model_host.protocol import Delta, Finished, FinishReason, Started, TokenLogprob, ToolDelta

_REASONS: dict[FinishReason, DoneReason] = {"stop": "stop", "length": "length", "tool_calls": "stop"}


class OllamaDelta(Struct, frozen=True):
    """New text, its tokens' log-probabilities where wanted, and new calls; ``last`` has what only a last line has."""

    text: str = ""
    calls: list[OllamaToolCallReply] = []
    last: dict[str, Any] | None = None
    logprobs: list[OllamaLogprobReply] = []


LineMaker = Callable[[str, OllamaDelta], Line]


def chat_line(model: str, piece: OllamaDelta) -> ChatLine:
    """A line of /api/chat."""
    message = OllamaMessageReply(content=piece.text, tool_calls=piece.calls or UNSET)
    return ChatLine(message=message, **_head(model, piece))


def generate_line(model: str, piece: OllamaDelta) -> GenerateLine:
    """A line of /api/generate."""
    return GenerateLine(response=piece.text, **_head(model, piece))


def _head(model: str, piece: OllamaDelta) -> dict[str, Any]:
    return {
        "model": model,
        "created_at": datetime.now(UTC),
        "done": piece.last is not None,
        "logprobs": piece.logprobs or UNSET,
        **(piece.last or {}),
    }


async def pieces(source: AsyncIterator[GenerationEvent], begun: float) -> AsyncIterator[OllamaDelta]:
    """What each line tells. Only the last piece has ``last``. ``begun`` is the request's monotonic time."""
    watch, calls = _Watch(begun), _Calls()
    async for event in source:
        if isinstance(event, Started):
            watch.started(event)
        elif isinstance(event, Delta):
            if event.text or event.logprobs:
                yield OllamaDelta(event.text, logprobs=[_logprob(each) for each in event.logprobs])
        elif isinstance(event, ToolDelta):
            if (before := calls.add(event)) is not None:
                yield before
        elif isinstance(event, Finished):
            if (before := calls.end()) is not None:
                yield before
            yield OllamaDelta(last=watch.finished(event))


async def whole(made: AsyncIterator[OllamaDelta]) -> OllamaDelta | None:
    """All pieces as one; None when the last one is missing."""
    texts: list[str] = []
    calls: list[OllamaToolCallReply] = []
    logprobs: list[OllamaLogprobReply] = []
    async for piece in made:
        texts.append(piece.text)
        calls += piece.calls
        logprobs += piece.logprobs
        if piece.last is not None:
            return OllamaDelta("".join(texts), calls, piece.last, logprobs)
    return None


class _Watch:
    """The durations of one request, in nanoseconds."""

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._loading = 0.0

    def started(self, event: Started) -> None:
        """What was neither queueing nor work yet was the wait for the model."""
        self._loading = max(0.0, time.monotonic() - self._begun - event.queue_seconds)

    def finished(self, end: Finished) -> dict[str, Any]:
        """The fields of the last line."""
        return {
            "done_reason": _REASONS[end.reason],
            "total_duration": _nanoseconds(time.monotonic() - self._begun),
            "load_duration": _nanoseconds(self._loading),
            "prompt_eval_count": end.prompt_tokens,
            "prompt_eval_duration": _nanoseconds(end.prefill_seconds),
            "eval_count": end.completion_tokens,
            "eval_duration": _nanoseconds(end.decode_seconds),
        }


class _Calls:
    """The call in the making. A call is handed out when the next one begins, or at the end."""

    def __init__(self) -> None:
        self._first: ToolDelta | None = None
        self._arguments: list[str] = []

    def add(self, delta: ToolDelta) -> OllamaDelta | None:
        """Take more of a call; returns the one before when this is a new one."""
        done = None
        if self._first is None or self._first.index != delta.index:
            done = self.end()
            self._first = delta
        self._arguments.append(delta.arguments)
        return done

    def end(self) -> OllamaDelta | None:
        """The call as far as it came. One whose arguments were cut off, or go too deep, cannot be shown but as text."""
        first, text = self._first, "".join(self._arguments)
        self._first, self._arguments = None, []
        if first is None:
            return None
        name = first.name or ""
        arguments = json_object(text or "{}")
        if arguments is None:
            return OllamaDelta(f"{name} {text}")
        function = OllamaFunctionReply(index=first.index, name=name, arguments=arguments)
        return OllamaDelta(calls=[OllamaToolCallReply(id=first.call_id or "", function=function)])


def _logprob(made: TokenLogprob) -> OllamaLogprobReply:
    top = [OllamaTopLogprobReply(one.token, one.logprob, one.bytes) for one in made.top]
    return OllamaLogprobReply(made.token, made.logprob, made.bytes, top)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
