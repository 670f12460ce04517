"""The number of tokens with which a step takes about its target time. Pure: times are passed in.

Prefill is fastest in large steps, but every running stream waits for each of them, and a new request for the current
one.
"""

from __future__ import annotations

STREAMING_SECONDS = 0.2  # target for a step while an interactive request decodes
ALONE_SECONDS = 1.0  # target for any other step
SMALLEST = 16  # tokens; below this a prefill step costs little more than a decode step
_FIRST_GUESS = 128
_WEIGHT = 0.4  # of a new measurement
_FEWEST = 12  # prompt tokens; a smaller step says little about the prefill speed


class Pace:
    """Learns the prefill speed from steps and gives each step its budget of at most ``chunk`` tokens."""

    def __init__(self, chunk: int) -> None:
        self._chunk = chunk
        self._speed: float | None = None  # prompt tokens a second
        self._largest = min(chunk, _FIRST_GUESS)  # step so far

    def budget(self, *, streaming: bool, decoding: int) -> int:
        """Tokens of the next step: one for each of ``decoding`` sequences, and as much prompt as the time allows."""
        if self._speed is None:
            wanted = _FIRST_GUESS
        else:
            wanted = int(self._speed * (STREAMING_SECONDS if streaming else ALONE_SECONDS))
            wanted = min(wanted, 2 * self._largest)  # the speed of a small step may mislead
        return min(self._chunk, max(SMALLEST, wanted) + decoding)

    def measured(self, prompt_tokens: int, seconds: float) -> None:
        """Record a step's prompt tokens and duration."""
        if prompt_tokens < _FEWEST or seconds < 1e-6:
            return
        self._largest = max(self._largest, prompt_tokens)
        speed = prompt_tokens / seconds
        self._speed = speed if self._speed is None else self._speed + _WEIGHT * (speed - self._speed)
