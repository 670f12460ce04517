"""Replies that repeat earlier ones: a small model that sees two of them goes on like this to the end of the chat.

Pure. What the user said to such a reply leaves the prompt with it, and is still found by the search in older messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from gateway.memory.learning.statements import WORD
from gateway.store.memory.messages import StoredMessage

_RUN = 3  # words
# A reply is a copy if this share of its runs of words is in earlier replies, or if it begins as one of them does.
_COPIED = 0.3
# What was copied this often is left out too: one example is enough for the next copy.
_MOST_COPIES = 2


def without_copies(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """The messages without replies that repeat earlier ones, and without what these answered."""
    first: dict[tuple[str, ...], int] = {}  # which reply has said it first
    opened: dict[tuple[str, ...], int] = {}
    copies: dict[int, int] = {}
    for reply in (each for each in messages if each.role == "assistant" and not each.failed):
        runs = _runs(reply.text)
        if not runs:
            continue
        sources = Counter(first[run] for run in runs if run in first)
        if runs[0] in opened:
            copies[reply.seq] = opened[runs[0]]
        elif sources.total() >= _COPIED * len(runs):
            copies[reply.seq] = sources.most_common(1)[0][0]
        opened.setdefault(runs[0], reply.seq)
        first |= {run: reply.seq for run in runs if run not in first}
    often = {seq for seq, count in Counter(copies.values()).items() if count >= _MOST_COPIES}
    dropped = copies.keys() | often
    left_out = {*dropped, *(a.seq for a, b in pairwise(messages) if b.seq in dropped and a.role == "user")}
    return [message for message in messages if message.seq not in left_out]


def _runs(text: str) -> list[tuple[str, ...]]:
    """Runs of words, in order; a shorter text is one of its own."""
    words = [word.casefold() for word in WORD.findall(text)]
    return [tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))] if words else []
