"""The gateway is killed in the middle of a compaction: the next one does it, once, and nothing reads differently."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import apsw
import httpx2

from tests.gateway.memory.scripted_server import settings_for
from tests.gateway.memory.test_kills import Gateway, check
from tests.waiting import eventually


def log_of(client: httpx2.Client, name: str) -> list[tuple[Any, ...]]:
    rows = client.get(f"/v1/conversations/{name}/messages?limit=200").json()["data"]
    return [(row["seq"], row["id"], row["role"], row["text"], row["round"], row["failed"]) for row in rows]


def query(data_dir: Path, sql: str) -> list[Any]:
    database = apsw.Connection(str(data_dir / "hearth.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(database.execute(sql))
    finally:
        database.close()


def test_a_compaction_that_was_killed_is_done_once_by_the_next_process(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    settings_for(data_dir, 0)
    gateway = Gateway(data_dir, seconds=3600)
    running = "SELECT 1 FROM jobs WHERE kind = 'compact' AND state = 'running'"
    try:
        with httpx2.Client(base_url=gateway.url, timeout=20) as client:
            name = client.post("/v1/conversations", json={}).json()["id"]
            queued = False
            for number in range(100):
                body = {"text": f"I have {number % 7 + 10} apples " * 5, "id": f"line{number}"}
                said = client.post(f"/v1/conversations/{name}/messages", json=body).json()
                if queued := said["compaction"] == "queued":
                    break
            assert queued
            eventually(lambda: query(data_dir, running), "the compaction does not begin")
            before = log_of(client, name)
    finally:
        gateway.end(signal.SIGKILL)
    assert query(data_dir, "SELECT * FROM summaries") == [], "killed before it was done"
    gateway = Gateway(data_dir)
    try:
        with httpx2.Client(base_url=gateway.url, timeout=20) as client:
            eventually(lambda: not query(data_dir, "SELECT * FROM jobs"), "jobs are left")
            assert log_of(client, name) == before
            [summary] = client.get(f"/v1/conversations/{name}/summaries").json()["data"]
            context = client.get(f"/v1/conversations/{name}/context").json()
            names = [
                block["name"]
                for block in context["blocks"]
                if block["name"] not in ("facts", "recalled", "history")
            ]
            assert names == ["core", "now", "messages"]
            body = {"text": "Go on.", "id": "line0000"}
            said = client.post(f"/v1/conversations/{name}/messages", json=body).json()
            assert said["message"]["text"] == "So be it."
    finally:
        gateway.end(signal.SIGTERM)
    acknowledged = {row[1] for row in before if row[2] == "user"} | {"line0000"}
    assert check(data_dir, acknowledged)["summaries"] == 1
    assert summary["first"] == before[0][0]
