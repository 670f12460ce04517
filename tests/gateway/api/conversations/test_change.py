"""PATCH /v1/conversations/{id}: what may be changed, when it holds, and what becomes of summaries."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.conversations.test_conversations import replies, say, start, talker, text_of
from tests.gateway.api.scripted import ScriptedInference


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(talker)


async def patch(client: Client, name: str, **fields: Any) -> Any:
    return await client.patch(f"/v1/conversations/{name}", json=fields)


async def test_fields_change_and_the_next_prompt_has_them(
    client: Client, inference: ScriptedInference
) -> None:
    name = await start(client, title="Trains", instructions="Be brief.")
    await say(client, name, "Hello")
    reply = await patch(client, name, title="Buses", instructions="Rhyme.", time_zone="Asia/Ho_Chi_Minh")
    assert reply.status_code == 200, reply.text
    shown = (await client.get(f"/v1/conversations/{name}")).json()
    assert shown == reply.json()
    assert (shown["title"], shown["time_zone"], shown["policy"]) == ("Buses", "Asia/Ho_Chi_Minh", "ceiling")
    await say(client, name, "Hello again")
    prompt = text_of(replies(inference)[-1])
    assert "Rhyme." in prompt and "Be brief." not in prompt


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"titel": "x"}, "titel"),
        ({"owner": "x"}, "owner"),
        ({"policy": "never"}, "policy"),
        ({"kind": "novel"}, "kind"),
        ({"title": None}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
    ],
)
async def test_what_cannot_be_changed_is_named(client: Client, fields: dict[str, Any], param: str) -> None:
    name = await start(client, title="Trains")
    reply = await client.patch(f"/v1/conversations/{name}", json={"instructions": "No.", **fields})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param), error
    assert (await client.get(f"/v1/conversations/{name}")).json()["instructions"] == "", "all or nothing"


async def test_secrets_in_a_new_title_are_redacted_and_counted(client: Client) -> None:
    name = await start(client)
    shown = (await patch(client, name, title="my token is ghp_" + "a1B2" * 9)).json()
    assert "ghp_" not in shown["title"] and shown["redactions"] == 1


async def test_summaries_outlive_their_policy(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "memory", facts=False, tasks=False)
    async with in_process(settings, inference) as client:
        name = await start(client, policy="rounds")
        for number in range(6):
            await say(client, name, f"Apple number {number} is on shelf {number + 40}, says Bob. " * 3)
        await client.post(f"/v1/conversations/{name}/compact")
        [before] = await live(client, name)
        assert before["level"] == "round"
        for policy, level in (("window", "conversation"), ("ceiling", "month"), ("rounds", "round")):
            last = (await live(client, name))[-1]
            assert (await patch(client, name, policy=policy)).status_code == 200
            assert (await live(client, name))[-1] == last, "the change itself touches no summary"
            for number in range(12):
                await say(client, name, f"Pear {policy} {number} is on shelf {number + 60}, says Ann. " * 3)
            await client.post(f"/v1/conversations/{name}/compact")
            levels = [each["level"] for each in await live(client, name)]
            assert levels[0] == level, f"{policy}: the old summary is folded into {levels}"
            spans = [(each["first"], each["last"]) for each in await live(client, name)]
            assert spans[0][0] == before["first"] and all(a[1] < b[0] for a, b in pairwise(spans))


async def live(client: Client, name: str) -> list[dict[str, Any]]:
    """The live summaries, oldest first."""
    page = (await client.get(f"/v1/conversations/{name}/summaries?limit=100")).json()["data"]
    return sorted((each for each in page if each["superseded_by"] is None), key=lambda each: each["first"])


@pytest.mark.parametrize("kind", ["chat", "code", "channel"])
async def test_speakers_are_named_in_every_kind(
    settings: Settings, inference: ScriptedInference, kind: str
) -> None:
    async with in_process(changed(settings, "memory", facts=False, tasks=False), inference) as client:
        name = await start(client, kind=kind, policy="rounds")
        for number in range(8):
            said = await say(
                client, name, f"Shelf {number} has apples and pears.", speaker=f"Ann{number % 2}"
            )
            assert said["accepted"]["text"].startswith("Shelf")
        prompt = text_of(replies(inference)[-1])
        assert "Ann1: Shelf 7 has" in prompt and "So be it." in prompt and "\n: So be it." not in prompt
        await client.post(f"/v1/conversations/{name}/compact")
        [summary] = await live(client, name)
        assert "Ann0" in summary["text"] and "Ann1" in summary["text"]
