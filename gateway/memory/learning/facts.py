"""Facts: read from what users say, and put into later prompts.

Code stores what a message states plainly together with the message (:mod:`gateway.memory.learning.stated`). From other
clauses the model proposes facts while it is idle, and code decides: a proposal counts only if its quote comes from a
user's message of this exchange and it follows from the quoted statement (:mod:`gateway.memory.learning.entailment`).
So nothing that the assistant says, or that was recalled into its prompt, can become a fact, and nothing that nobody
stated.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Literal

import apsw
import msgspec
from msgspec import Meta, Struct

from gateway.base.redact import MARK, redact_value
from gateway.memory.context import MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.learning.entailment import content, fact_follows, taken_back, usual_key
from gateway.memory.learning.plain import is_plain
from gateway.memory.learning.reading import conclude, propose, unread
from gateway.memory.learning.recall import Recall
from gateway.memory.learning.retracted import takes_back
from gateway.memory.learning.stated import StatedFact, is_stated, stated_facts
from gateway.memory.learning.statements import quoted_statement, stems
from gateway.memory.types import Block, LeftOut, Offer
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.facts import (
    Fact,
    NewFact,
    Scope,
    count_in_scope,
    end_fact,
    facts_in_scope,
    facts_of_message,
    get_fact,
    live_fact,
    put_fact,
    search_facts,
    undo_fact,
)
from gateway.store.memory.jobs import Job
from gateway.store.memory.messages import StoredMessage, said_before, speakers_of

MAX_OPERATIONS = 8
_KNOWN_SHOWN = 20
_RECALLED = 4


class Operation(Struct, frozen=True):
    """A proposal of the model; ``prompts/facts.md`` constrains it to this shape."""

    op: Literal["add", "update", "delete"]
    key: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{1,40}(: [a-z0-9_]{1,60})?$")]
    text: str
    quote: str
    reason: str


def accept(
    operations: Sequence[Operation], messages: Sequence[StoredMessage], known: Sequence[str]
) -> list[tuple[Operation, int]]:
    """The operations that count, each with the ``seq`` of the message that its quote comes from.

    They follow from a user's statement, delete only ``known`` keys, and there is one per key, the last that was said.
    """
    accepted: dict[str, tuple[Operation, int]] = {}
    meant = _meant(messages)
    for operation in operations[:MAX_OPERATIONS]:
        found = quoted_statement(operation.quote, meant, users_only=True)
        if found is None:
            continue
        source, said = found
        if operation.op != "delete":
            if not is_plain(said.clause, source.text):
                continue
            operation = msgspec.structs.replace(operation, key=usual_key(operation.key))
        if operation.key in accepted and source.seq <= accepted[operation.key][1]:
            continue
        if operation.op == "delete":
            if operation.key not in known or not taken_back(operation.key, said):
                continue
        elif not operation.text.strip() or not fact_follows(operation.key, operation.text, said):
            continue
        accepted[operation.key] = operation, source.seq
    return list(accepted.values())


def _meant(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """The messages that no later one of their writer takes back."""
    last: dict[str, StoredMessage] = {}
    unmeant: set[int] = set()
    for message in messages:
        if message.role == "user":
            before = last.get(message.speaker)
            if before is not None and takes_back(message.text, before.text):
                unmeant.add(before.seq)
            last[message.speaker] = message
    return [message for message in messages if message.seq not in unmeant]


def scopes_of(conversation: Conversation) -> list[tuple[Scope, str]]:
    """The scopes whose facts a conversation may see: a channel only its own, any other its owner's."""
    if conversation.kind == "channel":
        return [("channel", conversation.id)]
    return [("owner", "")]


