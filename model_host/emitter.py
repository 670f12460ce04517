"""Events of running requests: text that may wait a moment, and lines that are written together."""

from __future__ import annotations

import time
from collections.abc import Sequence

from model_host import protocol
from model_host.batching.request import SequenceState
from model_host.batching.scheduler import Scheduler
from model_host.replies.reply import Text
from model_host.replies.reply_parser import CallPiece
from model_host.wire.output import Output


class EventEmitter:
    """Collects the events of a step. Belongs to the loop's thread."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._lines: list[bytes] = []
        self._last_look = time.monotonic()  # when due text was last looked for

    def emit(self, event: protocol.Event) -> None:
        """Send an event with the next :meth:`flush`. Raises ProtocolError if it exceeds the line limit."""
        self._lines.append(protocol.encode(event))

    def flush(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            self._output.write(lines)

    def show(self, sequence: SequenceState, pieces: Sequence[Text | CallPiece]) -> None:
        """Emit pieces of tool calls, and buffer text until it is due."""
        for piece in pieces:
            if isinstance(piece, CallPiece):
                self.send(sequence)
                self.emit(
                    protocol.ToolDelta(sequence.id, piece.index, piece.call_id, piece.name, piece.arguments)
                )
            else:
                if sequence.buffer.thought != piece.thought:
                    self.send(sequence)
                sequence.buffer.add(piece)

    def send(self, sequence: SequenceState) -> None:
        if sequence.buffer:
            text = sequence.buffer.take(time.monotonic())
            if text.thought:
                self.emit(protocol.Thought(sequence.id, text.text, sequence.unreported))
            else:
                self.emit(protocol.Delta(sequence.id, text.text, sequence.unreported, text.logprobs))
            sequence.unreported = 0

    def send_due(self, scheduler: Scheduler) -> None:
        """Emit the text that should not wait for another step, which is any text unless all requests decode."""
        now = time.monotonic()
        step, self._last_look = now - self._last_look, now
        decoding = all(sequence.decoding for sequence in scheduler.running)
        for sequence in scheduler.running:
            if not decoding or sequence.buffer.due(now, step):
                self.send(sequence)
        for sequence in scheduler.waiting:  # preempted ones
            self.send(sequence)
