"""From token bytes to text a client may see: whole characters only, nothing that may become a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class IncrementalText:
    """Decodes UTF-8 that arrives in pieces. Invalid bytes become U+FFFD, incomplete ones wait."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, piece: bytes) -> str:
        """Add the bytes of a token; return the characters that they complete."""
        return self._decoder.decode(piece)

    def flush(self) -> str:
        """Return U+FFFD for a character that was not completed, else nothing."""
        return self._decoder.decode(b"", final=True)


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
