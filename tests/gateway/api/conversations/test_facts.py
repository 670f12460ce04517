"""Facts over HTTP: learned from messages, put into prompts, corrected, deleted, restored."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.base.resources import bundled
from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall, HostHealth
from gateway.inference.speed import Speed
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.conversations.test_conversations import say, start, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

PROPOSED = [
    {"op": "add", "key": "home_city", "text": "Lives in Huế.", "quote": "I live in Huế", "reason": "said so"},
    {
        "op": "add",
        "key": "bicycle",
        "text": "Has a bicycle.",
        "quote": "you have a bicycle",
        "reason": "invented",
    },
]


def learner(call: GenerateCall) -> list[str]:
    """Always proposes the same facts, of which the assistant said one."""
    if "list facts worth remembering" in text_of(call):
        return [msgspec.json.encode(PROPOSED).decode()]
    return ["I think ", "you have a bicycle."]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(learner)


async def facts(client: Client, want: int) -> list[dict[str, Any]]:
    async def found() -> list[dict[str, Any]]:
        rows = list((await client.get("/v1/facts")).json()["data"])
        return rows if len(rows) >= want else []

    return await until(found, "no fact was learned")


async def test_facts_are_used_in_other_conversations(client: Client, inference: ScriptedInference) -> None:
    name = await start(client)
    await say(client, name, "Hello, I live in Huế.")
    [learned] = await facts(client, 1)
    assert (learned["key"], learned["conversation"], learned["quote"]) == ("home_city", name, "I live in Huế")
    other = await start(client)
    said = await say(client, other, "Where am I?")
    assert said["budget"]["blocks"]["facts"] > 0
    reply = next(call for call in reversed(inference.calls) if call.lane == "interactive")
    assert "home_city: The user lives in Huế." in text_of(reply)


async def known(client: Client) -> dict[str, str]:
    return {each["key"]: each["text"] for each in (await client.get("/v1/facts")).json()["data"]}


async def test_plain_statements_need_no_model(client: Client, inference: ScriptedInference) -> None:
    """They are there with the message that states them, and later messages correct and deny them."""
    inference.script = lambda call: ["[]" if call.lane == "background" else "I see."]
    name = await start(client)
    await say(
        client, name, "My name is Linh, I live in Rome and I'm allergic to peanuts. Remind me to pay rent."
    )
    assert await known(client) == {
        "name": "The user's name is Linh.",
        "home_city": "The user lives in Rome.",
        "allergy: peanuts": "The user is allergic to peanuts.",
    }
    prompt = text_of([call for call in inference.calls if call.lane == "interactive"][-1])
    assert "The user lives in Rome." in prompt and "Pay rent" in prompt
    await say(client, name, "I moved to Turin. Paid the rent!")
    await say(client, await start(client), "I'm not allergic to peanuts after all")
    assert await known(client) == {
        "name": "The user's name is Linh.",
        "home_city": "The user moved to Turin.",
    }
    [task] = (await client.get("/v1/tasks?day=today")).json()["data"]
    assert (task["title"], task["state"]) == ("Pay rent", "done")


async def test_a_recovery_ends_what_was_known_of_it_and_nothing_else(client: Client) -> None:
    name = await start(client, kind="chat")
    await say(client, name, "I have a broken leg. I have asthma and a bad back", reply=False)
    await say(client, name, "I have a bad knee and I'm allergic to nuts", reply=False)
    assert set(await known(client)) >= {"health: broken_leg", "health: asthma", "health: bad_knee"}
    await say(client, name, "my leg has almost healed. Has my knee healed?", reply=False)
    assert "health: broken_leg" in await known(client)
    await say(client, name, "my leg has finally healed btw", reply=False)
    left = set(await known(client))
    assert "health: broken_leg" not in left and left >= {
        "health: asthma",
        "health: bad_knee",
        "allergy: nuts",
    }
    await say(
        client, name, "I've recovered from asthma, they say. My sister's knee is fine again", reply=False
    )
    await say(client, name, "my knee is back to normal", reply=False)
    assert set(await known(client)) & {"health: bad_knee", "allergy: nuts"} == {"allergy: nuts"}


async def test_a_recovery_is_of_its_speaker(client: Client) -> None:
    """Keys of "Jo" begin like those of "Jo Ann"."""
    name = await start(client, kind="chat", participants=["Jo", "Jo Ann"])
    await say(client, name, "I have a bad knee", reply=False, speaker="Jo Ann")
    await say(client, name, "my knee has healed", reply=False, speaker="Jo")
    assert "health: jo_ann_bad_knee" in await known(client)
    await say(client, name, "my knee has healed", reply=False, speaker="Jo Ann")
    assert "health: jo_ann_bad_knee" not in await known(client)


async def test_what_was_not_meant_is_taken_back(client: Client) -> None:
    """Facts and tasks are as they were before the message that its writer takes back, and only those."""
    name = await start(client, kind="chat")
    await say(client, name, "I live in Turin", reply=False)
    await say(client, name, "I moved to Rome. I love opera", reply=False)
    await say(client, name, "just kidding", reply=False)
    assert await known(client) == {"home_city": "The user lives in Turin."}
    await say(client, name, "I hate horror. Remind me to pay rent", reply=False)
    await say(client, name, "ok maybe not hate. I love ghosts", reply=False)
    assert set(await known(client)) == {"home_city", "preference: ghosts"}
    await say(client, name, "I paid the rent", reply=False)
    await say(client, name, "lol jk", reply=False)
    await say(client, name, "Remind me to rob a bank", reply=False)
    await say(client, name, "I'm only joking", reply=False)
    tasks = (await client.get("/v1/tasks")).json()["data"]
    assert {each["title"]: each["state"] for each in tasks} == {"Pay rent": "open", "Rob a bank": "cancelled"}


async def test_speakers_take_back_only_their_own(client: Client) -> None:
    name = await start(client, kind="channel")
    await say(client, name, "I live in Turin", speaker="Ann", reply=False)
    await say(client, name, "I live in Rome", speaker="Bob", reply=False)
    await say(client, name, "just kidding", speaker="Ann", reply=False)
    assert await known(client) == {"home_city: bob": "Bob lives in Rome."}


async def test_what_failed_or_the_assistant_said_states_nothing(client: Client) -> None:
    name = await start(client)
    await say(client, name, "I live in Turin", failed=True, reply=False)
    await say(client, name, "I live in Turin", role="assistant", reply=False)
    assert await known(client) == {}


async def test_speakers_have_facts_of_their_own(client: Client) -> None:
    name = await start(client, kind="channel")
    await say(client, name, "I live in Turin", speaker="Ann", reply=False)
    await say(client, name, "I live in Rome", speaker="Bob", reply=False)
    await say(client, name, "Remind me to pay rent", speaker="Bob", reply=False)
    assert await known(client) == {
        "home_city: ann": "Ann lives in Turin.",
        "home_city: bob": "Bob lives in Rome.",
    }
    assert (await client.get("/v1/tasks")).json()["data"] == []


async def test_nothing_is_noted_where_learning_is_off(
    settings: Settings, inference: ScriptedInference
) -> None:
    off = changed(settings, "memory", facts=False, tasks=False)
    async with in_process(off, inference) as client:
        await say(client, await start(client), "I live in Turin. Remind me to pay rent.", reply=False)
        assert await known(client) == {}
        assert (await client.get("/v1/tasks")).json()["data"] == []


async def test_corrected_forgotten_restored(client: Client) -> None:
    made = await client.post("/v1/facts", json={"key": "preference: tea", "text": "Likes tea."})
    assert made.status_code == 201
    url = f"/v1/facts/{made.json()['id']}"
    assert (await client.patch(url, json={"text": "Likes green tea."})).json()["text"] == "Likes green tea."
    assert (await client.delete(url)).json()["ended_at"] is not None
    assert (await client.get("/v1/facts")).json()["data"] == []
    assert (await client.patch(url, json={"text": "x"})).status_code == 400
    assert (await client.post(f"{url}/undo")).json()["fact"]["text"] == "Likes green tea."
    assert (await client.post(f"{url}/undo")).json()["fact"]["text"] == "Likes tea."
    assert (await client.post(f"{url}/undo")).json()["fact"] is None
    for body in ({"key": "Bad Key", "text": "x"}, {"key": "good", "text": ""}, {"key": "good"}):
        assert (await client.post("/v1/facts", json=body)).status_code == 400


async def test_facts_belong_to_their_owner(settings: Settings, inference: ScriptedInference) -> None:
    ann, bob = make_key(settings, "ann", "user"), make_key(settings, "bob", "user")
    async with in_process(settings, inference) as client:
        client.headers["Authorization"] = f"Bearer {ann}"
        await client.post("/v1/facts", json={"key": "pet", "text": "Has a cat."})
        client.headers["Authorization"] = f"Bearer {bob}"
        conversation = await start(client)
        await say(client, conversation, "What pet do I have?")
        assert not any("Has a cat" in text_of(call) for call in inference.calls)


async def test_a_first_prompt_is_read_in_time(settings: Settings, inference: ScriptedInference) -> None:
    """A slow model leaves facts out of a conversation's first prompt; later ones find the rest in the cache."""
    inference.state = HostHealth(state="ready", speed=Speed(5.0, 5.0))
    async with in_process(settings, inference) as client:
        for number in range(8):
            fact = {"key": f"fact_{number}", "text": "word " * 12}
            assert (await client.post("/v1/facts", json=fact)).status_code == 201
        name = await start(client)
        first = await say(client, name, "Hello there")
        assert "facts" not in first["budget"]["blocks"]
        [left] = [each for each in first["budget"]["left_out"] if each["what"] == "facts"]
        assert left["why"] == (
            "no time: at 5 tokens/s a first prompt with it takes over 20 s (ask.target_seconds)"
        )
        second = await say(client, name, "And now?")
        assert second["budget"]["blocks"]["facts"] > 90
    async with in_process(changed(settings, "ask", target_seconds=0.0), inference) as client:
        assert (await say(client, await start(client), "Hello"))["budget"]["blocks"]["facts"] > 90