class Facts:
    """The handler of jobs of the kind ``facts``, and a source of prompt blocks."""

    def __init__(self, parts: MemoryParts, hub: Hub) -> None:
        self._parts = parts
        self._hub = hub
        self._recall = Recall(parts.database, parts.queries)

    async def offer(self, conversation: Conversation, asked: str) -> Offer:
        """A block of the newest facts and one of those that the last message recalls.

        The first changes only when a fact does, so prompts keep sharing their prefix; the second changes with each
        message. A question recalls facts of the first one, too: small models use them more often where it stands. Some
        see facts only there.
        """
        settings, owner = self._parts.settings, conversation.owner
        if not settings.facts_in_prompt or not settings.fact_tokens:
            return Offer()
        scopes, limit = scopes_of(conversation), settings.facts_in_prompt
        newest, known = await self._parts.database.read(
            lambda c: (facts_in_scope(c, owner, scopes, limit), count_in_scope(c, owner, scopes))
        )
        heading = "What is known about the " + ("people here:" if conversation.kind == "channel" else "user:")
        stands = self._parts.served.current.standing_memory
        standing, standing_block = await self._block(
            "facts", heading, newest if stands else [], settings.fact_tokens
        )
        if standing_block is not None:
            said = {
                _line(fact): fact.message if fact.conversation == conversation.id else None
                for fact in standing
            }
            standing_block = msgspec.structs.replace(standing_block, said=said)
        shown = {fact.seq for fact in standing}
        asks = "?" in asked
        recalled: list[Fact] = []
        recalled_block: Block | None = None
        if asks or (stands and len(shown) < known):
            found = await self._recall.search(owner, scopes, asked, len(standing) + _RECALLED)
            others = [fact for fact in found if asks or fact.seq not in shown][:_RECALLED]
            recalled, recalled_block = await self._block(
                "recalled", heading, others, settings.fact_tokens // 4
            )
        left = known - len(shown | {fact.seq for fact in recalled})
        what = "1 fact" if left == 1 else f"{left} facts"
        why = f"over memory.facts_in_prompt ({limit}) or memory.fact_tokens ({settings.fact_tokens})"
        why = why if stands else "for a small model"
        return Offer(
            [block for block in (standing_block, recalled_block) if block is not None],
            [LeftOut(what, f"{why}, and not recalled by the message")] if left else [],
        )

    def note(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str]:
        """Store what a message states plainly, and return the keys that it changes."""
        if not self._parts.settings.facts or message.role != "user" or message.failed:
            return []
        taken_back = _take_back(connection, conversation, message)
        stated = stated_facts(message.text, message.speaker)
        noted = [fact.key for fact in stated if _note(connection, conversation, message, fact)]
        return list(dict.fromkeys([*taken_back, *noted]))

    async def run(self, job: Job) -> None:
        """Read the unread messages; the facts, the watermark and the end of the job are one transaction."""
        reading = await unread(self._parts, job, "facts")
        conversation = reading.conversation
        live = await self._parts.database.read(
            lambda c: facts_in_scope(c, conversation.owner, scopes_of(conversation), _KNOWN_SHOWN)
        )
        room = self._parts.settings.fact_tokens
        known, block = await self._block("facts", "Known facts:", live, room)
        shown = block.text.partition("\n")[2] if block else ""
        accepted: list[tuple[Operation, int]] = []
        users = [message.text for message in reading.messages if message.role == "user"]
        for text in reading.texts:
            proposed = await propose(self._parts, conversation, "facts", Operation, text=text, known=shown)
            unread_yet = [
                each for each in proposed if each.op == "delete" or not is_stated(each.quote, users)
            ]
            accepted += accept(unread_yet, reading.messages, [fact.key for fact in known])

        def apply(connection: apsw.Connection) -> list[str]:
            return [each.key for each, seq in accepted if _apply(connection, conversation, each, seq, known)]

        await conclude(self._parts.database, self._hub, job, reading, apply)

    async def _block(
        self, name: str, heading: str, facts: Sequence[Fact], room: int
    ) -> tuple[list[Fact], Block | None]:
        """The facts that fit ``room`` tokens below the heading, first ones first, and their block if there are any."""
        if not facts:
            return [], None
        used, *counts = await self._parts.inference.count([heading, *map(_line, facts)])
        fitting: list[Fact] = []
        for fact, count in zip(facts, counts, strict=True):
            if used + count + 1 <= room:
                used += count + 1
                fitting.append(fact)
        text = "\n".join([heading, *map(_line, fitting)])
        return fitting, Block(name, used, text) if fitting else None


