"""Replies that a small model does not see: it copies their form and invents the rest.

Those are answers from what is stored, replies that repeat each other or themselves, and ones in a language that it does
not speak, after any of which it goes on so to the end of the chat. Pure. What leaves the prompt is still found by the
search in older messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from gateway.base.redact import MARK
from gateway.memory.answers.clock import told_the_time
from gateway.memory.answers.questions import own_question
from gateway.memory.answers.sought import ANSWERS, sought
from gateway.memory.answers.unspoken import UNSPOKEN
from gateway.memory.learning.statements import CODE, WORD
from gateway.store.memory.messages import StoredMessage

_ELLIPSIS = "…"
_RUN = 3  # words
# A reply is a copy if this share of its runs of words is in later replies or earlier in itself.
_COPIED = 0.4
_LEAST = 3  # of these; "You are welcome!" may be said twice
# A message that asks to change the last reply, or for more of it.
_CHANGES = re.compile(
    r"^\W*(?:(?:ok|and|now|but|no|please|pls|can you|could you|giờ|mà)\W+)*"
    r"(?:make|add|remove|change|rewrite|rephrase|shorten|fix|try|continue|go on|say|repeat|leave|put|use|replace|"
    r"include|"
    r"one more|another|more|less|again|not so|too|shorter|longer|simpler|without|with|"
    r"thêm|bớt|sửa|đổi|viết lại|ngắn|dài|nữa|tiếp|lại)\b|"
    r"\b(?:shorter|longer|simpler|friendlier|nicer|again|one more|ngắn hơn|dài hơn|lại đi)\b",
    re.I,
)


def without_recited(messages: Sequence[StoredMessage], told: Callable[[str], bool]) -> list[StoredMessage]:
    """The messages without the questions that code has answered, and their answers; and what it has done and ``told``.

    A small model that sees such a reply says itself that something is done. It also speaks of "[redacted]" for the rest
    of the chat, as of a password or a substance, so an ellipsis stands for it.
    """
    recited: set[int] = set()
    for asked, reply in pairwise(messages):
        if asked.role != "user" or reply.role != "assistant":
            continue
        recites = reply.text.startswith(ANSWERS) and (own_question(asked.text) or sought(asked.text))
        timed = told_the_time(asked.text, reply.text)
        if recites or timed or told(reply.text) or reply.text == UNSPOKEN:
            recited |= {asked.seq, reply.seq}
    return [_bare(message, told) for message in messages if message.seq not in recited]


def _bare(message: StoredMessage, told: Callable[[str], bool]) -> StoredMessage:
    """The message without what was told after a reply and without the marks of secrets."""
    reply, between, aside = message.text.rpartition("\n\n")
    text = reply if message.role == "assistant" and between and told(aside) else message.text
    return msgspec.structs.replace(message, text=text.replace(MARK, _ELLIPSIS))


def since_copies(
    messages: Sequence[StoredMessage], spoken: Callable[[str], bool] = lambda reply: True
) -> Sequence[StoredMessage]:
    """The last messages, as many as have no replies that repeat each other or themselves and all of which are in a
    language that is ``spoken``.

    The newest of such replies stays if it changes a text as its message asks, or is the same to the letter, as replies
    of the built-in model are; any other is left out too, since the model would go on with it.
    """
    first: dict[tuple[str, ...], int] = {}  # the reply that has a run of words first
    runs: dict[int, list[tuple[str, ...]]] = {}
    stay: set[int] = set()
    texts: set[str] = set()
    for at, message in enumerate(messages):
        if message.role != "assistant" or message.failed:
            continue
        runs[at] = _runs(message.text)
        for run in runs[at]:
            first.setdefault(run, at)
        if message.text in texts or _asks_for_change(messages, at):
            stay.add(at)
        texts.add(message.text)
    if runs and _asks_for_change(messages, len(messages)):
        stay.add(max(runs))
    later: set[tuple[str, ...]] = set()
    for at in reversed(runs):
        new = {*runs[at]} - later
        copied = 0 if at in stay else sum(first[run] < at for run in runs[at])
        known = max(len(runs[at]) - len(new), copied)
        repeats = len(runs[at]) >= _LEAST and known >= _COPIED * len(runs[at])
        if repeats or not spoken(messages[at].text):
            return messages[at + 1 :]
        later |= new
    return messages


def _asks_for_change(messages: Sequence[StoredMessage], reply: int) -> bool:
    """Whether the user's last message before ``reply`` does."""
    asked = next((messages[at].text for at in range(reply - 1, -1, -1) if messages[at].role == "user"), "")
    return bool(_CHANGES.search(asked))


def _runs(text: str) -> list[tuple[str, ...]]:
    """Runs of words outside code, in order; a shorter text is one of its own."""
    words = [word.casefold() for word in WORD.findall(CODE.sub(" ", text))]
    return [tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))] if words else []
