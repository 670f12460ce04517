"""Chat completions in OpenAI's shapes, whole or in chunks. What is UNSET is left out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.api.openai.usage import Usage, usage_of
from gateway.inference.interface import GenerationEvent
from model_host.protocol import Delta, Finished, FinishReason, TokenLogprob, ToolDelta


class FunctionReply(Struct, kw_only=True):
    """The function to call, and the text of its arguments, a JSON object."""

    name: str | UnsetType = UNSET
    arguments: str


class ToolCallReply(Struct, frozen=True, kw_only=True):
    """A call. In a stream its later pieces have no ``id`` and no name."""

    index: int | UnsetType = UNSET  # in streams
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: FunctionReply


class TopLogprobReply(Struct, frozen=True):
    """A token that could have been."""

    token: str
    logprob: float
    bytes: list[int] | None


class LogprobReply(Struct, frozen=True):
    """A token of the text."""

    token: str
    logprob: float
    bytes: list[int] | None
    top_logprobs: list[TopLogprobReply]


class ChatLogprobs(Struct, frozen=True):
    """The tokens of a choice, or of a piece of it."""

    content: list[LogprobReply]
    refusal: None = None


class ChatMessageReply(Struct, frozen=True, kw_only=True):
    """The model's message. ``content`` is null when there is nothing but calls."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    tool_calls: list[ToolCallReply] | UnsetType = UNSET


class ChatChoiceReply(Struct, frozen=True, kw_only=True):
    """One choice."""

    index: int
    message: ChatMessageReply
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason


class ChatCompletion(Struct, frozen=True, kw_only=True, tag_field="object", tag="chat.completion"):
    """A whole reply."""

    id: str
    created: int
    model: str
    choices: list[ChatChoiceReply]
    usage: Usage


class ChatDelta(Struct, frozen=True, kw_only=True):
    """What is new in a chunk."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    tool_calls: list[ToolCallReply] | UnsetType = UNSET


class ChoicePiece(Struct, frozen=True, kw_only=True):
    """The next piece of a choice; only the last one has a ``finish_reason``."""

    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None = None
    finish_reason: FinishReason | None = None


class ChatChunk(Struct, frozen=True, kw_only=True, tag_field="object", tag="chat.completion.chunk"):
    """A chunk of a stream. The last one may have no choices but ``usage``."""

    id: str
    created: int
    model: str
    choices: list[ChoicePiece]
    usage: Usage | UnsetType = UNSET


class ChatChoice:
    """One choice of a reply as it grows."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.end: Finished | None = None
        self._text: list[str] = []
        self._calls: list[ToolCallReply] = []
        self._logprobs: list[LogprobReply] = []

    def add(self, event: GenerationEvent) -> None:
        """Take an event of the choice's generation."""
        if isinstance(event, Delta):
            self._text.append(event.text)
            self._logprobs += map(_logprob, event.logprobs)
        elif isinstance(event, ToolDelta):
            if event.name is not None:
                self._calls.append(_call(event))
            else:
                self._calls[event.index].function.arguments += event.arguments
        elif isinstance(event, Finished):
            self.end = event

    def whole(self) -> ChatChoiceReply:
        """The choice of a reply that is not streamed."""
        assert self.end is not None
        text = "".join(self._text)
        message = ChatMessageReply(
            content=None if self._calls and not text else text, tool_calls=self._calls or UNSET
        )
        return ChatChoiceReply(
            index=self.index,
            message=message,
            logprobs=ChatLogprobs(self._logprobs) if self._logprobs else None,
            finish_reason=self.end.reason,
        )


class ChatReply:
    """The constant parts of one reply. ``model`` is the configured name, whatever name the request used."""

    def __init__(self, request_id: str, model: str) -> None:
        self._id = f"chatcmpl-{request_id}"
        self._model = model
        self._created = int(time.time())

    def whole(self, choices: Sequence[ChatChoice]) -> ChatCompletion:
        """The reply."""
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[choice.whole() for choice in choices],
            usage=_usage(choices),
        )

    def opening(self, index: int) -> ChatChunk:
        """The first chunk of a choice."""
        return self._chunk([ChoicePiece(index=index, delta=ChatDelta(role="assistant", content=""))])

    def chunk(self, index: int, event: Delta | ToolDelta | Finished) -> ChatChunk:
        """A piece of a choice, or its end."""
        if isinstance(event, Finished):
            piece = ChoicePiece(index=index, delta=ChatDelta(), finish_reason=event.reason)
        elif isinstance(event, ToolDelta):
            piece = ChoicePiece(index=index, delta=ChatDelta(tool_calls=[_call(event, event.index)]))
        else:
            logprobs = [_logprob(logprob) for logprob in event.logprobs]
            piece = ChoicePiece(
                index=index,
                delta=ChatDelta(content=event.text),
                logprobs=ChatLogprobs(logprobs) if logprobs else None,
            )
        return self._chunk([piece])

    def usage_chunk(self, choices: Sequence[ChatChoice]) -> ChatChunk:
        """The last chunk when ``stream_options.include_usage`` asks for it: no choices."""
        return self._chunk([], _usage(choices))

    def _chunk(self, choices: list[ChoicePiece], usage: Usage | UnsetType = UNSET) -> ChatChunk:
        return ChatChunk(id=self._id, created=self._created, model=self._model, choices=choices, usage=usage)


def _usage(choices: Sequence[ChatChoice]) -> Usage:
    """Of one request: all choices have the same prompt."""
    return usage_of([choice.end for choice in choices if choice.end is not None], len(choices))


def _call(event: ToolDelta, index: int | UnsetType = UNSET) -> ToolCallReply:
    """A call, or the next piece of its arguments."""
    if event.name is None or event.call_id is None:
        return ToolCallReply(index=index, function=FunctionReply(arguments=event.arguments))
    function = FunctionReply(name=event.name, arguments=event.arguments)
    return ToolCallReply(index=index, id=event.call_id, type="function", function=function)


def _logprob(logprob: TokenLogprob) -> LogprobReply:
    top = [TopLogprobReply(one.token, one.logprob, one.bytes or None) for one in logprob.top]
    return LogprobReply(logprob.token, logprob.logprob, logprob.bytes or None, top)
