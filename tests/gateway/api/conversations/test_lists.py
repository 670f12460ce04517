"""Paging of conversations and tasks, redacted fields, and a change of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from gateway.config.settings import ModelSettings, Settings
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.conversations.test_conversations import say, start, talker
from tests.gateway.api.scripted import ScriptedInference

SECRET = "sk-abcdefghijklmnopqrstuvwxyz123456"


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(talker)


async def every(client: Client, path: str, limit: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    while True:
        page = (await client.get(path, params={"limit": limit, **before})).json()
        assert len(page["data"]) <= limit
        found += page["data"]
        if page["next"] is None:
            return found
        before = {"before": page["next"]}


async def test_conversations_of_one_moment_are_all_listed(client: Client, settings: Settings) -> None:
    """Conversations imported without a time all have the same one."""
    names = {await start(client) for _ in range(7)}
    database = apsw.Connection(str(settings.data_dir / "hearth.db"))
    database.execute("UPDATE conversations SET updated_at = 0.0")
    database.close()
    found = await every(client, "/v1/conversations", 2)
    assert len(found) == 7 and {row["id"] for row in found} == names
    for wrong in ("x", "x~y", "~"):
        reply = await client.get("/v1/conversations", params={"before": wrong})
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "before")


async def test_tasks_are_all_listed_in_the_order_of_their_numbers(client: Client) -> None:
    for day in ("2026-11-20", "2026-11-21"):
        task = (await client.post("/v1/tasks", json={"title": "pack", "day": day})).json()
        for number in range(11):
            item = {"title": f"box {number}", "level": "checklist", "parent": task["id"]}
            assert (await client.post("/v1/tasks", json=item)).json()["day"] == day, (
                "an item is of its task's day"
            )
        await client.post("/v1/tasks", json={"title": "rest", "day": day})
    found = [row["id"] for row in await every(client, "/v1/tasks", 3)]
    assert found[:4] == ["T-20261121-01", "T-20261121-01.c1", "T-20261121-01.c2", "T-20261121-01.c3"]
    assert found[11:14] == ["T-20261121-01.c11", "T-20261121-02", "T-20261120-01"]
    assert len(found) == len(set(found)) == 26
    moved = await client.patch("/v1/tasks/T-20261120-01", json={"day": "2026-12-01"})
    assert moved.json()["day"] == "2026-12-01"
    assert len((await client.get("/v1/tasks?day=2026-12-01&limit=200")).json()["data"]) == 12
    refused = await client.patch("/v1/tasks/T-20261120-01.c1", json={"day": "2026-12-02"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "day")


async def test_no_field_keeps_a_secret(client: Client, settings: Settings) -> None:
    made = await client.post(
        "/v1/conversations",
        json={"title": SECRET, "instructions": f"use {SECRET}", "participants": [SECRET]},
    )
    assert made.json()["instructions"] == "use [redacted]"
    said = await say(client, made.json()["id"], "hi", speaker=SECRET)
    assert said["accepted"]["redactions"] == 1
    tool = {"name": "call", "arguments": {"key": [SECRET]}}
    task = (await client.post("/v1/tasks", json={"title": f"use {SECRET}"})).json()
    item = {"title": "x", "level": "checklist", "parent": task["id"], "tool": tool, "question": SECRET}
    assert (await client.post("/v1/tasks", json=item)).json()["tool"]["arguments"] == {"key": ["[redacted]"]}
    await client.patch(f"/v1/tasks/{task['id']}", json={"title": SECRET})
    files = [path for path in settings.data_dir.iterdir() if path.name.startswith("hearth.db")]
    assert not any(SECRET.encode() in path.read_bytes() for path in files)


class Counting(ScriptedInference):
    """Another tokenizer: ten tokens a word."""

    async def count(self, texts: list[str], **options: Any) -> list[int]:
        return [10 * len(text.split()) for text in texts]


async def test_another_model_counts_again(
    settings: Settings, inference: ScriptedInference, tmp_path: Path
) -> None:
    async with in_process(settings, inference) as client:
        name = await start(client)
        await say(client, name, "one two three")
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    other = msgspec.structs.replace(settings, model=ModelSettings(name=str(tmp_path / "other.gguf")))
    async with in_process(other, Counting(talker)) as client:
        await client.get(f"/v1/conversations/{name}/context")
        log = (await client.get(f"/v1/conversations/{name}/messages")).json()["data"]
        assert [row["tokens"] for row in log] == [30, 30]
        assert (await client.get(f"/v1/conversations/{name}")).json()["model"] == "other"
