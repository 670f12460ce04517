"""From generation events to Anthropic's: numbered blocks that open, grow and close one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec

from gateway.api.anthropic.replies import (
    AnthropicMessageReply,
    AnthropicTextDelta,
    BlockDelta,
    BlockStart,
    BlockStop,
    InputDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    Ping,
    StreamEvent,
    Text,
    ToolUse,
    ending_of,
    usage_of,
)
from gateway.api.parsing.json_faults import json_object
from gateway.inference.interface import GenerationEvent
from model_host.protocol import Delta, Finished, Started, ToolDelta


async def stream_events(
    source: AsyncIterator[GenerationEvent], message: AnthropicMessageReply
) -> AsyncIterator[StreamEvent]:
    """The events of one reply. ``message`` has what is known before it begins."""
    blocks = _Blocks()
    async for event in source:
        if isinstance(event, Started):
            yield MessageStart(msgspec.structs.replace(message, usage=usage_of(event)))
            yield Ping()
        elif isinstance(event, Delta):
            for made in blocks.text(event):
                yield made
        elif isinstance(event, ToolDelta):
            for made in blocks.call(event):
                yield made
        elif isinstance(event, Finished):
            for made in blocks.close():
                yield made
            yield MessageDelta(ending_of(event), usage_of(event))
            yield MessageStop()


class _Blocks:
    """The number of the block that is open, and what it is: text, a call's index, or nothing."""

    def __init__(self) -> None:
        self._number = -1
        self._open: str | int | None = None

    def text(self, delta: Delta) -> Iterator[StreamEvent]:
        """More text; a delta without any (tokens inside a character) is no event."""
        if delta.text:
            yield from self._reach("text", Text(""))
            yield BlockDelta(self._number, AnthropicTextDelta(delta.text))

    def call(self, delta: ToolDelta) -> Iterator[StreamEvent]:
        """More of a call."""
        if self._open != delta.index:
            yield from self._reach(delta.index, ToolUse(delta.call_id or "", delta.name or "", {}))
        if delta.arguments:
            yield BlockDelta(self._number, InputDelta(delta.arguments))

    def close(self) -> Iterator[StreamEvent]:
        """End the open block, if one is."""
        if self._open is not None:
            self._open = None
            yield BlockStop(self._number)

    def _reach(self, what: str | int, block: Text | ToolUse) -> Iterator[StreamEvent]:
        if self._open == what:
            return
        yield from self.close()
        self._open = what
        self._number += 1
        yield BlockStart(self._number, block)


async def whole_message(events: AsyncIterator[StreamEvent]) -> AnthropicMessageReply | None:
    """The message that the events describe; None when they break off."""
    message: AnthropicMessageReply | None = None
    content: list[Text | ToolUse] = []
    pieces: list[str] = []
    async for event in events:
        if isinstance(event, MessageStart):
            message = event.message
        elif isinstance(event, BlockStart):
            content.append(event.content_block)
            pieces = []
        elif isinstance(event, BlockDelta):
            delta = event.delta
            pieces.append(delta.text if isinstance(delta, AnthropicTextDelta) else delta.partial_json)
        elif isinstance(event, BlockStop):
            content[-1] = _completed(content[-1], "".join(pieces))
        elif isinstance(event, MessageDelta) and message is not None:
            fields: dict[str, Any] = msgspec.structs.asdict(event.delta)
            return msgspec.structs.replace(message, content=content, usage=event.usage, **fields)
    return None


def _completed(block: Text | ToolUse, text: str) -> Text | ToolUse:
    """The block with all its text. A call whose input was cut off, or goes too deep, cannot be shown but as text."""
    if isinstance(block, Text):
        return Text(text)
    arguments = json_object(text or "{}")
    return Text(f"{block.name} {text}") if arguments is None else ToolUse(block.id, block.name, arguments)
