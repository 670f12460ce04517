"""Secrets are redacted before anything is stored, and counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.conversations.test_conversations import say, start
from tests.gateway.api.scripted import ScriptedInference

SECRET = "hk_" + "aB3x" * 11


def learner(call: Any) -> list[str]:
    return ["So be it, ", SECRET]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(learner)


def stored(data: Path) -> bytes:
    return b"".join(path.read_bytes() for path in data.glob("hearth.db*"))


async def test_every_kind_of_row_counts_its_secrets(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(settings, inference) as client:
        name = await start(client, kind="channel", title=f"on {SECRET}", participants=["Ann", SECRET])
        assert (await client.get(f"/v1/conversations/{name}")).json()["redactions"] == 2
        said = await say(client, name, f"my keys are {SECRET} and {SECRET}", speaker=f"Ann {SECRET}")
        assert said["accepted"]["redactions"] == 3 and said["accepted"]["speaker"] == "Ann [redacted]"
        assert said["message"]["redactions"] == 1
        fact = (await client.post("/v1/facts", json={"key": "key", "text": f"It is {SECRET}."})).json()
        assert (fact["text"], fact["redactions"]) == ("It is [redacted].", 1)
        body = {"title": f"Rotate {SECRET}", "tool": {"name": "t", "arguments": {"a": [SECRET]}}}
        task = (await client.post("/v1/tasks", json=body)).json()
        assert (task["title"], task["redactions"]) == ("Rotate [redacted]", 2)
        changed = await client.patch(f"/v1/tasks/{task['id']}", json={"title": f"Revoke {SECRET}"})
        assert changed.json()["redactions"] == 3
        assert not any(SECRET in str(call) for call in inference.calls), "the model does not see it either"
    assert SECRET.encode() not in stored(settings.data_dir)


async def test_texts_without_secrets_count_none(client: Client) -> None:
    name = await start(client, title="Trains")
    assert (await client.get(f"/v1/conversations/{name}")).json()["redactions"] == 0
