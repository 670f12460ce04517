"""Assistants over HTTP: biography, memory over all their conversations, owners, erasure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.cli.common.files import opened_store
from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.conversations.test_change import live
from tests.gateway.api.conversations.test_conversations import replies, say, start, talker, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(talker)


@pytest.fixture
def remembering(settings: Settings) -> Settings:
    """Three summaries make a reflection of the oldest two."""
    return changed(settings, "memory", facts=False, tasks=False, reflection_after=3, reflection_folds=2)


@pytest.fixture
async def client(remembering: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    async with in_process(remembering, inference) as made:
        yield made


async def make(
    client: Client, name: str, biography: str = "A bard of Ivarstead.", **more: Any
) -> dict[str, Any]:
    reply = await client.post("/v1/assistants", json={"name": name, "biography": biography}, **more)
    assert reply.status_code == 201, reply.text
    return dict(reply.json())


_AGED = {"messages": "created_at", "conversations": "updated_at", "summaries": "to_time"}


def hours_pass(settings: Settings) -> None:
    """Everything so far becomes two hours older, as if by another process."""
    with opened_store(settings) as database:
        for table, column in _AGED.items():
            change = f"UPDATE {table} SET {column} = {column} - 7200"
            database.write_sync(lambda c, change=change: c.execute(change) and None)  # type: ignore[misc]


async def talked(client: Client, settings: Settings, words: str, **fields: Any) -> str:
    """A conversation that has ended and is summarized; ``words`` are in its summary."""
    name = await start(client, **fields)
    await say(client, name, f"Listen, {words} and the lute, the inn, the road and the river. " * 3)
    hours_pass(settings)
    assert (await client.post(f"/v1/conversations/{name}/compact")).status_code == 200
    # Made by this or, a moment before, in the background.
    assert len((await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]) == 1
    return name


async def blocks(client: Client, name: str) -> dict[str, str]:
    context = (await client.get(f"/v1/conversations/{name}/context")).json()
    return {block["name"]: block["text"] for block in context["blocks"]}


async def reflections(client: Client, which: str) -> list[dict[str, Any]]:
    return list((await client.get(f"/v1/assistants/{which}/reflections")).json()["data"])


async def test_a_biography_is_set_edited_and_versioned(client: Client) -> None:
    wendy = await make(client, "Wendy")
    one = f"/v1/assistants/{wendy['id']}"
    assert (wendy["version"], wendy["biography"]) == (1, "A bard of Ivarstead.")
    edited = (await client.patch(one, json={"biography": "A bard of Riften."})).json()
    assert edited["version"] == 2
    assert (await client.patch(one, json={"biography": "A bard of Riften."})).json()["version"] == 2
    renamed = (await client.patch(one, json={"name": "Lynly Star-Sung"})).json()
    assert (renamed["name"], renamed["version"]) == ("Lynly Star-Sung", 2)
    assert (await client.get("/v1/assistants/Lynly Star-Sung")).json() == renamed, "the name will do"
    page = (await client.get(f"{one}/biographies")).json()
    assert [(each["version"], each["text"]) for each in page["data"]] == [
        (2, "A bard of Riften."),
        (1, "A bard of Ivarstead."),
    ]
    assert [each["id"] for each in (await client.get("/v1/assistants")).json()["data"]] == [wendy["id"]]
    name = await start(client, assistant="Lynly Star-Sung")
    assert (await blocks(client, name))["biography"] == "You are Lynly Star-Sung.\nA bard of Riften."
    named = "You are Lynly Star-Sung, a bard."
    assert (await client.patch(one, json={"biography": named})).status_code == 200
    assert (await blocks(client, name))["biography"] == named


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a: b"}, "name"),
        ({"name": "x", "persona": "y"}, "persona"),
    ],
)
async def test_what_is_wrong_with_an_assistant_is_named(
    client: Client, body: dict[str, Any], param: str
) -> None:
    reply = await client.post("/v1/assistants", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_names_are_unique_and_unknown_ones_refused(client: Client) -> None:
    await make(client, "Wendy")
    again = await client.post("/v1/assistants", json={"name": "Wendy"})
    assert (again.status_code, again.json()["error"]["param"]) == (400, "name")
    for body in ({"assistant": "Nobody"}, {"persona": "A bard."}):
        reply = await client.post("/v1/conversations", json=body)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, next(iter(body)))


async def test_conversations_name_their_assistant_and_its_lines_carry_its_name(
    client: Client, remembering: Settings, inference: ScriptedInference
) -> None:
    wendy = await make(client, "Wendy")
    name = await start(client, assistant="Wendy")
    shown = (await client.get(f"/v1/conversations/{name}")).json()
    assert (shown["assistant"], shown["policy"]) == (wendy["id"], "conversations")
    said = await say(client, name, "Who are you?", speaker="Ann")
    assert said["message"]["speaker"] == "Wendy"
    kept = await say(client, name, "I was elsewhere.", role="assistant", reply=False)
    assert kept["accepted"]["speaker"] == "Wendy"
    prompt = text_of(replies(inference)[-1])
    assert "You are Wendy.\nA bard of Ivarstead." in prompt and "Ann: Who are you?" in prompt
    await say(
        client,
        name,
        "The lute is worth 300 septims, and the inn is in Ivarstead by the river. " * 3,
        speaker="Ann",
    )
    hours_pass(remembering)
    await client.post(f"/v1/conversations/{name}/compact")
    summarized = text_of(next(call for call in inference.calls if call.lane == "background"))
    assert "Who are you?" in summarized
    [summary] = await live(client, name)
    assert "Wendy" in summary["text"] or any("Wendy" in pin for pin in summary["pins"])
    other = await start(client)
    patched = await client.patch(f"/v1/conversations/{other}", json={"assistant": "Wendy"})
    assert patched.json()["assistant"] == wendy["id"]
    assert (await say(client, other, "And now?"))["message"]["speaker"] == "Wendy"
    assert (await client.patch(f"/v1/conversations/{other}", json={"assistant": None})).json()[
        "assistant"
    ] is None


async def test_one_memory_over_all_conversations(client: Client, remembering: Settings) -> None:
    await make(client, "Wendy")
    first = await talked(client, remembering, "Rex1 barks", assistant="Wendy", participants=["Ann"])
    await talked(client, remembering, "Rex2 barks", assistant="Wendy", participants=["Bob"])
    now = await start(client, assistant="Wendy", participants=["Cy"])
    elsewhere = (await blocks(client, now))["elsewhere"]
    assert (
        elsewhere.index("with Ann]")
        < elsewhere.index("Rex1")
        < elsewhere.index("with Bob]")
        < elsewhere.index("Rex2")
    )
    assert await reflections(client, "Wendy") == []
    await talked(client, remembering, "Rex3 barks", assistant="Wendy")
    [reflection] = await reflections(client, "Wendy")
    assert reflection["version"] == 1 and "Rex1" in reflection["text"] and "Rex2" in reflection["text"]
    seen = await blocks(client, now)
    assert "Rex1" in seen["reflection"] and "Rex3" in seen["elsewhere"] and "Rex1" not in seen["elsewhere"]
    assert list(seen)[:4] == ["core", "biography", "reflection", "elsewhere"]
    own = (await client.get(f"/v1/conversations/{first}/context")).json()
    assert "conversation" not in [block["name"] for block in own["blocks"]], "the reflection stands for it"
    assert any("reflection" in each["why"] for each in own["left_out"])
    for number in (4, 5):
        await talked(client, remembering, f"Rex{number} barks", assistant="Wendy")
    newest, _ = await reflections(client, "Wendy")
    assert newest["version"] == 2 and all(f"Rex{number}" in newest["text"] for number in (1, 2, 3, 4))


async def test_the_next_conversation_settles_those_before(client: Client, remembering: Settings) -> None:
    """Nobody comes back to a conversation that has ended: it is summarized when another one goes on."""
    await make(client, "Wendy")
    name = await start(client, assistant="Wendy")
    await say(client, name, "My dog is called Rex7, and he likes the inn, the road and the river. " * 3)
    hours_pass(remembering)
    other = await start(client, assistant="Wendy")
    await say(client, other, "Hello")

    async def settled() -> bool:
        return "Rex7" in (await blocks(client, other)).get("elsewhere", "")

    await until(settled)


async def test_participants_choose_who_remembers(client: Client, remembering: Settings) -> None:
    await make(client, "Wendy")
    await make(client, "Odo", biography="A guard.")
    await make(client, "Una", biography="A smith.")
    await talked(client, remembering, "Rex5 barks", assistant="Wendy", participants=["Odo", "Ann"])
    for who, knows in (("Wendy", True), ("Odo", True), ("Una", False)):
        seen = await blocks(client, await start(client, assistant=who))
        assert ("Rex5" in seen.get("elsewhere", "")) is knows, who
    seen = await blocks(client, await start(client))
    assert "elsewhere" not in seen and "biography" not in seen, "without an assistant nothing is shared"


async def test_owners_share_nothing(remembering: Settings, inference: ScriptedInference) -> None:
    keys = {who: {"Authorization": f"Bearer {make_key(remembering, who, 'user')}"} for who in ("ann", "bob")}
    async with in_process(remembering, inference) as client:
        ids = {}
        for who, headers in keys.items():
            client.headers.update(headers)
            ids[who] = (await make(client, "Wendy"))["id"]
            for number in range(3):
                await talked(client, remembering, f"{who.title()}{number} barks", assistant="Wendy")
        for who, other in (("ann", "bob"), ("bob", "ann")):
            client.headers.update(keys[who])
            foreign = await client.post("/v1/conversations", json={"assistant": ids[other]})
            assert (foreign.status_code, foreign.json()["error"]["param"]) == (400, "assistant")
            assert (await client.get(f"/v1/assistants/{ids[other]}/reflections")).status_code == 404
            seen = str(await blocks(client, await start(client, assistant="Wendy")))
            seen += str(await reflections(client, "Wendy"))
            assert f"{who.title()}1" in seen and f"{other.title()}" not in seen


async def test_erasing_a_conversation_takes_its_part_of_the_reflection_along(
    client: Client, remembering: Settings
) -> None:
    await make(client, "Wendy")
    first = await talked(client, remembering, "Xylophon1 barks", assistant="Wendy")
    for number in (2, 3, 4, 5):
        await talked(client, remembering, f"Rex{number} barks", assistant="Wendy")
    now = await start(client, assistant="Wendy")
    await say(client, now, "What do you know?")
    assert len(await reflections(client, "Wendy")) == 2
    assert (await client.delete(f"/v1/conversations/{first}")).status_code == 200
    assert "Xylophon1" not in str(await reflections(client, "Wendy")), "both versions contained it"
    # It has the others' summaries, or a reflection made again in the meantime.
    prompt = str(await blocks(client, now))
    assert all(f"Rex{number}" in prompt for number in (2, 3, 4, 5))
    files = [path for path in remembering.data_dir.iterdir() if path.name.startswith("hearth.db")]
    assert not any(b"Xylophon1" in path.read_bytes() for path in files)


async def test_a_deleted_assistant_leaves_its_conversations(client: Client, remembering: Settings) -> None:
    wendy = await make(client, "Wendy", biography="plays the xylophone of glass")
    names = [await talked(client, remembering, f"Rex{n} barks", assistant="Wendy") for n in (1, 2, 3)]
    await say(client, names[0], "Hello again")
    assert (await client.delete("/v1/assistants/Wendy")).json() == {"id": wendy["id"], "deleted": True}
    shown = (await client.get(f"/v1/conversations/{names[0]}")).json()
    assert shown["assistant"] is None
    assert "Rex1" in (await blocks(client, names[0]))["conversation"], "its summary is in its prompt again"
    assert (await client.get("/v1/assistants/Wendy")).status_code == 404
    files = [path for path in remembering.data_dir.iterdir() if path.name.startswith("hearth.db")]
    assert not any(b"xylophone of glass" in path.read_bytes() for path in files)


async def test_a_failed_round_leaves_the_reflection_too(client: Client, remembering: Settings) -> None:
    await make(client, "Wendy")
    first = await talked(client, remembering, "Rex1 barks", assistant="Wendy")
    for number in (2, 3):
        await talked(client, remembering, f"Rex{number} barks", assistant="Wendy")
    assert "Rex1" in (await reflections(client, "Wendy"))[0]["text"]
    await client.patch(f"/v1/conversations/{first}/rounds/1", json={"failed": True})
    assert "Rex1" not in str(await reflections(client, "Wendy"))


async def test_a_conversation_of_many_episodes_gets_an_assistant_of_its_own(
    client: Client, remembering: Settings
) -> None:
    name = await start(client, policy="conversations")
    for number in range(4):
        await say(client, name, f"Rex{number} barks by the inn, the road and the river. " * 4)
        hours_pass(remembering)
        await client.post(f"/v1/conversations/{name}/compact")
    shown = (await client.get(f"/v1/conversations/{name}")).json()
    [own] = (await client.get("/v1/assistants")).json()["data"]
    assert (own["id"], own["name"], own["biography"]) == (shown["assistant"], "", "")
    seen = await blocks(client, name)
    assert "Rex0" in seen["reflection"] and "Rex3" in seen["conversation"] and "biography" not in seen
    await client.delete(f"/v1/conversations/{name}")
    assert (await client.get("/v1/assistants")).json()["data"] == []
