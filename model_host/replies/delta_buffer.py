"""Text of a fast reply that waits a moment, so that several tokens go out in one message. Pure: times are passed in.

Each message costs the host, the gateway and whoever reads it some computing, on the cores that decode as well
(docs/benchmarks.md).
"""

from __future__ import annotations

import math

from model_host.protocol import TokenLogprob
from model_host.replies.reply import Text

TOLD_SECONDS = 0.05  # between two messages of one reply: nobody reads faster


class DeltaBuffer:
    """What was sampled of one reply and has not been sent. The first text of a reply never waits."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._told_at = -math.inf

    def __bool__(self) -> bool:
        return bool(self._texts)

    def add(self, piece: Text) -> None:
        """More text."""
        self._texts.append(piece.text)
        self._logprobs += piece.logprobs

    def due(self, now: float, step_seconds: float) -> bool:
        """Whether the pause would be too long if it waited for one more step of about ``step_seconds``."""
        return now + step_seconds - self._told_at >= TOLD_SECONDS

    def take(self, now: float) -> Text:
        """All of it, to be sent now."""
        taken = Text("".join(self._texts), self._logprobs)
        self._texts, self._logprobs, self._told_at = [], [], now
        return taken