def _line(fact: Fact) -> str:
    return f"- {fact.key}: {fact.text}"


def _take_back(connection: apsw.Connection, conversation: Conversation, message: StoredMessage) -> list[str]:
    """Undo what the writer's message before stated if this one says that it was not meant; return the keys."""
    before = said_before(connection, message)
    if before is None or not takes_back(message.text, before.text):
        return []
    unsaid = facts_of_message(connection, conversation.owner, before.seq)
    for fact in unsaid:
        undo_fact(connection, fact.id, conversation.owner)
    return [fact.key for fact in unsaid]


def _note(
    connection: apsw.Connection, conversation: Conversation, message: StoredMessage, stated: StatedFact
) -> bool:
    """Store or end one fact; return whether it changed anything."""
    place, owner = scopes_of(conversation)[0], conversation.owner
    if stated.denied:
        known = live_fact(connection, owner, place, stated.key)
        ended = [known] if known is not None else _unwell(connection, owner, place, stated, message.speaker)
        ended = [each for each in ended if content(stated.value) <= frozenset(stems(each.text))]
        for each in ended:
            end_fact(connection, each.id, owner, now=message.created_at, reason="taken back")
        return bool(ended)
    if MARK in stated.quote:
        return False
    new = NewFact(
        owner=owner,
        scope=place[0],
        scope_id=place[1],
        key=stated.key,
        text=stated.text,
        quote=stated.quote,
        conversation=conversation.id,
        message=message.seq,
        reason="stated plainly",
        valid_from=message.created_at,
    )
    return put_fact(connection, new) is not None


def _unwell(
    connection: apsw.Connection, owner: str, place: tuple[Scope, str], stated: StatedFact, speaker: str
) -> list[Fact]:
    """Facts about an illness or a part of the body, under any key; one speaker's only."""
    if stated.key.partition(":")[0] != "health":
        return []
    begins = stated.key + ("_" if ":" in stated.key else ":")
    found = search_facts(connection, owner, [place], stated.value, _KNOWN_SHOWN)
    # Keys of "Jo" begin like those of "Jo Ann".
    return [each for each in told_by(connection, found, speaker) if each.key.startswith(begins)]


def told_by(connection: apsw.Connection, facts: Sequence[Fact], speaker: str) -> list[Fact]:
    """The facts that come from a speaker's messages, and those that come from none."""
    speakers = speakers_of(connection, [fact.message for fact in facts if fact.message is not None])
    return [fact for fact in facts if speakers.get(fact.message or 0, speaker) == speaker]


def _apply(
    connection: apsw.Connection,
    conversation: Conversation,
    operation: Operation,
    message: int,
    known: Sequence[Fact],
) -> bool:
    """Carry out one operation; return whether it changed anything."""
    now = time.time()
    scope, scope_id = scopes_of(conversation)[0]
    if operation.op == "delete":
        fact = next(fact for fact in known if fact.key == operation.key)
        if get_fact(connection, fact.id, conversation.owner).ended_at is not None:
            return False
        end_fact(connection, fact.id, conversation.owner, now=now, reason=operation.reason)
        return True
    (text, reason), redactions = redact_value([operation.text.strip(), operation.reason])
    new = NewFact(
        owner=conversation.owner,
        scope=scope,
        scope_id=scope_id,
        key=operation.key,
        text=text,
        quote=operation.quote,
        conversation=conversation.id,
        message=message,
        reason=reason,
        valid_from=now,
        redactions=redactions,
    )
    return put_fact(connection, new) is not None
