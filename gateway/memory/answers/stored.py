"""Reads what is stored for the answers to a user's questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import apsw

from gateway.memory.answers.listed import asks_for_tasks, task_answer
from gateway.memory.answers.questions import OwnQuestion, own_question, recalled_answer, told_answer, told_in
from gateway.memory.context import MemoryParts
from gateway.memory.history import LEAST_SHARE, decided_since, excerpt, ranked
from gateway.memory.learning.facts import scopes_of, told_by
from gateway.memory.learning.retracted import takes_back
from gateway.memory.planning.budget import time_zone
from gateway.memory.types import Offer
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.facts import Fact, ended_quotes, facts_in_scope
from gateway.store.memory.history import Said, Within, beside, out_of_prompt, said
from gateway.store.memory.messages import StoredMessage, page_of_messages

_CANDIDATES = 32
_REPLIES = 3  # messages until the next one of the same writer


class StoredAnswers:
    """A source of answers to questions about oneself, and for the list of today, which ``tasks`` reads."""

    def __init__(self, parts: MemoryParts, tasks: Callable[[Conversation], Awaitable[list[str]]]) -> None:
        self._parts = parts
        self._tasks = tasks

    async def offer(self, conversation: Conversation, asked: str) -> Offer:
        """An answer, where a small model would not find it in its prompt, or nothing."""
        if not self._parts.served.current.small or conversation.kind == "channel":
            return Offer()
        if asks_for_tasks(asked) and self._parts.settings.task_tokens:
            return Offer(answer=task_answer(asked, await self._tasks(conversation)))
        question = own_question(asked)
        if question is None:
            return Offer()
        limit, recalls = self._parts.settings.facts_in_prompt, self._parts.settings.recall_tokens

        def read(connection: apsw.Connection) -> tuple[list[Fact], StoredMessage | None]:
            last = next(iter(page_of_messages(connection, conversation.id, limit=1)), None)
            facts = facts_in_scope(connection, conversation.owner, scopes_of(conversation), limit)
            return told_by(connection, facts, last.speaker) if last is not None else facts, last

        facts, last = await self._parts.database.read(read)
        answer = recalled_answer(question, facts)
        if not answer and recalls and last is not None and last.text == asked:
            answer = await self._told(conversation, question, last)
        return Offer(answer=answer)

    async def _told(self, conversation: Conversation, question: OwnQuestion, last: StoredMessage) -> str:
        """What the writer of ``last`` has said, of which no fact was made."""
        within = out_of_prompt(conversation, [last.seq])
        found = await self._parts.database.read(
            lambda c: _newest(c, within, question, last, conversation.owner)
        )
        if not found:
            return ""
        zone = time_zone(conversation.time_zone or self._parts.settings.time_zone)
        then, now = (datetime.fromtimestamp(at, zone).date() for at in (found[0].created_at, last.created_at))
        clauses = [told_in(question, each.text) or excerpt(each.text, last.text) for each in found]
        return told_answer(question, clauses, "" if then == now else then.isoformat())


def _newest(
    connection: apsw.Connection, within: Within, question: OwnQuestion, last: StoredMessage, owner: str
) -> Sequence[Said]:
    """The newest message with the answer, and the later decision about the same, if there is one.

    A clause whose fact was forgotten or has ended is no answer.
    """
    about = [each.seq for each in ranked(connection, within, last.text) if each.share >= LEAST_SHARE]
    for hit in said(connection, sorted(about[:_CANDIDATES], reverse=True)):
        clause = told_in(question, hit.text)
        if hit.role != "user" or hit.speaker != last.speaker or not clause:
            continue
        ended = [quote for quote in ended_quotes(connection, owner, hit.seq) if quote]
        if any(clause in quote or quote in clause for quote in ended):
            continue
        if not _is_taken_back(connection, within, hit):
            return [hit, *(each for each in decided_since(connection, within, hit) if each.role == "user")]
    return []


def _is_taken_back(connection: apsw.Connection, within: Within, hit: Said) -> bool:
    after: Said | None = hit
    for _ in range(_REPLIES):
        after = beside(connection, within, after, after=True) if after is not None else None
        if after is not None and after.role == "user" and after.speaker == hit.speaker:
            return takes_back(after.text, hit.text)
    return False
