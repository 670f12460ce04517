"""Answers from what is stored, in later prompts: small models copy their form and invent the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from gateway.memory.answers.listed import OPENINGS as LISTS
from gateway.memory.answers.listed import asks_for_tasks
from gateway.memory.answers.questions import own_question
from gateway.memory.answers.sought import ANSWERS, sought
from gateway.store.memory.messages import StoredMessage


def without_recited(messages: Sequence[StoredMessage], told: Callable[[str], bool]) -> list[StoredMessage]:
    """The messages without the questions that code has answered, and their answers; and what it has done and ``told``.

    A small model that sees such a reply says itself that something is done.
    """
    recited: set[int] = set()
    for asked, reply in pairwise(messages):
        if asked.role != "user" or reply.role != "assistant":
            continue
        recites = reply.text.startswith((*ANSWERS, *LISTS)) and (
            asks_for_tasks(asked.text) or own_question(asked.text) or sought(asked.text)
        )
        if recites or told(reply.text):
            recited |= {asked.seq, reply.seq}
    return [message for message in messages if message.seq not in recited]
