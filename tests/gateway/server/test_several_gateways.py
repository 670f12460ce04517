"""Two gateways on one PostgreSQL database: one of them killed at random, PostgreSQL restarted, while clients write."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx2
import msgspec
import pytest

from gateway.config.settings import Settings, StoreSettings
from gateway.store.keys import create_key
from gateway.store.open import make_database
from tests.deploy.proxy import Proxy, balanced, free_port, proxy
from tests.gateway.memory.forked import Nursery
from tests.gateway.memory.scripted_server import settings_for
from tests.gateway.memory.test_kills import POLICIES, check
from tests.postgres import Server
from tests.waiting import eventually

WRITERS, CONVERSATIONS = 8, 4
# More by hand: HEARTH_TEST_KILLS=100 python -m pytest tests/gateway/memory/test_several_gateways.py
KILLS = int(os.environ.get("HEARTH_TEST_KILLS", "12"))
_RETRIABLE = {"database_unavailable", "shutting_down"}
# What nginx says, in the envelope of the gateway: that of a gateway that was killed, and of its limits.
_BY_NGINX = {"unavailable", "rate_limited"}
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
    """Threads that post; a message that was not acknowledged is sent again. ``connect`` makes a client for each try."""

    def __init__(self, connect: Callable[[random.Random], httpx2.Client], conversations: list[str]) -> None:
        self._connect = connect
        self.acknowledged: set[str] = set()
        self.seen: Counter[str] = Counter()
        self.away: list[float] = []  # when nginx had no gateway for a request
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
            with self._connect(chance) as client:
                count += self._post(client, conversation, name)

    def _post(self, client: httpx2.Client, conversation: str, name: str) -> bool:
        """Whether the message is stored, and its reply is there or will not come."""
        body = {"text": f"Ann and Bob said {name} about the weather", "id": name, "stream": True}
        done = False
        try:
            path = f"/v1/conversations/{conversation}/messages"
            with client.stream("POST", path, json=body) as reply:
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
                    if code in _BY_NGINX:
                        self.away += [time.monotonic()] if code == "unavailable" else []
                        time.sleep(0.05)
                    # It is stored without a reply, and another client has gone on.
                    done = code == "conversation_went_on"
                    if done:
                        self.acknowledged.add(name)
        except httpx2.HTTPError:
            self.seen["connection"] += 1
        return done


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", ["direct", "nginx"])
def test_a_gateway_of_two_is_killed_at_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    pytest.importorskip("psycopg", reason="needs hearth[postgres]")
    with ExitStack() as stack:
        _kill_at_random(tmp_path, monkeypatch, stack, behind=way == "nginx")


def _kill_at_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack, *, behind: bool
) -> None:
    server = Server("fsync=off")
    stack.callback(server.remove)
    url = server.database()
    monkeypatch.setenv("HEARTH_TEST_STORE_URL", url)
    folders = [tmp_path / name / "data" for name in ("a", "b")]
    ports = [free_port() if behind else 0 for _ in folders]  # nginx knows two addresses
    for folder in folders:
        settings_for(folder, 0)
    settings = Settings(data_dir=tmp_path / "c", store=StoreSettings(url=url))
    database = make_database(settings)
    database.open()
    stack.callback(database.close)
    nurseries = [Nursery(folder, port) for folder, port in zip(folders, ports, strict=True)]
    gateways = [nursery.start() for nursery in nurseries]
    front: Proxy | None = None
    if behind:
        block = balanced(*(gateway.url for gateway in gateways))
        front = stack.enter_context(proxy(tmp_path / "nginx", gateways[0].url, block))
        made = (
            database.write_sync(lambda c, n=n: create_key(c, f"k{n}", "user", "one")) for n in range(WRITERS)
        )
        keys = [token for _, token in made]

    def connect(chance: random.Random) -> httpx2.Client:
        """To one of the gateways; behind nginx with one of the keys, from some address."""
        if front is None:
            return httpx2.Client(base_url=chance.choice(gateways).url, timeout=60)
        client = front.client(f"127.0.0.{chance.randrange(10, 250)}")
        client.headers["Authorization"] = f"Bearer {chance.choice(keys)}"
        return client

    chance = random.Random(5)
    with connect(chance) as client:
        conversations = [
            str(client.post("/v1/conversations", json={"policy": POLICIES[n % 4]}).json()["id"])
            for n in range(CONVERSATIONS)
        ]
    clients = Clients(connect, conversations)
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
    eventually(
        lambda: not database.read_sync(lambda c: c.execute("SELECT count(*) FROM jobs").get), "jobs are left"
    )
    for gateway, nursery in zip(gateways, nurseries, strict=True):
        gateway.end(signal.SIGTERM)
        nursery.close()
    counts = check(folders[0], clients.acknowledged)
    assert database.read_sync(lambda c: (c.execute(_MIXED).get, c.execute(_TWICE).get)) == (0, 0)
    expected = _RETRIABLE | {"connection", "conversation_went_on"} | (_BY_NGINX if behind else set())
    assert set(clients.seen) <= expected, clients.seen
    assert counts["summaries"] >= KILLS // 4, counts
    print(
        f"{KILLS} kills in {seconds:.0f} s, {len(clients.acknowledged)} acknowledged, {counts}, {clients.seen}"
    )
    if front is not None:
        pauses = len({int(10 * moment) for moment in clients.away}) / 10
        none = front.errors().count("no live upstreams")
        print(f"nginx: {none} requests found both left out; clients were refused in {pauses:.1f} s")
