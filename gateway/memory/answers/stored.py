"""Reads what is stored for the answers to a user's questions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

import apsw
import msgspec

from gateway.memory.answers.ellipsis import names_only, whole_question
from gateway.memory.answers.figures import newer_figures
from gateway.memory.answers.kinds import asks_when, of_kind
from gateway.memory.answers.questions import (
    OwnQuestion,
    own_question,
    recalled_answer,
    recalled_facts,
    told_answer,
    told_in,
    without_thing,
)
from gateway.memory.answers.sought import (
    MOST_QUOTES,
    HistoryQuestion,
    changes,
    goes_on,
    leads_to,
    says,
    sought,
    sought_answer,
)
from gateway.memory.context import MemoryParts
from gateway.memory.history import LEAST_SHARE, decided_since, excerpt
from gateway.memory.learning.facts import scopes_of, told_by
from gateway.memory.learning.retracted import takes_back
from gateway.memory.matching import ranked
from gateway.memory.types import Offer
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.facts import Fact, ended_quotes, facts_in_scope
from gateway.store.memory.history import FoundMessage, Within, beside, out_of_prompt, said
from gateway.store.memory.messages import StoredMessage, messages_between, page_of_messages

_CANDIDATES = 32
_FIGURES_SINCE = 400  # messages behind one with a figure, among which a newer one is looked for
# A new time of a plan repeats little of it: "the flight is cancelled, we go on the 10th instead".
_OF_PLANS = 0.05
_RECENT = 8  # messages among which the question before is
_REPLIES = 3  # messages of its writer that are looked at behind a hit


class StoredAnswers:
    """A source of answers to questions about oneself and about what was said."""

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts

    async def offer(self, conversation: Conversation, asked: str) -> Offer:
        """The answer, if a small model would miss it in its prompt; otherwise nothing."""
        if not self._parts.served.current.small or conversation.kind == "channel":
            return Offer()
        meant = await self._meant(conversation, asked)
        question, looked_for = own_question(meant), sought(meant)
        if question is None and looked_for is None:
            return Offer()
        limit, recalls = self._parts.settings.facts_in_prompt, self._parts.settings.recall_tokens

        def read(connection: apsw.Connection) -> tuple[list[Fact], StoredMessage | None]:
            last = next(iter(page_of_messages(connection, conversation.id, limit=1)), None)
            facts = facts_in_scope(connection, conversation.owner, scopes_of(conversation), limit)
            return told_by(connection, facts, last.speaker) if last is not None else facts, last

        facts, last = await self._parts.database.read(read)
        answer = ""
        if question is not None and (fitting := recalled_facts(question, facts)):
            later = await self._later(conversation, question, fitting[0]) if len(fitting) == 1 else []
            answer = recalled_answer(question, fitting, later)
        if not answer and recalls and last is not None and last.text == asked:
            last = msgspec.structs.replace(last, text=meant)
            if question is not None:
                answer = await self._told(conversation, question, last)
            if not answer and looked_for is not None:
                answer = await self._sought(conversation, looked_for, last)
        return Offer(answer=answer)

    async def _meant(self, conversation: Conversation, asked: str) -> str:
        """The question whole, with the one before that it goes on."""
        if not names_only(asked):
            return asked
        recent = await self._parts.database.read(
            lambda c: page_of_messages(c, conversation.id, limit=_RECENT)
        )
        theirs = [
            each.text for each in recent[:-1] if (each.role, each.speaker) == ("user", recent[-1].speaker)
        ]
        return whole_question(asked, theirs)

    async def _later(self, conversation: Conversation, question: OwnQuestion, fact: Fact) -> list[str]:
        """What the user has decided since about the time of a plan that became a fact."""
        seq = fact.message
        if seq is None or not asks_when(question.text) or not self._parts.settings.recall_tokens:
            return []
        within = out_of_prompt(conversation, [])
        decided = await self._parts.database.read(
            lambda c: [each for hit in said(c, [seq]) for each in decided_since(c, within, hit, _OF_PLANS)]
        )
        return [each.text for each in decided if each.role == "user" and of_kind(question.text, each.text)]

    async def _told(self, conversation: Conversation, question: OwnQuestion, last: StoredMessage) -> str:
        """Statements of the writer of ``last`` that became no fact."""
        within = out_of_prompt(conversation, [last.seq])
        found = await self._parts.database.read(
            lambda c: _newest(c, within, question, last, conversation.owner)
        )
        if not found:
            return ""
        then, now = (self._day(conversation, each) for each in (found[0], last))
        clauses = [told_in(question, each.text) or excerpt(each.text, last.text) for each in found]
        return told_answer(question, clauses, "" if then == now else then.isoformat())

    async def _sought(
        self, conversation: Conversation, question: HistoryQuestion, last: StoredMessage
    ) -> str:
        """The messages of the writer of ``last`` that say it."""
        within = out_of_prompt(conversation, [last.seq], redacted=True)
        found = await self._parts.database.read(
            lambda c: _saying(c, within, question, last, conversation.owner)
        )
        if not found and question.own and (conversation.instructions or last.speaker):
            return ""  # they may tell
        quotes = [(excerpt(each.text, question.terms), self._day(conversation, each)) for each in found]
        return sought_answer(question, quotes, self._day(conversation, last))

    def _day(self, conversation: Conversation, message: FoundMessage | StoredMessage) -> date:
        return datetime.fromtimestamp(message.created_at, self._parts.zone(conversation)).date()


def _newest(
    connection: apsw.Connection, within: Within, question: OwnQuestion, last: StoredMessage, owner: str
) -> Sequence[FoundMessage]:
    """The newest message with the answer, and the later decision about the same, if there is one.

    A clause whose fact was forgotten or has ended is no answer.
    """
    alike = [
        each for text in (last.text, without_thing(last.text)) for each in ranked(connection, within, text)
    ]
    about = {each.seq for each in alike if each.share >= LEAST_SHARE}
    for hit in said(connection, sorted(about, reverse=True)[:_CANDIDATES]):
        clause = told_in(question, hit.text)
        if hit.role != "user" or hit.speaker != last.speaker or not clause:
            continue
        ended = [quote for quote in ended_quotes(connection, owner, hit.seq) if quote]
        if any(clause in quote or quote in clause for quote in ended):
            continue
        following = _beside(connection, within, hit, after=True)
        if not (following and takes_back(following[0].text, hit.text)):
            decided = (each for each in decided_since(connection, within, hit) if each.role == "user")
            newer = [*decided, *_refigured(connection, question.text, hit, last)]
            return [hit, *{each.seq: each for each in newer}.values()]
    return []


def _saying(
    connection: apsw.Connection, within: Within, question: HistoryQuestion, last: StoredMessage, owner: str
) -> list[FoundMessage]:
    """The newest messages that answer a question, with those that go on with them, in order."""
    alike = ranked(connection, within, question.terms)
    about = [each.seq for each in alike if each.share >= LEAST_SHARE]
    found: dict[int, FoundMessage] = {}
    hits = 0
    for hit in said(connection, sorted(about[:_CANDIDATES], reverse=True)):
        if hit.role != "user" or hit.speaker != last.speaker or hits == MOST_QUOTES:
            continue
        following = _beside(connection, within, hit, after=True)
        if not says(question, hit.text, following[0].text if following else ""):
            continue
        if (following and takes_back(following[0].text, hit.text)) or any(
            quote and quote in hit.text for quote in ended_quotes(connection, owner, hit.seq)
        ):
            continue
        hits += 1
        earlier = _beside(connection, within, hit, after=False)
        before = [each for each in earlier if leads_to(question, each.text, hit.text)][:1]
        going_on = [each for each in following if goes_on(question, hit.text, each.text)]
        found |= {each.seq: each for each in (*before, hit, *going_on)}
    if question.loose and hits > 1:
        return []  # it may be about any of them
    if hits:
        since = [each.seq for each in alike if each.seq > min(found)][:_CANDIDATES]
        theirs = (e for e in said(connection, since) if e.role == "user" and e.speaker == last.speaker)
        found |= {each.seq: each for each in theirs if changes(question, each.text)}
    if hits and not question.mentions:
        newest = found[max(found)]
        found |= {each.seq: each for each in _refigured(connection, question.text, newest, last)}
    return [found[seq] for seq in sorted(found)]


def _refigured(
    connection: apsw.Connection, asked: str, hit: FoundMessage, last: StoredMessage
) -> list[FoundMessage]:
    """Later messages of the writer, in the same conversation, with a new figure for what ``hit`` says."""
    if hit.conversation != last.conversation:
        return []
    end = min(last.seq - 1, hit.seq + _FIGURES_SINCE)
    later = [
        each
        for each in messages_between(connection, hit.conversation, hit.seq + 1, end)
        if each.role == "user" and each.speaker == hit.speaker and not (each.failed or each.redactions)
    ]
    numbers = newer_figures(asked, hit.text, [each.text for each in later])
    return said(connection, [later[number].seq for number in numbers])


def _beside(
    connection: apsw.Connection, within: Within, hit: FoundMessage, *, after: bool
) -> list[FoundMessage]:
    """Messages of the same writer, the nearest first."""
    found: list[FoundMessage] = []
    near: FoundMessage | None = hit
    for _ in range(2 * _REPLIES):
        near = beside(connection, within, near, after=after) if near is not None else None
        if near is not None and near.role == "user" and near.speaker == hit.speaker:
            found.append(near)
    return found
