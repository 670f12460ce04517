"""500 power cuts: at FULL no acknowledged message is lost; the same harness loses some at NORMAL."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import apsw
import pytest

from gateway.cli.common.files import opened_database
from gateway.store.memory.conversations import add_conversation
from gateway.store.memory.messages import NewMessage, add_message
from tests.gateway.store.power_cut import Disk, PowerCutVFS
from tests.gateway.store.test_conversations import make

CUTS = 500


@pytest.mark.soak
def test_acknowledged_messages_survive_power_cuts(tmp_path: Path) -> None:
    lost = {"FULL": 0, "NORMAL": 0}
    for level, cuts in (("FULL", CUTS), ("NORMAL", CUTS // 5)):
        folder = tmp_path / level
        folder.mkdir()
        seed = _seed(folder)
        for number in range(cuts):
            lost[level] += _cut(folder, seed, level, random.Random(number))
    assert lost["FULL"] == 0, lost
    assert lost["NORMAL"] > 0, "a harness that cannot lose anything proves nothing"


def _seed(folder: Path) -> Path:
    """A database with a conversation, closed in order."""
    path = folder / "seed.db"
    with opened_database(path) as database:
        database.write_sync(lambda c: add_conversation(c, make()))
    return path


def _cut(folder: Path, seed: Path, level: str, chance: random.Random) -> int:
    """Write messages until the power goes, perhaps within a commit; returns how many acknowledged ones are gone."""
    work = folder / "work"
    work.mkdir()
    path = work / "hearth.db"
    shutil.copy(seed, path)
    disk = Disk(cut_after=chance.randint(1, 60))
    disk.durable[str(path)] = bytearray(path.read_bytes())
    vfs = PowerCutVFS(f"cut-{level}", disk)
    connection = apsw.Connection(str(path), vfs=f"cut-{level}")
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", level)
    connection.pragma("wal_autocheckpoint", chance.choice([2, 10, 1000]))
    acknowledged: list[str] = []
    for number in range(40):
        name = _say(connection, number, chance)
        if disk.dark:  # nobody was there any more to hear of this one
            break
        acknowledged.append(name)
    found = disk.after_cut(work, chance)
    connection.close()
    vfs.unregister()
    after = apsw.Connection(str(found))
    assert after.pragma("integrity_check") == "ok"
    stored = {row[0] for row in after.execute("SELECT id FROM messages")}
    after.close()
    shutil.rmtree(work)
    return len(set(acknowledged) - stored)


def _say(connection: apsw.Connection, number: int, chance: random.Random) -> str:
    message = NewMessage(
        id=f"m{number}",
        conversation="c1",
        role="user",
        speaker="",
        text="x" * chance.choice([10, 500, 9000]),
        tokens=1,
        redactions=0,
        created_at=1.0,
    )
    connection.execute("BEGIN IMMEDIATE")
    add_message(connection, message)
    connection.execute("COMMIT")
    return message.id
