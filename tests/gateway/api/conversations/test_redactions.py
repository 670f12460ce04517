"""Secrets are redacted before anything is stored, and counted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.conversations.test_conversations import replies, say, start, text_of
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
        assert sum(SECRET in str(call) for call in inference.calls) == 1, (
            "the model sees it for its reply alone"
        )
    assert SECRET.encode() not in stored(settings.data_dir)


async def test_texts_without_secrets_count_none(client: Client) -> None:
    name = await start(client, title="Trains")
    assert (await client.get(f"/v1/conversations/{name}")).json()["redactions"] == 0


PASSWORD = "the wifi password is Tulpe-4471-gruen"
VALUE = "Tulpe-4471-gruen"


def echo(call: Any) -> list[str]:
    """Replies with the secret, if the model was told it."""
    return [f"Fine, I use {VALUE}." if VALUE in text_of(call) else "So be it."]


def prompts(inference: ScriptedInference) -> list[bool]:
    """For each reply: whether its prompt had the value."""
    return [VALUE in text_of(call) for call in replies(inference)]


async def test_the_reply_may_use_a_secret_once_and_nothing_writes_it(settings: Settings) -> None:
    inference = ScriptedInference(echo)
    async with in_process(settings, inference) as client:
        name = await start(client)
        said = await say(client, name, f"Remember, {PASSWORD}, ok?")
        assert said["redacted"] == [{"kind": "password said in a sentence", "count": 1}]
        assert said["accepted"]["text"] == "Remember, the wifi password is [redacted], ok?"
        assert said["message"]["text"] == "Fine, I use [redacted]." and said["message"]["redactions"] == 1
        again = await say(client, name, "And now?")
        assert again["redacted"] == [] and prompts(inference) == [True, False]
        [once] = {call.owner for call in replies(inference) if VALUE in text_of(call)}
        assert once != "local" and inference.forgotten[:2] == [once, once]
        assert VALUE.encode() not in stored(settings.data_dir)


async def test_a_small_model_reads_what_is_stored_and_need_not_read_its_prompt_anew(
    settings: Settings,
) -> None:
    inference = ScriptedInference(echo)
    async with in_process(changed(settings, "model", name="hearth-demo"), inference) as client:
        name = await start(client)
        unstored = "Passwords and other secrets are not stored."
        assert (await say(client, name, f"{PASSWORD[0].upper()}{PASSWORD[1:]}"))["message"][
            "text"
        ] == unstored
        assert not replies(inference)
        said = await say(client, name, f"Remember, {PASSWORD}. The router is new. What is a router?")
        assert said["message"]["text"] == f"So be it.\n\n{unstored}"
        assert {call.owner for call in replies(inference)} == {inference.calls[0].owner}
        asked = await say(client, name, "what's the wifi password?")
        assert asked["message"]["text"].splitlines() == [
            "You told me: “The wifi password is [redacted]”",
            unstored,
        ]
    assert prompts(inference) == [False]


async def test_keep_undoes_it_for_that_message(settings: Settings) -> None:
    inference = ScriptedInference(echo)
    async with in_process(settings, inference) as client:
        name = await start(client)
        await say(client, name, PASSWORD, id="m1")
        await say(client, name, f"For guests {PASSWORD}.", id="m2")
        keep = f"/v1/conversations/{name}/keep"
        kept = (await client.post(keep)).json()
        assert (kept["id"], kept["text"], kept["redactions"]) == ("m2", f"For guests {PASSWORD}.", 0)
        assert (await client.post(keep, json={"message": "m1"})).json()["text"] == PASSWORD
        await say(client, name, "And now?")
        assert prompts(inference)[-1]
        for body in ({}, {"message": "m1"}, {"message": "m9"}):
            gone = await client.post(keep, json=body)
            assert (gone.status_code, gone.json()["error"]["code"]) == (410, "secrets_gone")
        found = await client.get("/v1/conversations/search", params={"q": VALUE})
        assert len(found.json()["data"]) == 3  # the two messages, and the last reply


async def test_a_secret_is_not_held_longer_nor_for_others(settings: Settings) -> None:
    inference = ScriptedInference(echo)
    async with in_process(changed(settings, "memory", keep_seconds=2), inference) as client:
        name, other = await start(client), await start(client)
        await say(client, name, PASSWORD, id="m1", reply=False)
        assert (await client.post(f"/v1/conversations/{other}/keep")).status_code == 410
        wrong = await client.post(f"/v1/conversations/{name}/keep", json={"message": "m2"})
        assert wrong.status_code == 410 and "Send the message again" in wrong.text
        await asyncio.sleep(2)  # timers fire in order, and this one follows that of the secret
        assert (await client.post(f"/v1/conversations/{name}/keep")).status_code == 410
        again = await say(client, name, PASSWORD, id="m1", reply=False)  # the same message: held again
        assert again["redacted"]
        assert (await client.post(f"/v1/conversations/{name}/keep")).json()["text"] == PASSWORD
    async with in_process(changed(settings, "memory", keep_seconds=0), inference) as client:
        name = await start(client, participants=["Bob"])  # the kept message is recalled for the others
        await say(client, name, PASSWORD)
        assert not prompts(inference)[-1]
        assert (await client.post(f"/v1/conversations/{name}/keep")).status_code == 410


@pytest.mark.parametrize("reply", [False, True])
async def test_a_message_that_answers_a_question_for_a_secret_is_redacted(
    settings: Settings, inference: ScriptedInference, reply: bool
) -> None:
    """Also behind the assistant's reply to the question, which asks nothing."""
    async with in_process(settings, inference) as client:
        name = await start(client)
        await say(client, name, "the router?", reply=reply)
        for _ in range(2):  # sent again, it is the same message
            told = await say(client, name, "bluewhale42", id="told", reply=False)
            assert told["accepted"]["text"] == "[redacted]"
        await say(client, name, "thanks", reply=False)
        await say(client, name, "see you", reply=False)
        other = await say(client, name, "bluewhale43", reply=False)
        assert other["accepted"]["redactions"] == 0, "the messages before ask for nothing"
    assert b"bluewhale42" not in stored(settings.data_dir)
