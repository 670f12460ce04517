"""Events of running requests on their way out: text that waits a moment, and lines that go out together."""

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
        self._looked_at = time.monotonic()  # when text that is due was last looked for

    def emit(self, event: protocol.Event) -> None:
        """Send an event with the next :meth:`flush`. Raises ProtocolError for one over the line limit."""
        self._lines.append(protocol.encode(event))

    def flush(self) -> None:
        """Write what was collected."""
        if self._lines:
            lines, self._lines = self._lines, []
            self._output.write(lines)

    def show(self, sequence: SequenceState, pieces: Sequence[Text | CallPiece]) -> None:
        """Emit calls, and hold text until it is due."""
        for piece in pieces:
            if isinstance(piece, CallPiece):
                self.tell(sequence)
                self.emit(
                    protocol.ToolDelta(sequence.id, piece.index, piece.call_id, piece.name, piece.arguments)
                )
            else:
                sequence.held.add(piece)

    def tell(self, sequence: SequenceState) -> None:
        """Emit the text that is held."""
        if sequence.held:
            told = sequence.held.take(time.monotonic())
            self.emit(protocol.Delta(sequence.id, told.text, sequence.unreported, told.logprobs))
            sequence.unreported = 0

    def tell_due(self, scheduler: Scheduler) -> None:
        """Emit the text that should not wait for another step: any, unless all that run decode, and fast."""
        now = time.monotonic()
        step, self._looked_at = now - self._looked_at, now
        decoding = all(sequence.decoding for sequence in scheduler.running)
        for sequence in scheduler.running:
            if not decoding or sequence.held.due(now, step):
                self.tell(sequence)
        for sequence in scheduler.waiting:  # it was preempted
            self.tell(sequence)
