"""Stop strings, and text that may be the beginning of a marker. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class StopMatcher:
    """Cuts a stream of text at the first stop string, and holds back text that may begin one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """Add text; return what is safe to show. After a match, in :attr:`matched`, the rest is dropped."""
        if self.matched is not None:
            return ""
        self._held += text
        hits = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if hits:
            # The earliest match wins, then the longest, so that the order of the stop strings does not matter.
            at, self.matched = min(hits, key=lambda hit: (hit[0], -len(hit[1])))
            shown, self._held = self._held[:at], ""
            return shown
        keep = max((overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown

    def flush(self) -> str:
        """Return the text that was held back."""
        shown, self._held = self._held, ""
        return shown

    @property
    def held(self) -> int:
        """Characters that are held back."""
        return len(self._held)


def overlap(text: str, marker: str) -> int:
    """Length of the longest proper prefix of ``marker`` that ends ``text``, and may grow to the marker."""
    for length in range(min(len(marker) - 1, len(text)), 0, -1):
        if text.endswith(marker[:length]):
            return length
    return 0
