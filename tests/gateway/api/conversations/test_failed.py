"""Failed messages and rounds stay out of prompts and summaries, with their variables; rounds are numbered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.conversations.test_change import live
from tests.gateway.api.conversations.test_conversations import replies, say, start, text_of
from tests.gateway.api.scripted import ScriptedInference


def coder(call: GenerateCall) -> list[str]:
    """Replies with code of their own variable; no summary of it can be read."""
    if call.lane != "interactive":
        return ["{no"]
    number = text_of(call).rpartition("number ")[2].partition(" ")[0]
    return [f"Done:\n```python\nvalue_{number} = compute_{number}()\n```"]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(coder)


@pytest.fixture
async def coding(settings: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    async with in_process(changed(settings, "memory", facts=False, tasks=False), inference) as client:
        yield client


async def rounds(client: Client, name: str, **query: Any) -> dict[str, Any]:
    reply = await client.get(f"/v1/conversations/{name}/rounds", params=query)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def mark(client: Client, name: str, part: str, failed: bool = True) -> dict[str, Any]:
    reply = await client.patch(f"/v1/conversations/{name}/{part}", json={"failed": failed})
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def spoken(client: Client, name: str) -> str:
    context = (await client.get(f"/v1/conversations/{name}/context")).json()
    return "\n".join(block["text"] for block in context["blocks"])


async def talk(client: Client, name: str, count: int, first: int = 1) -> None:
    for number in range(first, first + count):
        await say(client, name, f"Please compute number {number} for the table of Ann.")


async def variables(client: Client, name: str) -> set[str]:
    [summary] = await live(client, name)
    return {each["name"] for each in msgspec.json.decode(summary["text"])["Variables"]}


async def test_rounds_are_numbered_and_paged(coding: Client) -> None:
    name = await start(coding, kind="code")
    await talk(coding, name, 3)
    page = await rounds(coding, name, limit=2)
    assert [each["round"] for each in page["data"]] == [2, 3] and page["next"] == 2
    assert [each["role"] for each in page["data"][0]["messages"]] == ["user", "assistant"]
    page = await rounds(coding, name, limit=2, before=page["next"])
    assert [(each["round"], each["failed"], each["summarized"]) for each in page["data"]] == [
        (1, False, False)
    ]


async def test_variables_are_made_whatever_the_model_writes_and_failed_ones_stay_out(coding: Client) -> None:
    name = await start(coding, kind="code")
    await talk(coding, name, 2)
    failed = await mark(coding, name, "rounds/2")
    assert failed["failed"] and all(each["failed"] for each in failed["messages"])
    assert "number 2" not in await spoken(coding, name) and "number 1" in await spoken(coding, name)
    await talk(coding, name, 6, first=3)
    await coding.post(f"/v1/conversations/{name}/compact")
    [summary] = await live(coding, name)
    assert summary["prompt_name"] == "extract" and "```" not in summary["text"]
    known = await variables(coding, name)
    assert "value_1" in known and not known & {"value_2", "compute_1"}
    assert "Variables:\nvalue_1 (compute_1(…)): round 1:" in await spoken(coding, name)


async def test_a_mark_reaches_what_is_summarized_already_and_can_be_taken_back(coding: Client) -> None:
    name = await start(coding, kind="code")
    await talk(coding, name, 6)
    await coding.post(f"/v1/conversations/{name}/compact")
    before = await variables(coding, name)
    assert {"value_1", "value_2"} <= before
    reply = (await rounds(coding, name))["data"][0]["messages"][1]
    assert reply["summarized"]
    marked = await mark(coding, name, f"messages/{reply['id']}")
    assert (marked["failed"], marked["summarized"]) == (True, False)
    await coding.post(f"/v1/conversations/{name}/compact")
    assert await variables(coding, name) == before - {"value_1"}
    assert "number 1" in await spoken(coding, name), "the question did not fail"
    await mark(coding, name, f"messages/{reply['id']}", failed=False)
    await coding.post(f"/v1/conversations/{name}/compact")
    assert await variables(coding, name) == before


async def test_a_failed_message_is_stored_without_a_reply(
    coding: Client, inference: ScriptedInference
) -> None:
    name = await start(coding, kind="code")
    said = await say(coding, name, "Please run it.", id="m1")
    kept = await say(coding, name, "NameError: value_9", reply=False, failed=True, role="assistant")
    assert kept["accepted"]["failed"]
    await say(coding, name, "Please go on.")
    assert "value_9" not in text_of(replies(inference)[-1])
    wrong = await coding.post(f"/v1/conversations/{name}/messages", json={"text": "x", "failed": True})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "failed")
    await mark(coding, name, "messages/m1")
    again = await coding.post(
        f"/v1/conversations/{name}/messages", json={"text": "Please run it.", "id": "m1"}
    )
    assert again.status_code == 200 and again.json()["message"]["id"] == said["message"]["id"]


async def test_a_failed_reply_is_replaced_by_sending_the_message_again(coding: Client) -> None:
    name = await start(coding, kind="code")
    said = await say(coding, name, "Please run it.", id="m1")
    await mark(coding, name, f"messages/{said['message']['id']}")
    again = await say(coding, name, "Please run it.", id="m1")
    assert again["message"]["id"] != said["message"]["id"] and again["accepted"]["id"] == "m1"
    await mark(coding, name, "rounds/1")
    refused = await coding.post(
        f"/v1/conversations/{name}/messages", json={"text": "Please run it.", "id": "m1"}
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conversation_went_on")


@pytest.mark.parametrize("part", ["rounds/9", "rounds/0", "rounds/-1", "rounds/one", "messages/none"])
async def test_what_is_not_there_is_named(coding: Client, part: str) -> None:
    name = await start(coding, kind="code")
    await talk(coding, name, 1)
    reply = await coding.patch(f"/v1/conversations/{name}/{part}", json={"failed": True})
    kind, _, which = part.partition("/")
    assert (reply.status_code, reply.json()["error"]["param"]) == (404, kind.removesuffix("s"))
    assert which in reply.json()["error"]["message"]
    wrong = await coding.patch(f"/v1/conversations/{name}/{part}", json={"failed": True, "why": "x"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "why")
