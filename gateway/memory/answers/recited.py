"""Answers from what is stored, in later prompts: small models copy their form and invent the rest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gateway.memory.answers.listed import OPENINGS as LISTS
from gateway.memory.answers.listed import asks_for_tasks
from gateway.memory.answers.questions import own_question
from gateway.memory.answers.sought import ANSWERS, sought
from gateway.store.memory.messages import StoredMessage


def without_recited(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """The messages without the questions that code has answered, and their answers."""
    recited: set[int] = set()
    for asked, reply in pairwise(messages):
        if asked.role != "user" or reply.role != "assistant" or not reply.text.startswith((*ANSWERS, *LISTS)):
            continue
        if asks_for_tasks(asked.text) or own_question(asked.text) or sought(asked.text):
            recited |= {asked.seq, reply.seq}
    return [message for message in messages if message.seq not in recited]
