"""kill -9 of the gateway while clients write: what was acknowledged is there, and nothing is half done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import apsw
import httpx2
import pytest

from gateway.cli.common.files import opened_store
from tests.gateway.memory.forked import Nursery
from tests.gateway.memory.scripted_server import settings_for

ROOT = Path(__file__).parents[3]
CLIENTS = 8
POLICIES = ("ceiling", "rounds", "window", "conversations")
# More by hand: HEARTH_TEST_KILLS=1000 python -m pytest tests/gateway/memory/test_kills.py
KILLS = int(os.environ.get("HEARTH_TEST_KILLS", "40"))


class Gateway:
    """One gateway process, with the seconds that each of its summaries takes."""

    def __init__(self, data_dir: Path, seconds: float = 0.0, port: int = 0) -> None:
        command = [
            sys.executable, "-m", "tests.gateway.memory.scripted_server", str(data_dir), str(port), str(seconds),
        ]  # fmt: skip
        self.log = (data_dir.parent / "log").open("ab")
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self.log)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(b"http"):
                self.url = line.decode().strip()
                break
        else:
            raise AssertionError((data_dir.parent / "log").read_text()[-2000:])
        # The access log goes on and on: somebody has to read it, or the server would wait for room in the pipe.
        self._drain = threading.Thread(target=self.process.stdout.read, daemon=True)
        self._drain.start()

    def end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait()
        self._drain.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


@contextmanager
def writing(url: str, conversations: list[str], acknowledged: set[str]) -> Iterator[list[str]]:
    """Eight clients that post until the server is gone; a message counts once its ``accepted`` event was read.

    What they come back with is why each of them has ended.
    """
    stop = threading.Event()
    ends: list[str] = []

    def write(conversation: str) -> None:
        with httpx2.Client(base_url=url, timeout=20) as client:
            while not stop.is_set():
                name = f"{conversation[:8]}.{time.monotonic_ns()}"
                body = {
                    "text": "Ann and Bob said something about the weather again",
                    "id": name,
                    "stream": True,
                    "speaker": "Ann",
                }
                try:
                    with client.stream(
                        "POST", f"/v1/conversations/{conversation}/messages", json=body
                    ) as reply:
                        for line in reply.iter_lines():
                            if line == "event: accepted":
                                acknowledged.add(name)
                except httpx2.HTTPError as error:
                    ends.append(repr(error))
                    return

    threads = [threading.Thread(target=write, args=(name,)) for name in conversations]
    for thread in threads:
        thread.start()
    try:
        yield ends
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def check(data_dir: Path, acknowledged: set[str]) -> dict[str, int]:
    """Every promise about what is on disk."""
    settings = settings_for(data_dir, 0)
    if settings.store.url:
        with opened_store(settings) as database:
            return database.read_sync(lambda c: _check(c, acknowledged))
    connection = apsw.Connection(str(data_dir / "hearth.db"))
    assert connection.pragma("integrity_check") == "ok"
    assert connection.pragma("foreign_key_check") is None
    counts = _check(connection, acknowledged)
    connection.close()
    return counts


def _check(database: apsw.Connection, acknowledged: set[str]) -> dict[str, int]:
    stored = {row[0] for row in database.execute("SELECT id FROM messages WHERE role = 'user'")}
    assert acknowledged <= stored, f"{len(acknowledged - stored)} acknowledged messages are lost"
    for (conversation,) in list(database.execute("SELECT id FROM conversations")):
        check_chain(database, conversation)
    rows = database.execute(
        "SELECT conversation, kind, count(*) FROM jobs WHERE state = 'waiting' GROUP BY 1, 2 HAVING count(*) > 1"
    )
    assert not list(rows), "a job waits twice"
    return {
        table: database.execute(f"SELECT count(*) FROM {table}").get
        for table in ("messages", "summaries", "jobs")
    }


def check_chain(database: apsw.Connection, conversation: str) -> None:
    """Live spans do not overlap, cover every summarized message, and no message that does not exist."""
    spans = list(
        database.execute(
            "SELECT first, last FROM summaries WHERE conversation = ? AND superseded_by IS NULL "
            "AND level <> 'message' ORDER BY first",
            (conversation,),
        )
    )
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    messages = list(
        database.execute(
            "SELECT seq, summarized_by FROM messages WHERE conversation = ? ORDER BY seq", (conversation,)
        )
    )
    seqs = {seq for seq, _ in messages}
    own = [
        span for span in spans if span[1] >= min(seqs, default=2**63)
    ]  # the others: of what this one continues
    # The first of them may begin in that one, when a summary of it was folded.
    assert all(last in seqs and (first in seqs or first < min(seqs)) for first, last in own)
    covered = {seq for seq in seqs if any(first <= seq <= last for first, last in spans)}
    assert covered == {seq for seq, by in messages if by is not None}
    tail = [seq for seq in seqs if seq not in covered]
    assert not covered or not tail or max(covered) < min(tail)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_nothing_acknowledged_is_lost_when_the_gateway_is_killed(
    tmp_path: Path, store: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store == "postgresql":
        monkeypatch.setenv("HEARTH_TEST_STORE_URL", request.getfixturevalue("postgres_server").database())
    kills = KILLS if store == "sqlite" or "HEARTH_TEST_KILLS" in os.environ else KILLS // 4
    data_dir = tmp_path / "data"
    settings_for(data_dir, 0)
    chance = random.Random(4)
    acknowledged: set[str] = set()
    nursery = Nursery(data_dir)
    gateway = nursery.start()
    with httpx2.Client(base_url=gateway.url) as client:
        conversations = [
            str(client.post("/v1/conversations", json={"policy": POLICIES[n % 4]}).json()["id"])
            for n in range(CLIENTS)
        ]
    for number in range(kills):
        with writing(gateway.url, conversations, acknowledged) as ends:
            wanted = len(acknowledged) + chance.randint(0, 30)
            if not _await(acknowledged, wanted):
                gateway.show_stacks()
                time.sleep(1.0)
                log = (tmp_path / "log").read_text()[-6000:]
                gateway.end(signal.SIGKILL)
                raise AssertionError(f"no more messages are taken; clients: {ends}; {log}")
            time.sleep(chance.uniform(0.0, 0.05))
            gateway.end(signal.SIGKILL)
        if number % 10 == 0:
            print(number, check(data_dir, acknowledged), flush=True)
        gateway = nursery.start()
    _settle(data_dir)
    gateway.end(signal.SIGTERM)
    nursery.close()
    counts = check(data_dir, acknowledged)
    assert counts["summaries"] >= kills // 4 and counts["jobs"] == 0, counts
    print(f"{kills} kills, {len(acknowledged)} acknowledged messages, {counts}")


def _await(acknowledged: set[str], count: int) -> bool:
    """Whether ``count`` messages are acknowledged within a minute, which even a slow machine manages."""
    for _ in range(6000):
        if len(acknowledged) >= count:
            return True
        time.sleep(0.01)
    return False


def _settle(data_dir: Path) -> None:
    """Wait until the worker has done all that the killed ones left."""
    for _ in range(600):
        if not check(data_dir, set())["jobs"]:
            break
        time.sleep(0.1)
