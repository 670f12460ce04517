"""Two gateways on one PostgreSQL database: one of them killed at random, PostgreSQL restarted, while clients write."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import httpx2
import msgspec
import pytest

from gateway.config.settings import Settings, StoreSettings
from gateway.store.open import make_database
from tests.gateway.memory.forked import Forked, Nursery
from tests.gateway.memory.scripted_server import settings_for
from tests.gateway.memory.test_kills import POLICIES, check
from tests.postgres import Server
from tests.waiting import eventually

WRITERS, CONVERSATIONS = 8, 4
# More by hand: HEARTH_TEST_KILLS=100 python -m pytest tests/gateway/memory/test_several_gateways.py
KILLS = int(os.environ.get("HEARTH_TEST_KILLS", "20"))
_RETRIABLE = {"database_unavailable", "shutting_down"}
# Replies that are no answer to the last message before them, and messages with two replies.
_MIXED = (
    "SELECT count(*) FROM messages AS reply JOIN messages AS other USING (conversation) "
    "WHERE reply.answers IS NOT NULL AND other.seq > reply.answers AND other.seq < reply.seq AND NOT other.failed"
)
_TWICE = (
    "SELECT count(*) FROM (SELECT answers FROM messages WHERE answers IS NOT NULL AND NOT failed "
    "GROUP BY answers HAVING count(*) > 1) AS twice"
)


class Clients:
    """Threads that post to either gateway; a message that was not acknowledged is sent again to any of them."""

    def __init__(self, gateways: list[Forked], conversations: list[str]) -> None:
        self.gateways = gateways
        self.acknowledged: set[str] = set()
        self.seen: Counter[str] = Counter()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(number, conversations[number % len(conversations)]))
            for number in range(WRITERS)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self, number: int, conversation: str) -> None:
        chance, count = random.Random(number), 0
        while not self._stop.is_set():
            name = f"w{number}.{count}"
            if self._post(chance.choice(self.gateways).url, conversation, name):
                count += 1

    def _post(self, url: str, conversation: str, name: str) -> bool:
        """Whether the message is stored, and its reply is there or will not come."""
        body = {"text": f"Ann and Bob said {name} about the weather", "id": name, "stream": True}
        done = False
        try:
            path = f"{url}/v1/conversations/{conversation}/messages"
            with httpx2.stream("POST", path, json=body, timeout=60) as reply:
                event = ""
                for line in reply.iter_lines() if reply.status_code == 200 else ():
                    event = line.removeprefix("event: ") if line.startswith("event: ") else event
                    if event == "accepted":
                        self.acknowledged.add(name)
                    done = done or event == "done"
                    if event == "error" and line.startswith("data: "):
                        self.seen[msgspec.json.decode(line[6:])["error"]["code"]] += 1
                if reply.status_code != 200:
                    code = msgspec.json.decode(reply.read())["error"]["code"]
                    self.seen[code] += 1
                    # It is stored without a reply, and another client has gone on.
                    done = code == "conversation_went_on"
                    if done:
                        self.acknowledged.add(name)
        except httpx2.HTTPError:
            self.seen["connection"] += 1
        return done


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_gateway_of_two_is_killed_at_random(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg", reason="needs hearth[postgres]")
    server = Server("fsync=off")
    url = server.database()
    monkeypatch.setenv("HEARTH_TEST_STORE_URL", url)
    folders = [tmp_path / name / "data" for name in ("a", "b")]
    for folder in folders:
        settings_for(folder, 0)
    nurseries = [Nursery(folder) for folder in folders]
    gateways = [nursery.start() for nursery in nurseries]
    with httpx2.Client(base_url=gateways[0].url) as client:
        conversations = [
            str(client.post("/v1/conversations", json={"policy": POLICIES[n % 4]}).json()["id"])
            for n in range(CONVERSATIONS)
        ]
    chance, clients = random.Random(5), Clients(gateways, conversations)
    began = time.monotonic()
    try:
        for number in range(KILLS):
            wanted = len(clients.acknowledged) + chance.randint(5, 30)
            eventually(lambda wanted=wanted: len(clients.acknowledged) >= wanted, "no message is accepted")  # type: ignore[misc]
            if number == KILLS // 2:
                server.stop("immediate")
                server.start()
                continue
            one = chance.randrange(2)
            gateways[one].end(signal.SIGKILL)
            gateways[one] = nurseries[one].start()
    finally:
        clients.close()
    seconds = time.monotonic() - began
    settings = Settings(data_dir=tmp_path / "c", store=StoreSettings(url=url))
    database = make_database(settings)
    database.open()
    eventually(
        lambda: not database.read_sync(lambda c: c.execute("SELECT count(*) FROM jobs").get), "jobs are left"
    )
    for gateway, nursery in zip(gateways, nurseries, strict=True):
        gateway.end(signal.SIGTERM)
        nursery.close()
    counts = check(folders[0], clients.acknowledged)
    assert database.read_sync(lambda c: (c.execute(_MIXED).get, c.execute(_TWICE).get)) == (0, 0)
    database.close()
    server.remove()
    assert set(clients.seen) <= _RETRIABLE | {"connection", "conversation_went_on"}, clients.seen
    assert counts["summaries"] >= KILLS // 4, counts
    print(
        f"{KILLS} kills in {seconds:.0f} s, {len(clients.acknowledged)} acknowledged, {counts}, {clients.seen}"
    )
