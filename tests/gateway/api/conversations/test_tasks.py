"""Tasks over HTTP: ids, levels, prompt block, mentions, updates read from a conversation, ownership."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from gateway.memory.learning.asked import Change
from gateway.memory.learning.changes import accept, mentions
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.conversations.test_conversations import say, start, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.memory.test_compose import line
from tests.waiting import until

PROPOSED = [
    {"op": "add", "id": "", "title": "Buy milk", "quote": "buy milk"},
    {"op": "add", "id": "", "title": "Sell the house", "quote": "sell the house"},
    {"op": "done", "id": "T-19990101-01", "title": "", "quote": "buy milk"},
]


def keeper(call: GenerateCall) -> list[str]:
    """Proposes a task that the user named, one that nobody named, and the end of one that does not exist."""
    text = text_of(call)
    if "list changes to the tasks" in text:
        return [msgspec.json.encode(PROPOSED).decode()]
    return ["[]"] if "list facts" in text else ["Fine."]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(keeper)


async def make(client: Client, title: str, **fields: Any) -> dict[str, Any]:
    reply = await client.post("/v1/tasks", json={"title": title, **fields})
    assert reply.status_code == 201, reply.text
    return dict(reply.json())


async def test_ids_sort_and_explain_themselves(client: Client) -> None:
    objective = await make(client, "Move house", level="objective", day="2026-11-20")
    task = await make(client, "Pack", parent=objective["id"], day="2026-11-20", archetype="hybrid")
    second = await make(client, "Call the movers", day="2026-11-20")
    items = [await make(client, f"box {n}", level="checklist", parent=task["id"]) for n in range(12)]
    assert (objective["id"], task["id"], second["id"]) == ("O-20261120-01", "T-20261120-01", "T-20261120-02")
    assert [item["id"] for item in items][-1] == "T-20261120-01.c12"
    for wrong in (
        {"level": "checklist"},
        {"level": "checklist", "parent": objective["id"]},
        {"parent": task["id"]},
        {"parent": "T-20991231-01"},
        {"day": "2026-13-01"},
        {"level": "epic"},
    ):
        reply = await client.post("/v1/tasks", json={"title": "x", **wrong})
        assert reply.status_code in (400, 404), wrong
    done = await client.patch(f"/v1/tasks/{task['id']}", json={"state": "done"})
    assert done.json()["state"] == "done"
    listed = (await client.get("/v1/tasks?day=2026-11-20&state=done")).json()["data"]
    assert [each["id"] for each in listed] == [task["id"]]
    assert (await client.delete(f"/v1/tasks/{objective['id']}")).status_code == 200
    left = (await client.get("/v1/tasks?day=2026-11-20")).json()["data"]
    assert [each["id"] for each in left] == [second["id"]], "what is below goes with it"


async def test_today_is_in_the_prompt_and_other_days_when_mentioned(
    client: Client, inference: ScriptedInference
) -> None:
    today = await make(client, "Water the plants")
    item = await make(
        client, "Ask which ones", level="checklist", parent=today["id"], breakpoint=True, question="Which?"
    )
    old = await make(client, "File the taxes", day="2020-04-01")
    done = {"state": "done"}
    refused = await client.patch(f"/v1/tasks/{today['id']}", json=done)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "open_breakpoint")
    name = await start(client)
    await say(client, name, "I watered the plants")
    assert (await client.get(f"/v1/tasks/{today['id']}")).json()["state"] == "open", "nor by word of mouth"
    [told] = (await client.post("/v1/notices")).json()["data"]
    assert told["text"] == "Water the plants is not marked as done, because it waits at a BREAKPOINT: Which?"
    for each in (item, today):
        assert (await client.patch(f"/v1/tasks/{each['id']}", json=done)).status_code == 200
    inference.calls.clear()
    said = await say(client, name, "Hello")
    assert said["budget"]["blocks"]["tasks"] > 0
    prompt = text_of(next(call for call in inference.calls if call.lane == "interactive"))
    assert f"[x] {today['id']} (user) Water the plants" in prompt
    assert "BREAKPOINT: Which?" in prompt and "taxes" not in prompt
    await say(client, name, f"What about @{old['id']}?")
    prompt = text_of([call for call in inference.calls if call.lane == "interactive"][-1])
    assert "File the taxes" in prompt


async def test_updates_are_read_from_what_the_user_says(client: Client) -> None:
    name = await start(client)
    await say(client, name, "Please remind me to call Dr. Okafor about the milk today.")
    found = await until_tasks(client, 1, "?day=today")
    assert [each["title"] for each in found] == ["Call Dr. Okafor about the milk"]
    assert (found[0]["conversation"], found[0]["message"]) == (name, 1)


async def test_numbers_of_tasks_are_each_owners_own(settings: Settings, inference: ScriptedInference) -> None:
    ann, bob = make_key(settings, "ann", "user"), make_key(settings, "bob", "user")
    async with in_process(settings, inference) as client:
        client.headers["Authorization"] = f"Bearer {ann}"
        task = (await make(client, "secret"))["id"]
        client.headers["Authorization"] = f"Bearer {bob}"
        assert (await make(client, "mine"))["id"] == task, "numbers are each owner's own"


@given(st.text(max_size=200))
def test_mentions_are_ids(text: str) -> None:
    assert (
        mentions(f"{text} @T-20261120-03, @O-20250101-01 @T-20261120-03")[-2:]
        == mentions("@T-20261120-03 @O-20250101-01")
        or "@" in text
    )


def test_only_users_make_tasks() -> None:
    talk = [line(1, text="hello"), line(2, "assistant", "You should buy milk.")]
    assert accept([Change("add", "", "Buy milk", "buy milk")], talk, []) == []


async def test_tasks_without_room_are_counted_in_the_prompt_and_listed(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(changed(settings, "memory", task_tokens=40), inference) as client:
        for number in range(9):
            await make(client, f"Pack box number {number}")
        said = await say(client, await start(client), "Hello")
        [left] = said["budget"]["left_out"]
        assert left["why"] == "no room: memory.task_tokens is 40"
        number = int(left["what"].removesuffix(" lines of tasks"))
        prompt = text_of(next(call for call in inference.calls if call.lane == "interactive"))
        assert f"({number} more are left out here)" in prompt and prompt.count("Pack box") == 9 - number
        assert "Pack box number 8" in prompt, "the newest is never dropped"


async def test_the_newest_task_is_in_the_prompt_whatever_its_length(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(changed(settings, "memory", task_tokens=20), inference) as client:
        old = await make(client, "Water the plants")
        for number in range(3):
            await make(client, f"pot {number}", level="checklist", parent=old["id"])
        await make(client, "Write " + "a very " * 35 + "long letter")
        said = await say(client, await start(client), "Hello")
        prompt = text_of(next(call for call in inference.calls if call.lane == "interactive"))
        assert "long letter" in prompt and "plants" not in prompt
        assert [left["what"] for left in said["budget"]["left_out"]] == ["4 lines of tasks"]


async def test_a_mentioned_task_stays_on_the_list_of_the_day(
    client: Client, inference: ScriptedInference
) -> None:
    taxes = await make(client, "File the taxes", day="2020-04-01")
    await make(client, "receipts", level="checklist", parent=taxes["id"])
    japanese = await make(client, "Learn Japanese: finish the kana, pass N5", level="objective", day="2026")
    month = await make(client, "Paint the old boat", day="2026-11")
    assert (japanese["id"], month["id"]) == ("O-2026-01", "T-202611-01")
    name = await start(client)

    async def block(text: str) -> str:
        await say(client, name, text)
        blocks = (await client.get(f"/v1/conversations/{name}/context")).json()["blocks"]
        return "".join(each["text"] for each in blocks if each["name"] == "tasks")

    assert await block("Hello") == ""
    assert "File the taxes" in await block(f"What about @{taxes['id']}?")
    assert "Paint the old boat" in await block("I did paint the old boat a bit.")
    assert "Learn Japanese" in await block(f"And {japanese['id']}?")
    after = await block("Thanks")
    for shown in ("File the taxes", "receipts", "Paint the old boat", "Learn Japanese", "Finish the kana"):
        assert shown in after, shown
    listed = (await client.get("/v1/tasks?day=today")).json()["data"]
    assert {taxes["id"], month["id"], japanese["id"]} <= {each["id"] for each in listed}
    assert all(len(each["days"]) == 1 for each in listed if each["id"] == taxes["id"])
    assert (await client.get("/v1/tasks?day=2026-11")).json()["data"][0]["id"] == month["id"]
    assert (await client.post("/v1/tasks", json={"title": "x", "day": "2026-13"})).status_code == 400


@pytest.mark.parametrize(
    ("text", "title", "tasks"),
    [
        ("Move house: pack the boxes, call the movers and clean the flat", "Move house", 3),
        ("Move house\n- pack\n- call the movers\n\nThanks a lot!", "Move house", 2),
        ("Học tiếng Nhật: 1. học kana 2. thi N5", "Học tiếng Nhật", 2),
        ("Know Befunge: find out who made it and write it down, read it up", "Know Befunge", 2),
        ("Move house", "Move house", 0),
        (
            "Write on time: why all the big clocks of the whole wide world, and its calendars, were reformed",
            "Write",
            0,
        ),
    ],
)
async def test_an_objective_is_divided_into_the_tasks_that_it_lists(
    client: Client, text: str, title: str, tasks: int
) -> None:
    objective = await make(client, text, level="objective")
    assert objective["title"].startswith(title)
    below = [
        each for each in (await client.get("/v1/tasks")).json()["data"] if each["parent"] == objective["id"]
    ]
    assert len(below) == tasks and all(each["level"] == "task" for each in below)


async def until_tasks(client: Client, count: int, query: str = "") -> list[dict[str, Any]]:
    async def found() -> list[dict[str, Any]]:
        rows = list((await client.get(f"/v1/tasks{query}")).json()["data"])
        return rows if len(rows) >= count else []

    return await until(found)


async def test_an_objective_of_a_conversation_is_divided_whatever_the_model(client: Client) -> None:
    name = await start(client)
    await say(client, name, "My goal this year is to learn Japanese: finish the kana and pass N5.")
    found = await until_tasks(client, 3)
    year = found[0]["id"][2:6]
    assert [(each["id"], each["title"]) for each in found] == [
        (f"O-{year}-01", "Learn Japanese"),
        (f"T-{year}-01", "Finish the kana"),
        (f"T-{year}-02", "Pass N5"),
    ]
    await say(client, name, "My goal is to learn Japanese: finish the kana, and read a book.")
    assert [each["title"] for each in await until_tasks(client, 4)][1:] == [
        "Finish the kana",
        "Pass N5",
        "Read a book",
    ]


NAMED = [
    {"title": "Make an outline", "quote": "make an outline"},
    {"title": "Find a publisher in Hanoi", "quote": "make an outline"},
]


async def test_the_model_divides_an_objective_only_into_what_the_message_names(
    settings: Settings, inference: ScriptedInference
) -> None:
    def divider(call: GenerateCall) -> list[str]:
        named = "The user has this objective: Write a novel" in text_of(call)
        return [msgspec.json.encode(NAMED).decode()] if named else keeper(call)

    async with in_process(settings, ScriptedInference(divider)) as client:
        await say(client, await start(client), "My goal is to write a novel. First I will make an outline.")
        found = await until_tasks(client, 2)
        assert [each["title"] for each in found] == ["Write a novel", "Make an outline"]


async def test_the_same_task_is_added_once(client: Client) -> None:
    name = await start(client)
    await say(client, name, "Please remind me to buy milk today.")
    await until_tasks(client, 1)
    await say(client, name, "Oh, and remind me to buy the milk!")
    await say(client, name, "My goal: party. Tasks: buy milk, bake a cake.")
    assert sorted(each["title"] for each in await until_tasks(client, 3)) == [
        "Bake a cake",
        "Buy milk",
        "Party",
    ]


async def test_days_are_those_of_the_conversation(client: Client, inference: ScriptedInference) -> None:
    east, west = [await start(client, time_zone=f"Pacific/{zone}") for zone in ("Kiritimati", "Pago_Pago")]
    await say(client, east, "Todo: pack the tent.")  # a day later than in the west
    there = (await client.get(f"/v1/tasks?day=today&conversation={east}")).json()["data"]
    assert [task["title"] for task in there] == ["Pack the tent"]
    assert not (await client.get(f"/v1/tasks?day=today&conversation={west}")).json()["data"]
    said = await say(client, east, "Which tasks are left?")
    assert "tasks" in said["budget"]["blocks"]
    assert (await client.get("/v1/tasks?day=today&conversation=nobody")).status_code == 404
