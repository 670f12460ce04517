"""A reminder that a part of a longer message asks for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gateway.config.settings import Settings
from gateway.runs.requests.understood import reminder_within
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.conversations.test_conversations import say, start, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import fine
from tests.gateway.runs.requests.test_chat import small as small  # a fixture
from tests.gateway.runs.requests.test_chat import titles, told, tomorrow

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind", "time", "what"),
    [
        ("long day at work, oh and remind me at 7 to call mum", "reminder", "at 7", "call mum"),
        ("We moved it. Remind me tomorrow at 9 to return the van.", "reminder", "tomorrow at 9", "return the van"),
        ("thanks! also, can you remind me to buy milk at 6pm?", "reminder", "at 6pm", "buy milk"),
        ("I'm off to bed. Wake me at 6:30.", "alarm", "at 6:30", ""),
        ("sounds good. set a timer for 10 minutes", "timer", "in 10 minutes", ""),
        ("hôm nay mệt quá. nhắc mình gọi mẹ lúc 7 giờ tối nhé", "reminder", "lúc 7 giờ tối", "gọi mẹ"),
    ],
)  # fmt: skip
def test_it_is_found(text: str, kind: str, time: str, what: str) -> None:
    found = reminder_within(text, NOON)
    assert found is not None and (found.kind, found.time, found.text) == (kind, time, what)


@pytest.mark.parametrize(
    "text",
    [
        "Translate this to French. Remind me at 7 to call mum.",
        "she said remind me at 7 to call mum. lol",
        "What does “remind me at 7 to call mum” mean?",
        "If it rains remind me at 7 to take the washing in",
        "My phone will remind me at 7 to call mum",
        "He will come and remind me at 7 to call mum",
        "I am tired. Remind me every Monday at 7 to call mum.",
        "I am tired. Remind me to oil the chain every two weeks.",
        "I am tired. Remind me to call mum.",
        "the alarm rang at 7 and woke the cat",
    ],
)
def test_what_is_no_such_request_or_lacks_something_is_left_alone(text: str) -> None:
    assert reminder_within(text, NOON) is None


async def test_it_is_set_and_told_after_the_reply(small: Client) -> None:
    name = await start(small)
    reply = await told(small, name, "thanks! also, can you remind me tomorrow at 6pm to buy milk?")
    said, _, aside = reply.partition("\n\n")
    assert (
        said == "It is fine."
        and aside.startswith("I will remind you at 18:00")
        and aside.endswith(": buy milk")
    )
    assert await titles(small, "doing") == ["Buy milk"], "once, and without its time"
    task, *_ = (each for each in (await small.get("/v1/tasks")).json()["data"] if each["level"] == "task")
    [run] = (await small.get("/v1/runs")).json()["data"]
    assert (task["day"], run["task"]) == (tomorrow(), task["id"])
    assert await told(small, name, "my name is Ann. wake me tomorrow at 6:30") != "It is fine."
    assert [fact["key"] for fact in (await small.get("/v1/facts")).json()["data"]] == ["name"]
    assert await told(small, name, "cancel my alarm") == "Taken off your list: Alarm"


async def test_an_hour_that_is_not_clear_is_asked_for(small: Client) -> None:
    name = await start(small)
    reply = await told(small, name, "long day at work, oh and remind me tomorrow morning to call mum")
    assert reply.startswith("It is fine.\n\nOn your list") and "At what hour is “tomorrow morning”?" in reply
    assert await titles(small) == ["Call mum"]
    assert (await told(small, name, "9:30")).startswith("I will remind you at 09:30 on")
    assert await titles(small, "doing") == ["Call mum"] and await titles(small) == []


async def test_a_small_model_does_not_see_what_was_told_after_a_reply(
    settings: Settings,
) -> None:
    inference = ScriptedInference(fine)
    async with in_process(changed(settings, "model", name="hearth-demo"), inference) as client:
        name = await start(client)
        await told(client, name, "I live in Leeds. Remind me tomorrow at 9 to call the vet.")
        await told(client, name, "It rains.")
        asked = await told(client, name, "Where do I live?")
        assert asked == "You told me: “I live in Leeds”"
    prompt = text_of([call for call in inference.calls if call.lane == "interactive"][-1])
    assert "I live in Leeds. Remind me" in prompt and "I will remind you" not in prompt


async def test_a_larger_model_replies_to_the_rest(settings: Settings) -> None:
    inference = ScriptedInference(fine)
    async with in_process(settings, inference) as client:
        said = await say(client, await start(client), "Nice. Remind me tomorrow at 9 to call the vet.")
        assert said["message"]["text"].startswith("It is fine.\n\nI will remind you at 09:00")
