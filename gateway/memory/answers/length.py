"""The length of a reply that nobody has set. Small models write on, in lists and loops that nobody asked for."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable

from gateway.models.catalog import ResolvedModel

# Of a reply by a small model: about 110 words.
SMALL_TOKENS = 160
# A reply has as many even if they take longer than its time.
LEAST_TOKENS = 48
# A sentence, a line or a list that does not end is cut here.
_MOST = 1.5

# Behind final punctuation and closing quotes, or at the end of a line that introduces nothing.
_END = re.compile(r"[.!?…][\"'”’)*_`]*(?=\s)|[。！？](?=.)|(?<=[^\s:])(?=\s*\n)", re.DOTALL)
# "2." in front of an item, "Dr." and "e.g." end no sentence.
_NO_END = re.compile(r"(?:^|\n)[ \t]*(?:\d{1,3}|[A-Za-z])\Z|\b(?:Dr|Mr|Mrs|Ms|St|vs|e\.g|i\.e)\Z")
_FENCE = "```"


class ReplyEnd:
    """Ends a streamed reply with the sentence, or the line, in which it gets ``soft`` tokens; code is not divided.

    So it does in which it has taken ``seconds`` since its first text (0: no limit), if it is not very short.
    """

    def __init__(self, soft: int, seconds: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.soft = soft
        self.most = int(soft * _MOST)
        self.reached = False  # the reply was ended
        self._seconds = seconds
        self._clock = clock
        self._begun: float | None = None
        self._text = ""
        self._tokens = 0

    @classmethod
    def within(cls, most: int) -> ReplyEnd:
        """One that has room to end before a limit of ``most`` tokens."""
        return cls(math.ceil(most / _MOST))

    def take(self, text: str, tokens: int) -> str:
        """Add a piece of the reply. Returns what is shown of it, less than all if the reply ends in it."""
        begin, late = len(self._text), self._is_late()
        self._text += text
        self._tokens += tokens
        if not late or self._text.count(_FENCE) % 2:
            return text
        for found in _END.finditer(self._text, max(0, begin - len(_FENCE))):
            if found.end() >= begin and not _NO_END.search(self._text[: found.start()]):
                self.reached = True
                return text[: found.end() - begin]
        return text

    def _is_late(self) -> bool:
        now = self._clock()
        if self._begun is None:
            self._begun = now
        slow = bool(self._seconds) and now - self._begun > self._seconds
        return self._tokens >= (min(LEAST_TOKENS, self.soft) if slow else self.soft)


def reply_end(model: ResolvedModel, chosen: int, seconds: float) -> ReplyEnd | None:
    """The end of a reply by ``model``: with ``chosen`` tokens if any, otherwise with what a small model may write
    within ``seconds``. None if it ends by itself."""
    if chosen:
        return ReplyEnd(chosen)
    return ReplyEnd(SMALL_TOKENS, seconds) if model.small else None
