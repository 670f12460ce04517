"""How many tokens a step may have so that it takes about as long as it should. Pure: times are passed in.

Prompts are read fastest in large steps, but whoever streams waits for each of them, and a new request for the
present one.
"""

from __future__ import annotations

STREAMING_SECONDS = 0.2  # of a step while somebody reads along
ALONE_SECONDS = 1.0  # of a step while nobody does
SMALLEST = 16  # below this a step of reading costs little more than one of decoding
_FIRST_GUESS = 128
_WEIGHT = 0.4  # of a new measurement
_TELLING = 12  # a step with fewer prompt tokens says little about reading


class Pace:
    """Learns the reading speed from steps and gives each step its budget of at most ``chunk`` tokens."""

    def __init__(self, chunk: int) -> None:
        self._chunk = chunk
        self._speed: float | None = None  # prompt tokens a second
        self._largest = min(chunk, _FIRST_GUESS)  # step so far

    def budget(self, *, streaming: bool, decoding: int) -> int:
        """Tokens of the next step: room for ``decoding`` sequences, and as much prompt as the time allows."""
        if self._speed is None:
            wanted = _FIRST_GUESS
        else:
            wanted = int(self._speed * (STREAMING_SECONDS if streaming else ALONE_SECONDS))
            wanted = min(wanted, 2 * self._largest)  # speed measured on a small step may mislead
        return min(self._chunk, max(SMALLEST, wanted) + decoding)

    def measured(self, prompt_tokens: int, seconds: float) -> None:
        """A step with so many prompt tokens took so long."""
        if prompt_tokens < _TELLING or seconds < 1e-6:
            return
        self._largest = max(self._largest, prompt_tokens)
        speed = prompt_tokens / seconds
        self._speed = speed if self._speed is None else self._speed + _WEIGHT * (speed - self._speed)
