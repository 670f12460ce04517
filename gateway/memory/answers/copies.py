"""Replies that repeat earlier ones or themselves: a small model that sees some goes on so to the end of the chat.

Pure. What the user said to such a reply leaves the prompt with it, and is still found by the search in older messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from gateway.memory.learning.statements import CODE, WORD
from gateway.store.memory.messages import StoredMessage

_RUN = 3  # words
# A reply is a copy if this share of its runs of words is in earlier replies or earlier in itself, or if it begins like
# one of them. The last reply may be a new version of a text that is talked about.
_COPIED = 0.3
_COPIED_LAST = 0.8
# What was copied this often is left out too: one example is enough for the next copy.
_MOST_COPIES = 2


def without_copies(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """The messages without replies that repeat earlier ones or themselves, and without what these answered."""
    first: dict[tuple[str, ...], int] = {}  # which reply has said it first
    opened: dict[tuple[str, ...], int] = {}
    copies: dict[int, int] = {}
    replies = [each for each in messages if each.role == "assistant" and not each.failed]
    for reply in replies:
        runs, last = _runs(reply.text), reply is replies[-1]
        if not runs:
            continue
        sources = Counter(first[run] for run in runs if run in first)
        repeated = len(runs) - len({*runs} - first.keys())
        if runs[0] in opened and not last:
            copies[reply.seq] = opened[runs[0]]
        elif repeated >= (_COPIED_LAST if last else _COPIED) * len(runs):
            copies[reply.seq] = sources.most_common(1)[0][0] if sources else reply.seq
        opened.setdefault(runs[0], reply.seq)
        first |= {run: reply.seq for run in runs if run not in first}
    often = {seq for seq, count in Counter(copies.values()).items() if count >= _MOST_COPIES}
    dropped = copies.keys() | often
    left_out = {*dropped, *(a.seq for a, b in pairwise(messages) if b.seq in dropped and a.role == "user")}
    return [message for message in messages if message.seq not in left_out]


def _runs(text: str) -> list[tuple[str, ...]]:
    """Runs of words outside code, in order; a shorter text is one of its own."""
    words = [word.casefold() for word in WORD.findall(CODE.sub(" ", text))]
    return [tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))] if words else []