async def test_a_question_has_the_facts_that_it_recalls_beside_it(
    client: Client, inference: ScriptedInference
) -> None:
    name = await start(client)
    await say(client, name, "I live in Huế. My cat is called Miu.")
    await say(client, name, "What should I feed my cat?")
    await say(client, name, "The cat is fine.")
    asked, told = [call for call in inference.calls if call.lane == "interactive"][-2:]
    assert asked.messages is not None and told.messages is not None
    last = text_of(msgspec.structs.replace(asked, messages=asked.messages[-1:]))
    assert "Miu" in last and "Huế" not in last
    assert "Miu" not in text_of(msgspec.structs.replace(told, messages=told.messages[-1:]))


async def test_facts_without_room_are_recalled_when_asked_for_and_else_listed(
    settings: Settings, inference: ScriptedInference
) -> None:
    """A word is a token here; two long facts use up the budget of 60."""
    async with in_process(changed(settings, "memory", fact_tokens=60), inference) as client:
        for key, text in (
            ("pet", "Has a cat named Miu."),
            ("work", "word " * 22),
            ("home", "word " * 20),
            ("trip", "Goes."),
        ):
            assert (await client.post("/v1/facts", json={"key": key, "text": text})).status_code == 201
        name = await start(client)
        said = await say(client, name, "Hello there")
        assert {"what": "1 fact", "why": said["budget"]["left_out"][0]["why"]} in said["budget"]["left_out"]
        assert "memory.fact_tokens (60)" in said["budget"]["left_out"][0]["why"]
        assert said["budget"]["blocks"]["facts"] <= 60 and "recalled" not in said["budget"]["blocks"]
        said = await say(client, name, "What is my cat called?")
        assert said["budget"]["blocks"]["recalled"] <= 15 and not said["budget"]["left_out"]
        replies = [call for call in inference.calls if call.lane == "interactive"]
        assert "Miu" not in text_of(
            replies[0]
        ) and "What is known about the user:\n- pet: Has a cat" in text_of(replies[1])


async def test_a_small_model_sees_facts_and_tasks_only_when_they_are_asked_for(settings: Settings) -> None:
    """In its every prompt they make it talk of nothing else."""
    scripted = ScriptedInference(learner)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    weights = settings.data_dir / "small.gguf"  # not the built-in model, which was trained with them
    weights.write_bytes(bundled("models/demo/hearth-demo.gguf").read_bytes())
    small = changed(settings, "model", name=str(weights))
    async with in_process(small, scripted) as client:
        name = await start(client)
        await say(client, name, "I live in Huế. Remind me to buy the tickets.")
        await say(client, name, "It rains again.")
        said = await say(client, name, "I should buy the tickets soon.")
        assert not {"facts", "recalled", "tasks"} & said["budget"]["blocks"].keys()
        assert any("for a small model" in left["why"] for left in said["budget"]["left_out"])
        said = await say(client, name, "In which city do I live?")
        assert "recalled" in said["budget"]["blocks"] and "facts" not in said["budget"]["blocks"]
        said = await say(client, name, "I want the tickets on a list. Which is the cheapest airline?")
        assert "tasks_now" in said["budget"]["blocks"]
