"""Replies that a small model does not see: it copies their form and invents the rest.

Those are answers from what is stored, and replies that repeat each other or themselves or are in a language that it
does not speak, after which it goes on so to the end of the chat. Pure. What leaves the prompt is still found by the
search in older messages, and sentences picked from what people said in it stand in where they may be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

import msgspec

from gateway.base.redact import MARK
from gateway.memory.answers.computed.answer import was_computed
from gateway.memory.answers.gist import GIST
from gateway.memory.answers.notices import ABILITIES, SECRETS_UNSTORED, UNSPOKEN, UNTRANSLATED
from gateway.memory.answers.questions import own_question
from gateway.memory.answers.sought import ANSWERS, sought
from gateway.memory.learning.statements import CODE, WORD
from gateway.memory.matching import ONLY_ASKS
from gateway.memory.summaries.extract import extract
from gateway.store.memory.messages import StoredMessage
from gateway.store.stop_words import speaks

_NOTICES = (UNSPOKEN, UNTRANSLATED, ABILITIES, *SECRETS_UNSTORED)
_ELLIPSIS = "…"
_RUN = 3  # words
# A reply is a copy if this share of its runs of words is in later replies or earlier in itself.
_COPIED = 0.4
_LEAST = 3  # of these; "You are welcome!" may be said twice


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
        computed = was_computed(reply.text)
        noticed = reply.text in _NOTICES or reply.text.startswith(GIST)
        if recites or computed or told(reply.text) or noticed:
            recited |= {asked.seq, reply.seq}
    return [_bare(message, told) for message in messages if message.seq not in recited]


def _bare(message: StoredMessage, told: Callable[[str], bool]) -> StoredMessage:
    """The message without what was told after a reply and without the marks of secrets."""
    reply, between, aside = message.text.rpartition("\n\n")
    text = (
        reply
        if message.role == "assistant" and between and (told(aside) or aside in _NOTICES)
        else message.text
    )
    return msgspec.structs.replace(message, text=text.replace(MARK, _ELLIPSIS))


def since_copies(
    messages: Sequence[StoredMessage], languages: Collection[str] = ()
) -> Sequence[StoredMessage]:
    """The last messages, as many as have no replies that repeat each other or themselves, or are in none of the model's
    ``languages``.
    """
    seen: set[tuple[str, ...]] = set()
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if message.role != "assistant" or message.failed:
            continue
        runs = _runs(message.text)
        new = {*runs} - seen
        repeats = len(runs) >= _LEAST and len(runs) - len(new) >= _COPIED * len(runs)
        if repeats or not speaks(languages, message.text):
            return messages[at + 1 :]
        seen |= new
    return messages


def stand_in(messages: Sequence[StoredMessage], shown: Sequence[StoredMessage], most: int) -> str:
    """Sentences of people's ``messages`` that are not ``shown`` and tell something, in an estimated ``most`` tokens."""
    there = {message.seq for message in shown}
    left = [
        each
        for each in messages
        if each.seq not in there
        and each.role == "user"
        and not each.failed
        and each.summarized_by is None
        and not ONLY_ASKS.fullmatch(each.text)
    ]
    names = [message.speaker or "User" for message in left]
    text = "\n".join(f"{name}: {message.text}" for name, message in zip(names, left, strict=True))
    letters = max(1.0, len(text) / max(1, sum(message.tokens for message in left)))
    return extract(text, most, lambda piece: int(len(piece) / letters) + 2, {*names}) if left else ""


def _runs(text: str) -> list[tuple[str, ...]]:
    """Runs of words outside code, in order; a shorter text is one of its own."""
    words = [word.casefold() for word in WORD.findall(CODE.sub(" ", text))]
    return [tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))] if words else []
