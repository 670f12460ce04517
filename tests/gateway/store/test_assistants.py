"""Older databases: a persona becomes an assistant, and a conversation's own reflection a summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from gateway.cli.common.files import opened_database
from gateway.store.memory.assistants import assistant_of, list_assistants, list_biographies, waiting_summaries
from gateway.store.memory.conversations import any_conversation
from gateway.store.memory.messages import open_messages
from gateway.store.memory.summaries import live_summaries
from gateway.store.migrate import migrate, migrations


def _insert(connection: apsw.Connection, table: str, **values: Any) -> None:
    names = ", ".join(values)
    connection.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values())
    )


def test_personas_and_reflections_of_an_older_schema(tmp_path: Path) -> None:
    path = tmp_path / "hearth.db"
    old = apsw.Connection(str(path))
    old.pragma("foreign_keys", True)
    migrate(old, path, [step for step in migrations() if step.version < 16])
    fields = {
        "kind": "chat", "policy": "conversations", "title": "", "participants": "[]", "instructions": "", "model": "m",
        "created_at": 1.0, "updated_at": 1.0,
    }  # fmt: skip
    for name, owner, persona, previous in (
        ("c1", "ann", "A bard.", None),
        ("c2", "ann", "A bard.", "c1"),
        ("c3", "ann", "A guard.", "c2"),
        ("c4", "ann", "", None),
        ("c5", "bob", "A bard.", None),
    ):
        _insert(old, "conversations", id=name, owner=owner, persona=persona, previous=previous, **fields)
    summary = {
        "conversation": "c1", "from_time": 1.0, "to_time": 2.0, "text": "Told.", "pins": "[]", "tokens": 3,
        "prompt_name": "x", "prompt_version": 1, "model": "m", "created_at": 2.0,
    }  # fmt: skip
    message = {"conversation": "c1", "role": "user", "text": "x", "tokens": 5, "failed": 0, "redactions": 0}
    _insert(old, "summaries", seq=1, level="reflection", first=1, last=1, **summary)
    for seq, speaker in ((1, ""), (2, "Ann")):
        _insert(old, "messages", seq=seq, id=f"m{seq}", speaker=speaker, round=seq, created_at=1.0, **message)
    old.execute("UPDATE messages SET summarized_by = 1 WHERE seq = 1")
    old.close()
    with opened_database(path) as database:
        read = database.read_sync
        names = ("c1", "c2", "c3", "c4", "c5")
        found = read(lambda c: {name: assistant_of(c, any_conversation(c, name)) for name in names})
        assert found["c1"] == found["c2"] and found["c4"] is None
        told = [each and each.biography for each in found.values()]
        assert told == ["A bard.", "A bard.", "A guard.", None, "A bard."]
        bobs = found["c5"]
        assert bobs is not None and bobs.owner == "bob" and bobs != found["c1"]
        assert len(read(lambda c: list_assistants(c, "ann", limit=9))) == 2
        bard = found["c1"]
        assert bard is not None
        assert [each.text for each in read(lambda c: list_biographies(c, bard.id, limit=9))] == ["A bard."]
        assert [each.level for each in read(lambda c: live_summaries(c, "c1"))] == ["conversation"]
        # Of a continued conversation, the summary in the next one counts.
        assert [each.summary.text for each in read(lambda c: waiting_summaries(c, bard))] == []
        assert [each.tokens for each in read(lambda c: open_messages(c, "c1", 0))] == [-1], (
            "its name is counted now"
        )
