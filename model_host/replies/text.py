"""From token bytes to text a client may see: whole characters only, nothing that may become a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class IncrementalText:
    """Decodes UTF-8 that arrives in pieces. Invalid bytes become U+FFFD, incomplete ones wait."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, piece: bytes) -> str:
        """Bytes of one token in, the characters completed by them out."""
        return self._decoder.decode(piece)

    def flush(self) -> str:
        """What is left at the end: U+FFFD for a character that was never completed."""
        return self._decoder.decode(b"", final=True)


class StopMatcher:
    """Cuts a stream of text at the first stop string and holds back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """New text in, text that is safe to show out. After a match :attr:`matched` is set and the rest is dropped."""
        if self.matched is not None:
            return ""
        self._held += text
        hits = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if hits:
            # The earliest match wins; at the same place the longest, so that the order given does not matter.
            at, self.matched = min(hits, key=lambda hit: (hit[0], -len(hit[1])))
            shown, self._held = self._held[:at], ""
            return shown
        keep = max((overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown

    def flush(self) -> str:
        """Text held back that turned out to be no stop string."""
        shown, self._held = self._held, ""
        return shown

    @property
    def held(self) -> int:
        """Characters that are held back."""
        return len(self._held)


def overlap(text: str, marker: str) -> int:
    """Length of the longest proper beginning of ``marker`` that ends ``text``: the marker may be coming."""
    for length in range(min(len(marker) - 1, len(text)), 0, -1):
        if text.endswith(marker[:length]):
            return length
    return 0
