"""Facts: read from what users say when the model is idle, and put into later prompts.

The model proposes; code decides. A proposal counts only when its quote stands in a user's message of this exchange,
so what the assistant says, and what was recalled into its prompt, can never become a fact.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Annotated, Literal

import apsw
import msgspec
import structlog
from msgspec import Meta, Struct

from gateway.base.redact import redact_value
from gateway.memory.context import MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.learning.reading import conclude, unread
from gateway.memory.learning.recall import Recall
from gateway.memory.model import Filled
from gateway.memory.types import Block, LeftOut, Offer
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.facts import (
    Fact,
    NewFact,
    Scope,
    count_in_scope,
    end_fact,
    facts_in_scope,
    get_fact,
    put_fact,
)
from gateway.store.memory.jobs import Job
from gateway.store.memory.messages import StoredMessage

log = structlog.get_logger(__name__)

MAX_OPERATIONS = 8
_KNOWN_SHOWN = 20
_RECALLED = 4
_LEAST_QUOTE = 3  # characters


class Operation(Struct, frozen=True):
    """What the model proposes; the shape that ``prompts/facts.md`` constrains it to."""

    op: Literal["add", "update", "delete"]
    key: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{1,40}(: [a-z0-9_]{1,60})?$")]
    text: str
    quote: str
    reason: str


class AcceptedFact(Struct, frozen=True):
    """An operation whose quote is a user's, and the message it stands in."""

    operation: Operation
    message: int


def accept(
    operations: Sequence[Operation], messages: Sequence[StoredMessage], known: Sequence[str]
) -> list[AcceptedFact]:
    """The operations that count: quoted from a user, not empty, deletions only of ``known`` keys, one a key."""
    accepted: dict[str, AcceptedFact] = {}
    for operation in operations[:MAX_OPERATIONS]:
        source = _quoted_in(operation.quote, messages)
        if source is None or operation.key in accepted:
            continue
        if operation.op == "delete" and operation.key not in known:
            continue
        if operation.op != "delete" and not operation.text.strip():
            continue
        accepted[operation.key] = AcceptedFact(operation, source)
    return list(accepted.values())


def _quoted_in(quote: str, messages: Sequence[StoredMessage]) -> int | None:
    """``seq`` of the user's message that has the quote, blanks and case apart."""
    wanted = _plain(quote)
    if len(wanted) < _LEAST_QUOTE:
        return None
    return next(
        (m.seq for m in messages if m.role == "user" and not m.failed and wanted in _plain(m.text)), None
    )


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().strip("\"'“”").casefold()


def scopes_of(conversation: Conversation) -> list[tuple[Scope, str]]:
    """Whose facts a conversation may see: its owner's, and in a channel the channel's own."""
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
        """The newest facts within their budget, and those that the last message recalls.

        The first block changes only when a fact does; what is recalled comes and goes with each message.
        """
        settings, owner = self._parts.settings, conversation.owner
        if not settings.facts_in_prompt or not settings.fact_tokens:
            return Offer()
        scopes, limit = scopes_of(conversation), settings.facts_in_prompt
        newest, known = await self._parts.database.read(
            lambda c: (facts_in_scope(c, owner, scopes, limit), count_in_scope(c, owner, scopes))
        )
        standing = await self._fitting("What you know:", newest, settings.fact_tokens)
        recalled: list[Fact] = []
        if len(standing) < known:  # else there are no others that could be recalled
            shown = {fact.seq for fact in standing}
            found = await self._recall.search(owner, scopes, asked, len(standing) + _RECALLED)
            others = [fact for fact in found if fact.seq not in shown][:_RECALLED]
            recalled = await self._fitting("You also know:", others, settings.fact_tokens // 4)
        blocks = [
            await self._block("facts", "What you know:", standing),
            await self._block("recalled", "You also know:", recalled),
        ]
        left = known - len(standing) - len(recalled)
        what = "1 fact" if left == 1 else f"{left} facts"
        why = f"over memory.facts_in_prompt ({limit}) or memory.fact_tokens ({settings.fact_tokens})"
        return Offer(
            [block for block in blocks if block is not None],
            [LeftOut(what, f"{why}, and not recalled by the message")] if left else [],
        )

    async def run(self, job: Job) -> None:
        """Read what was said since the last time; facts, watermark and the job's end are one transaction."""
        reading = await unread(self._parts, job, "facts")
        conversation = reading.conversation
        known = await self._parts.database.read(
            lambda c: facts_in_scope(c, conversation.owner, scopes_of(conversation), _KNOWN_SHOWN)
        )
        known = await self._fitting("Known facts:", known, self._parts.settings.fact_tokens)
        shown = await self._block("facts", "Known facts:", known)
        accepted: list[AcceptedFact] = []
        for text in reading.texts if reading.by_users else []:
            proposed = await self._propose(conversation, text, shown)
            accepted += accept(proposed, reading.messages, [fact.key for fact in known])

        def keep(connection: apsw.Connection) -> list[str]:
            changed = [each for each in accepted if _apply(connection, conversation, each, known)]
            return [each.operation.key for each in changed]

        await conclude(self._parts.database, self._hub, job, reading, keep)

    async def _propose(self, conversation: Conversation, text: str, known: Block | None) -> list[Operation]:
        prompt = self._parts.prompts.get("facts")
        values = {"known": known.text.partition("\n")[2] if known else "(none)", "dialogue": text}
        model = self._parts.model(conversation)
        written, stopped = await model.write(Filled(prompt, values), max_tokens=600)
        try:
            return msgspec.json.decode(written, type=list[Operation])
        except msgspec.DecodeError as error:
            log.warning("facts could not be read", stopped=stopped, problem=str(error)[:200])
            return []

    async def _fitting(self, heading: str, facts: Sequence[Fact], room: int) -> list[Fact]:
        """Those of the facts that fit ``room`` tokens below the heading, the first ones first."""
        if not facts:
            return []
        used, *counts = await self._parts.inference.count([heading, *map(_line, facts)])
        kept: list[Fact] = []
        for fact, count in zip(facts, counts, strict=True):
            if used + count + 1 <= room:
                used += count + 1
                kept.append(fact)
        return kept

    async def _block(self, name: str, heading: str, facts: Sequence[Fact]) -> Block | None:
        if not facts:
            return None
        lines = [heading, *map(_line, facts)]
        counts = await self._parts.inference.count(lines)  # of lines, which the cache of counts knows by now
        return Block(name, sum(counts) + len(facts), "\n".join(lines))


def _line(fact: Fact) -> str:
    return f"- {fact.key}: {fact.text}"


def _apply(
    connection: apsw.Connection, conversation: Conversation, accepted: AcceptedFact, known: Sequence[Fact]
) -> bool:
    """Carry out one operation; whether anything changed."""
    operation, now = accepted.operation, time.time()
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
        message=accepted.message,
        reason=reason,
        valid_from=now,
        redactions=redactions,
    )
    return put_fact(connection, new) is not None
