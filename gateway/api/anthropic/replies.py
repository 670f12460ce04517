"""Messages in Anthropic's shapes, whole or as events."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from model_host.protocol import Finished, FinishReason, Started

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]

_REASONS: dict[FinishReason, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
}


class Text(Struct, frozen=True, tag_field="type", tag="text"):
    """A piece of text."""

    text: str


class ToolUse(Struct, frozen=True, tag_field="type", tag="tool_use"):
    """A call of one of the client's tools."""

    id: str
    name: str
    input: dict[str, Any]


class AnthropicUsage(Struct, frozen=True, kw_only=True):
    """Tokens. ``input_tokens`` are those of the prompt that were not in the KV cache already."""

    input_tokens: int
    cache_creation_input_tokens: int = 0  # nothing is written for a price of its own
    cache_read_input_tokens: int
    output_tokens: int


class AnthropicMessageReply(Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A whole reply, or its empty beginning in ``message_start``."""

    id: str
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[Text | ToolUse] = []
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    usage: AnthropicUsage


class TokenCount(Struct, frozen=True):
    """Reply of count_tokens: the whole prompt, template included."""

    input_tokens: int


class MessageStart(Struct, frozen=True, tag_field="type", tag="message_start"):
    """The prompt has left the queue."""

    message: AnthropicMessageReply


class BlockStart(Struct, frozen=True, tag_field="type", tag="content_block_start"):
    """A block begins, empty."""

    index: int
    content_block: Text | ToolUse


class AnthropicTextDelta(Struct, frozen=True, tag_field="type", tag="text_delta"):
    """More text."""

    text: str


class InputDelta(Struct, frozen=True, tag_field="type", tag="input_json_delta"):
    """More of a call's input, as JSON text."""

    partial_json: str


class BlockDelta(Struct, frozen=True, tag_field="type", tag="content_block_delta"):
    """More of the block."""

    index: int
    delta: AnthropicTextDelta | InputDelta


class BlockStop(Struct, frozen=True, tag_field="type", tag="content_block_stop"):
    """The block is complete."""

    index: int


class MessageEnd(Struct, frozen=True):
    """How a message ended."""

    stop_reason: StopReason | None
    stop_sequence: str | None


class MessageDelta(Struct, frozen=True, tag_field="type", tag="message_delta"):
    """The message is complete."""

    delta: MessageEnd
    usage: AnthropicUsage


class MessageStop(Struct, frozen=True, tag_field="type", tag="message_stop"):
    """The last event."""


class Ping(Struct, frozen=True, tag_field="type", tag="ping"):
    """Nothing happened."""


StreamEvent = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Ping


def usage_of(counted: Started | Finished) -> AnthropicUsage:
    """The tokens so far."""
    return AnthropicUsage(
        input_tokens=counted.prompt_tokens - counted.cached_tokens,
        cache_read_input_tokens=counted.cached_tokens,
        output_tokens=counted.completion_tokens if isinstance(counted, Finished) else 0,
    )


def ending_of(end: Finished) -> MessageEnd:
    """Why the model stopped."""
    reason = "stop_sequence" if end.stop_string is not None else _REASONS[end.reason]
    return MessageEnd(reason, end.stop_string)
