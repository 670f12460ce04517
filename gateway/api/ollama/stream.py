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
    FunctionReply,
    GenerateLine,
    Line,
    LogprobReply,
    MessageReply,
    ToolCallReply,
    TopLogprobReply,
)
from gateway.api.parsing.json_faults import json_object
from gateway.inference.interface import GenerationEvent
from model_host.protocol import Delta, Finished, FinishReason, Started, TokenLogprob, ToolDelta

_REASONS: dict[FinishReason, DoneReason] = {"stop": "stop", "length": "length", "tool_calls": "stop"}


class Piece(Struct, frozen=True):
    """New text, its tokens' log-probabilities where wanted, and new calls; ``last`` has what only a last line has."""

    text: str = ""
    calls: list[ToolCallReply] = []
    last: dict[str, Any] | None = None
    logprobs: list[LogprobReply] = []


LineMaker = Callable[[str, Piece], Line]


def chat_line(model: str, piece: Piece) -> ChatLine:
    """A line of /api/chat."""
    message = MessageReply(content=piece.text, tool_calls=piece.calls or UNSET)
    return ChatLine(message=message, **_head(model, piece))


def generate_line(model: str, piece: Piece) -> GenerateLine:
    """A line of /api/generate."""
    return GenerateLine(response=piece.text, **_head(model, piece))


def _head(model: str, piece: Piece) -> dict[str, Any]:
    return {
        "model": model,
        "created_at": datetime.now(UTC),
        "done": piece.last is not None,
        "logprobs": piece.logprobs or UNSET,
        **(piece.last or {}),
    }


async def pieces(source: AsyncIterator[GenerationEvent], begun: float) -> AsyncIterator[Piece]:
    """What each line tells. Only the last piece has ``last``. ``begun`` is the request's monotonic time."""
    watch, calls = _Watch(begun), _Calls()
    async for event in source:
        if isinstance(event, Started):
            watch.started(event)
        elif isinstance(event, Delta):
            if event.text or event.logprobs:
                yield Piece(event.text, logprobs=[_logprob(each) for each in event.logprobs])
        elif isinstance(event, ToolDelta):
            if (before := calls.add(event)) is not None:
                yield before
        elif isinstance(event, Finished):
            if (before := calls.end()) is not None:
                yield before
            yield Piece(last=watch.finished(event))


async def whole(made: AsyncIterator[Piece]) -> Piece | None:
    """All pieces as one; None when the last one is missing."""
    texts: list[str] = []
    calls: list[ToolCallReply] = []
    logprobs: list[LogprobReply] = []
    async for piece in made:
        texts.append(piece.text)
        calls += piece.calls
        logprobs += piece.logprobs
        if piece.last is not None:
            return Piece("".join(texts), calls, piece.last, logprobs)
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

    def add(self, delta: ToolDelta) -> Piece | None:
        """Take more of a call; returns the one before when this is a new one."""
        done = None
        if self._first is None or self._first.index != delta.index:
            done = self.end()
            self._first = delta
        self._arguments.append(delta.arguments)
        return done

    def end(self) -> Piece | None:
        """The call as far as it came. One whose arguments were cut off, or go too deep, cannot be shown but as text."""
        first, text = self._first, "".join(self._arguments)
        self._first, self._arguments = None, []
        if first is None:
            return None
        name = first.name or ""
        arguments = json_object(text or "{}")
        if arguments is None:
            return Piece(f"{name} {text}")
        function = FunctionReply(index=first.index, name=name, arguments=arguments)
        return Piece(calls=[ToolCallReply(id=first.call_id or "", function=function)])


def _logprob(made: TokenLogprob) -> LogprobReply:
    top = [TopLogprobReply(one.token, one.logprob, one.bytes) for one in made.top]
    return LogprobReply(made.token, made.logprob, made.bytes, top)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
