"""What stands around messages, and messages of a time, on a real database."""

from __future__ import annotations

import apsw

from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation
from gateway.store.memory.history import around, everything, messages_of_time
from gateway.store.memory.messages import mark_failed
from tests.gateway.store.test_conversations import make, say


def fill(connection: apsw.Connection) -> list[int]:
    add_conversation(connection, make("c1"))
    add_conversation(connection, make("c2"))
    times = [10.0, 20.0, 30.0, 40.0, 5000.0]
    seqs = []
    for number, at in enumerate(times):
        seqs.append(say(connection, f"m{number}", created_at=at).seq)
        say(connection, f"other{number}", conversation="c2", created_at=at)
    mark_failed(connection, "c1", True, message="m1")
    return seqs


def test_messages_around_one_are_of_its_conversation_and_time_and_did_not_fail(database: Database) -> None:
    seqs = database.write_sync(fill)
    found = database.read_sync(lambda c: around(c, everything("ann", None), [seqs[2]], 2, 3600.0))
    assert {seq: set(near) for seq, (_, _, near) in found.items()} == {
        seqs[0]: {(seqs[2], -1), (seqs[3], -2)},
        seqs[2]: {(seqs[0], 1), (seqs[3], -1)},
        seqs[3]: {(seqs[2], 1), (seqs[0], 2)},
    }
    assert found[seqs[3]][:2] == ("user", "text of m3")


def test_messages_of_a_time(database: Database) -> None:
    seqs = database.write_sync(fill)
    within = everything("ann", "c1")
    assert database.read_sync(lambda c: messages_of_time(c, within, 20.0, 40.0, 9)) == {seqs[2]}
    assert database.read_sync(lambda c: messages_of_time(c, within, 0.0, 9999.0, 2)) == {seqs[3], seqs[4]}
