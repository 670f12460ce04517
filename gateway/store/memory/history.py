"""SQL of searches in the message log. ``match`` expressions must come from :mod:`gateway.store.fts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
from msgspec import Struct

from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import MessageRole, StoredMessage
from gateway.store.rows import as_json, column, select
from gateway.store.vectors import can_search

_ALL = "SELECT id FROM conversations WHERE owner = :owner AND (:conversation IS NULL OR id = :conversation)"
# The conversation and those that it continues. Outside channels, ``elsewhere`` adds those with the same participants.
_RECALLABLE = """
WITH RECURSIVE chain (id, previous) AS (
  SELECT id, previous FROM conversations WHERE id = :conversation
  UNION SELECT conversations.id, conversations.previous FROM conversations
  JOIN chain ON conversations.id = chain.previous WHERE owner = :owner
)
SELECT id FROM chain UNION SELECT id FROM conversations
WHERE :elsewhere AND owner = :owner AND :kind <> 'channel' AND kind <> 'channel' AND participants = :participants
"""


class Within(Struct, frozen=True):
    """The messages that a search covers: a condition and its values."""

    where: str
    values: dict[str, Any]


class FoundMessage(Struct, frozen=True, kw_only=True):
    """A message and the title of its conversation."""

    seq: int
    id: str
    conversation: str
    title: str
    role: MessageRole
    speaker: str
    text: str
    created_at: float


def everything(owner: str, conversation: str | None) -> Within:
    """All messages of an owner, or those of one conversation, except failed ones."""
    return Within(f"NOT failed AND conversation IN ({_ALL})", {"owner": owner, "conversation": conversation})


def out_of_prompt(
    conversation: Conversation, shown: Sequence[int], *, redacted: bool = False, elsewhere: bool = True
) -> Within:
    """Messages that the next prompt of a conversation may recall: not those ``shown``, which it contains.

    Messages that secrets were taken from are left out, unless ``redacted`` asks for them too, and without ``elsewhere``
    those of the owner's other conversations.
    """
    return Within(
        f"NOT failed {'' if redacted else 'AND redactions = 0 '}AND conversation IN ({_RECALLABLE}) "
        "AND seq NOT IN (SELECT value FROM json_each(:shown))",
        {
            "owner": conversation.owner,
            "conversation": conversation.id,
            "kind": conversation.kind,
            "participants": as_json(conversation.participants),
            "shown": as_json(list(shown)),
            "elsewhere": elsewhere,
        },
    )


def speakers_within(connection: apsw.Connection, within: Within) -> dict[str, int]:
    """The number of messages by speaker; "" stands for speakers without a name."""
    rows = connection.execute(
        f"SELECT speaker, count(*) FROM messages WHERE {within.where} GROUP BY speaker", within.values
    )
    return dict(rows)


def messages_by(connection: apsw.Connection, within: Within, speakers: Sequence[str], limit: int) -> set[int]:
    """``seq`` of the newest messages of these speakers."""
    condition = "speaker IN (SELECT value FROM json_each(:by))"
    return set(_newest(connection, within, condition, {"by": as_json(list(speakers)), "limit": limit}))


def messages_of_time(
    connection: apsw.Connection, within: Within, first: float, end: float, limit: int
) -> frozenset[int]:
    """``seq`` of the newest messages from the time ``first`` until before ``end``."""
    condition = "created_at >= :first AND created_at < :end"
    return frozenset(_newest(connection, within, condition, {"first": first, "end": end, "limit": limit}))


def _newest(connection: apsw.Connection, within: Within, condition: str, values: dict[str, Any]) -> list[int]:
    query = f"SELECT seq FROM messages WHERE {within.where} AND {condition} ORDER BY seq DESC LIMIT :limit"
    return column(connection, query, within.values | values)


def around(
    connection: apsw.Connection, within: Within, seqs: Sequence[int], most: int, seconds: float
) -> dict[int, tuple[MessageRole, str, list[tuple[int, int]]]]:
    """The messages up to ``most`` places from one of ``seqs``, these included, in its conversation.

    Each with its role, its text and, for every other message at most ``most`` places and ``seconds`` from it, that
    one's ``seq`` and the number of places from it to this message.
    """
    chosen, reached = set(seqs), set(seqs)
    follower: dict[int, int] = {}
    for _ in range(2 * most):  # also what is around the neighbours
        pairs = _neighbours(connection, reached, seconds)
        follower |= pairs
        reached = {*pairs, *pairs.values()} - chosen
        chosen |= reached
    before = {later: earlier for earlier, later in follower.items()}
    near: dict[int, list[tuple[int, int]]] = {}
    for seq in chosen:
        near[seq] = []
        for pointers, sign in ((before, 1), (follower, -1)):
            at: int | None = seq
            for steps in range(1, most + 1):
                at = pointers.get(at) if at is not None else None
                if at is not None:
                    near[seq].append((at, sign * steps))
    rows = connection.execute(
        f"SELECT seq, role, messages.text FROM messages WHERE {within.where} "
        "AND seq IN (SELECT value FROM json_each(:seqs))",
        {**within.values, "seqs": as_json(sorted(chosen))},
    )
    return {seq: (role, text, near[seq]) for seq, role, text in rows}


def _neighbours(connection: apsw.Connection, seqs: set[int], seconds: float) -> dict[int, int]:
    """Pairs of adjacent messages, one of them in ``seqs``: the later one's ``seq`` by the earlier one's."""
    found: dict[int, int] = {}
    for way, order in ((">", "ASC"), ("<", "DESC")):
        rows = connection.execute(
            "SELECT one.seq, other.seq FROM messages AS one JOIN messages AS other ON other.seq = "
            "(SELECT near.seq FROM messages AS near WHERE near.conversation = one.conversation "
            f"AND near.seq {way} one.seq AND NOT near.failed ORDER BY near.seq {order} LIMIT 1) "
            "WHERE one.seq IN (SELECT value FROM json_each(:seqs)) "
            "AND abs(other.created_at - one.created_at) <= :seconds",
            {"seqs": as_json(sorted(seqs)), "seconds": seconds},
        )
        for seq, other in rows:
            one, two = sorted((seq, other))
            found[one] = two
    return found


def messages_with(
    connection: apsw.Connection, within: Within, match: str, limit: int
) -> list[tuple[int, str]]:
    """``seq`` and text of the newest messages whose words match."""
    source = (
        "message_words JOIN messages ON seq = message_words.rowid "
        f"WHERE message_words MATCH :sought AND {within.where} ORDER BY message_words.rowid DESC"
    )
    return _found(connection, source, within, match, limit)


def messages_containing(
    connection: apsw.Connection, within: Within, part: str, limit: int
) -> list[tuple[int, str]]:
    """``seq`` and text of the newest messages that contain ``part`` exactly; reads all of them."""
    source = f"messages WHERE {within.where} AND instr(messages.text, :sought) > 0 ORDER BY seq DESC"
    return _found(connection, source, within, part, limit)


def _found(
    connection: apsw.Connection, source: str, within: Within, sought: str, limit: int
) -> list[tuple[int, str]]:
    query = f"SELECT seq, messages.text FROM {source} LIMIT :limit"
    return list(connection.execute(query, {**within.values, "sought": sought, "limit": limit}))


def messages_near(
    connection: apsw.Connection, within: Within, space: str, vector: bytes
) -> list[tuple[int, float]] | None:
    """``seq`` and cosine distance of every message that has vectors, nearest first.

    None when the stored vectors are of another space.
    """
    if not can_search(connection, space):
        return None
    rows = connection.execute(
        "SELECT seq, min(vec_distance_cosine(vector, :vector)) AS distance "
        f"FROM messages JOIN message_vectors ON message = seq WHERE vector IS NOT NULL AND {within.where} "
        "GROUP BY seq ORDER BY distance, seq DESC",
        {**within.values, "vector": vector},
    )
    return list(rows)


def said(connection: apsw.Connection, seqs: Sequence[int]) -> list[FoundMessage]:
    """These messages, in the order of ``seqs``."""
    rows = select(
        connection,
        FoundMessage,
        "(SELECT messages.*, conversations.title FROM messages JOIN conversations "
        "ON conversations.id = messages.conversation) AS said WHERE seq IN (SELECT value FROM json_each(?))",
        (as_json(list(seqs)),),
    )
    found = {row.seq: row for row in rows}
    return [found[seq] for seq in seqs if seq in found]


def beside(
    connection: apsw.Connection, within: Within, message: FoundMessage, *, after: bool
) -> FoundMessage | None:
    """The message directly before or after another one in its conversation, if it is ``within``."""
    way, order = (">", "ASC") if after else ("<", "DESC")
    values = {**within.values, "beside": message.seq, "in": message.conversation}
    seq = connection.execute(
        f"SELECT seq FROM messages WHERE {within.where} AND seq = (SELECT seq FROM messages "
        f"WHERE conversation = :in AND seq {way} :beside AND NOT failed ORDER BY seq {order} LIMIT 1)",
        values,
    ).get
    return None if seq is None else said(connection, [int(seq)])[0]


def pending_messages(connection: apsw.Connection, after: int, limit: int) -> list[StoredMessage]:
    """Messages without vectors after ``seq`` ``after``, in order, except failed ones."""
    return select(
        connection,
        StoredMessage,
        "messages WHERE seq > ? AND NOT failed "
        "AND NOT EXISTS (SELECT 1 FROM message_vectors WHERE message = seq) ORDER BY seq LIMIT ?",
        (after, limit),
    )


def put_message_vectors(
    connection: apsw.Connection, message: int, text: str, vectors: Sequence[bytes], problem: str | None
) -> None:
    """Store a message's vectors, or why it has none; do nothing if it was erased or changed meanwhile."""
    rows: Sequence[bytes | None] = vectors or [None]
    for vector in rows:
        connection.execute(
            "INSERT INTO message_vectors SELECT seq, ?, ? FROM messages WHERE seq = ? AND text = ?",
            (vector, problem, message, text),
        )


def count_message_vectors(connection: apsw.Connection) -> tuple[int, int, int]:
    """Number of messages that are processed, of those that failed, and of all."""
    counts: tuple[int, int, int] = connection.execute(
        "SELECT count(DISTINCT message), count(problem), (SELECT count(*) FROM messages WHERE NOT failed) "
        "FROM message_vectors"
    ).get
    return counts
