"""The length of a reply that nobody has set. Small models write on, in lists and loops that nobody asked for."""

from __future__ import annotations

import math
import re

from gateway.inference.interface import HostHealth
from gateway.models.catalog import ResolvedModel

# Of a reply by a small model: about 110 words, five times its median reply to small talk.
SMALL_TOKENS = 160
# A reply has as many even if they take longer than its time.
_LEAST_TOKENS = 48
# A sentence, a line or a list that does not end is cut here.
_MOST = 1.5

# Behind final punctuation and closing quotes, or at the end of a line that introduces nothing.
_END = re.compile(r"[.!?…][\"'”’)*_`]*(?=\s)|[。！？](?=.)|(?<=[^\s:])(?=\s*\n)", re.DOTALL)
# "2." in front of an item, "Dr." and "e.g." end no sentence.
_NO_END = re.compile(r"(?:^|\n)[ \t]*(?:\d{1,3}|[A-Za-z])\Z|\b(?:Dr|Mr|Mrs|Ms|St|vs|e\.g|i\.e)\Z")
_FENCE = "```"


class ReplyEnd:
    """Ends a streamed reply with the sentence, or the line, in which it gets ``soft`` tokens; code is not divided."""

    def __init__(self, soft: int) -> None:
        self.soft = soft
        self.most = int(soft * _MOST)
        self.reached = False  # the reply was ended
        self._text = ""
        self._tokens = 0

    @classmethod
    def within(cls, most: int) -> ReplyEnd:
        """One that has room to end before a limit of ``most`` tokens."""
        return cls(math.ceil(most / _MOST))

    def take(self, text: str, tokens: int) -> str:
        """Add a piece of the reply. Returns what is shown of it, less than all if the reply ends in it."""
        begin = len(self._text)
        late = self._tokens >= self.soft
        self._text += text
        self._tokens += tokens
        if not late or self._text.count(_FENCE) % 2:
            return text
        for found in _END.finditer(self._text, max(0, begin - len(_FENCE))):
            if found.end() >= begin and not _NO_END.search(self._text[: found.start()]):
                self.reached = True
                return text[: found.end() - begin]
        return text


def reply_end(model: ResolvedModel, chosen: int, health: HostHealth, seconds: float) -> ReplyEnd | None:
    """The end of a reply that ``model`` writes now; None if it ends by itself.

    ``chosen`` tokens if any, otherwise what a small model may write, and can within ``seconds`` (0: no limit).
    """
    if chosen:
        return ReplyEnd(chosen)
    if not model.small:
        return None
    tokens = SMALL_TOKENS
    if health.speed is not None and seconds:
        shared = health.speed.shared(1 + health.foreground)
        while tokens > _LEAST_TOKENS and shared.seconds(0, tokens) > seconds:
            tokens -= 1
    return ReplyEnd(tokens)
