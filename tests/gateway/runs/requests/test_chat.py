"""Requests of a chat: done by code, and told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from gateway.config.settings import Settings
from gateway.models.catalog import bundled
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.conversations.test_conversations import say, start, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import fine, notices
from tests.waiting import until


def tomorrow() -> str:
    """The day after the server's, asked for anew: a run of all tests may go past midnight."""
    return (datetime.now(UTC) + timedelta(days=1)).date().isoformat()


@pytest.fixture
async def small(settings: Settings) -> AsyncIterator[Client]:
    """A server with a small model, for which code replies."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    weights = settings.data_dir / "small.gguf"
    weights.write_bytes(bundled("models/demo/hearth-demo.gguf").read_bytes())
    async with in_process(changed(settings, "model", name=str(weights)), ScriptedInference(fine)) as client:
        yield client


async def told(client: Client, conversation: str, text: str) -> str:
    return str((await say(client, conversation, text))["message"]["text"])


async def titles(client: Client, state: str = "open") -> list[str]:
    found = (await client.get(f"/v1/tasks?state={state}")).json()["data"]
    return sorted(task["title"] for task in found if task["level"] == "task")


async def test_the_list_is_changed_and_shown(small: Client) -> None:
    name = await start(small)
    assert await told(small, name, "add buy stamps to my to-do list") == "On your list: Buy stamps"
    assert await told(small, name, "put buy stamps on my list") == "Already on your list: Buy stamps"
    assert await told(small, name, "add eggs, flour and salt to my list") == "On your list: Eggs; Flour; Salt"
    assert await told(small, name, "is flour on my list?") == "Yes, on your list: Flour"
    assert await told(small, name, "take buying the stamps off my list") == "Taken off your list: Buy stamps"
    assert (
        await told(small, name, "put butter and notes on my shopping list") == "On your list: Butter; Notes"
    )
    assert await told(small, name, "take butter off the list") == "Taken off your list: Butter"
    assert await told(small, name, "take notes off the list") == "Taken off your list: Notes"
    assert await told(small, name, "remove the piano from my list") == "Not on your list: the piano"
    assert await told(small, name, "check off eggs") == "Done: Eggs"
    assert await titles(small) == ["Flour", "Salt"]
    shown = await told(small, name, "tell me everything on my shopping list")
    assert shown == "On your list:\n- Flour\n- Salt"
    assert await told(small, name, "clear my list") == "Taken off your list: Flour; Salt"
    assert await titles(small) == []


async def test_several_that_may_be_meant_are_asked_about(small: Client) -> None:
    name = await start(small)
    for title in ("Call the bank", "Call the vet"):
        await small.post("/v1/tasks", json={"title": title})
    asked = await told(small, name, "take call off my list")
    assert asked == "Several on your list may be meant: Call the bank; Call the vet. Say which one."
    assert len(await titles(small)) == 2


async def test_a_day_has_its_list(small: Client) -> None:
    name = await start(small)
    written = await told(small, name, "add choir practice to my calendar for tomorrow")
    assert written.startswith("On your list of ") and written.endswith(": Choir practice")
    [task] = (await small.get("/v1/tasks")).json()["data"]
    assert task["day"] == tomorrow()
    assert (await told(small, name, "what's on my calendar for tomorrow?")).endswith("- Choir practice")
    asked = await told(small, name, "add the fair to my calendar for next week")
    assert asked == "On what date is “next week”? Say it such as 5 March."
    assert "The fair" in await told(small, name, "5 March")


async def test_a_reminder_comes_at_its_time(small: Client) -> None:
    name = await start(small)
    set_at = await told(small, name, "remind me to turn the oven off in 1 second")
    assert set_at.startswith("I will remind you at ") and set_at.endswith(": turn the oven off")

    async def came() -> list[str]:
        return [text for text in await notices(small) if text == "Reminder: turn the oven off"]

    await until(came)

    async def done() -> bool:
        return await titles(small, "done") == ["Turn the oven off"]

    await until(done)


async def test_what_is_due_at_once_and_marks_of_results_are_no_errors(small: Client) -> None:
    name = await start(small)
    assert (await told(small, name, "set a timer for 0 minutes")).startswith("The timer ends at ")
    assert (await told(small, name, "remind me to use {{1}} in 0 seconds")).endswith(": use {{1}}")

    async def came() -> bool:
        return "Reminder: use { {1}}" in await notices(small)

    await until(came)


async def test_a_small_model_does_not_see_what_code_has_told(settings: Settings) -> None:
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    weights = settings.data_dir / "small.gguf"
    weights.write_bytes(bundled("models/demo/hearth-demo.gguf").read_bytes())
    inference = ScriptedInference(fine)
    async with in_process(changed(settings, "model", name=str(weights)), inference) as client:
        name = await start(client)
        for text in ("add salt to my list", "remind me to stretch", "in 10 minutes", "pepper is cheap here"):
            await told(client, name, text)
    [call] = [each for each in inference.calls if each.lane == "interactive"]
    prompt = text_of(call)
    assert "pepper is cheap" in prompt and "On your list" not in prompt and "remind" not in prompt


async def test_what_is_lacking_is_asked_for(small: Client) -> None:
    name = await start(small)
    listed = await told(small, name, "remind me to call the vet")
    assert listed.startswith("On your list: Call the vet. When shall I remind you of it?")
    assert await titles(small) == ["Call the vet"]
    set_at = await told(small, name, "tomorrow at 9")
    assert set_at.startswith("I will remind you at 09:00 on ") and set_at.endswith(": call the vet")
    [task] = [
        each for each in (await small.get("/v1/tasks")).json()["data"] if each["level"] == "task"
    ]  # the same one
    assert (task["day"], task["archetype"]) == (tomorrow(), "model")

    assert await told(small, name, "I need a reminder") == "What shall I remind you of, and when?"
    assert (await told(small, name, "feed the cat")).startswith("On your list: Feed the cat. When")
    assert (await told(small, name, "tomorrow at 3")).startswith("At what hour is “tomorrow at 3”?")
    assert (await told(small, name, "in the afternoon")).startswith("I will remind you at 15:00 on ")

    asked = await told(small, name, "remind me to visit Ana tomorrow")
    assert asked.startswith("On your list of ") and asked.endswith(
        ": Visit Ana. At what hour is “tomorrow”? Say it such as 9:00 or 5 pm."
    )

    assert (await told(small, name, "set a timer")).startswith("How long")
    assert (await told(small, name, "10 minutes")).startswith("The timer ends at ")
    assert (await told(small, name, "remind me every day at 8 to stretch")).startswith(
        "A reminder comes once"
    )


async def test_a_change_of_subject_answers_no_question(small: Client) -> None:
    name = await start(small)
    await told(small, name, "set an alarm")
    assert await told(small, name, "who made Befunge?") == "It is fine."
    assert await told(small, name, "never mind") == "It is fine."
    assert await titles(small) == []


async def test_an_alarm_is_taken_off(small: Client) -> None:
    name = await start(small)
    assert (await told(small, name, "set an alarm for 6:15 am")).startswith("The alarm will go off at 06:15")
    shown = await told(small, name, "which reminders do i have set")
    assert "- Alarm (at 06:15" in shown
    assert await told(small, name, "cancel my alarm") == "Taken off your list: Alarm"
    [run] = (await small.get("/v1/runs")).json()["data"]
    assert run["state"] == "cancelled"


async def test_an_alarm_is_taken_off_in_the_other_language(small: Client) -> None:
    name = await start(small)
    assert (await told(small, name, "đặt báo thức 6 giờ 15 sáng mai")).startswith("Đã đặt báo thức lúc 06:15")
    assert await told(small, name, "cancel my alarm") == "Taken off your list: Báo thức"
    await told(small, name, "set an alarm for 6:15 am")
    assert await told(small, name, "hủy báo thức") == "Đã bỏ khỏi danh sách: Alarm"


async def test_it_is_told_in_vietnamese(small: Client) -> None:
    name = await start(small)
    assert await told(small, name, "thêm mua gạo vào danh sách") == "Đã thêm vào danh sách: Mua gạo"
    assert (await told(small, name, "nhắc mình gọi cho mẹ lúc 9 giờ sáng mai")).startswith(
        "Sẽ nhắc lúc 09:00"
    )


async def test_a_larger_model_is_not_asked_either(client: Client, inference: ScriptedInference) -> None:
    name = await start(client)
    assert await told(client, name, "add buy stamps to my list") == "On your list: Buy stamps"
    assert not [each for each in inference.calls if each.lane == "interactive"]
    assert await titles(client) == ["Buy stamps"]


async def test_the_list_of_a_channel_is_left_alone(small: Client) -> None:
    name = await start(small, kind="channel")
    await say(small, name, "add buy stamps to my list", speaker="ana")
    assert await titles(small) == []


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ("remind me to stretch in 20 seconds", "I set no reminders in a channel."),
        ("nhắc tôi gọi mẹ lúc 9 giờ sáng mai", "Trong kênh chung không đặt được lời nhắc."),
    ],
)
async def test_a_channel_is_told_that_no_reminder_is_set(small: Client, asked: str, refused: str) -> None:
    """A small model said "Very well" instead."""
    name = await start(small, kind="channel")
    assert (await say(small, name, asked, speaker="ana"))["message"]["text"] == refused
    assert await titles(small) == []


async def test_what_was_done_before_its_reminder_is_done(small: Client) -> None:
    """Also where the reminder's own step, and its mention on today's list, have the same words."""
    name = await start(small)
    for when in ("in 3 hours", "tomorrow at 10"):
        await told(small, name, f"remind me {when} to call the vet")
        await told(small, name, "I called the vet")
        assert await titles(small, "doing") == [], when
    assert await titles(small, "done") == ["Call the vet", "Call the vet"]


def in_days(ahead: int) -> str:
    """The name of a weekday that is not today's: the replies leave out today."""
    return f"{datetime.now(UTC) + timedelta(days=ahead):%A}"


@pytest.mark.parametrize(
    ("first", "then", "when"),
    [
        ("remind me to call mum on {friday} at 10", "actually make it {thursday}", "at 10:00 on {thursday}"),
        ("remind me to call mum on {friday} at 10", "no, at 11:30", "at 11:30 on {friday}"),
        (
            "remind me to call mum on {friday} at 10",
            "sorry, I meant {thursday} at 9",
            "at 09:00 on {thursday}",
        ),
        ("remind me to call mum on {friday} at 5 pm", "no, at 6", "at 18:00 on {friday}"),
        (
            "remind me to call mum on {friday} at 5 pm",
            "can you push it back an hour?",
            "at 18:00 on {friday}",
        ),
        ("remind me to call mum on {friday} at 5 pm", "make it half an hour earlier", "at 16:30 on {friday}"),
        ("set an alarm for 6:30 tomorrow", "move it to 7:15", "at 07:15 on"),
        ("set a timer for 30 minutes", "make it 45 minutes please", "The timer ends at"),
        ("đặt báo thức 6 giờ sáng mai", "đổi thành 6 rưỡi", "lúc 06:30"),
        ("nhắc tôi gọi mẹ lúc 9 giờ sáng mai", "thôi, đổi sang 10 giờ sáng nhé", "lúc 10:00"),
    ],
)
async def test_a_reminder_gets_another_time(small: Client, first: str, then: str, when: str) -> None:
    first, then, when = (each.format(thursday=in_days(2), friday=in_days(3)) for each in (first, then, when))
    name = await start(small)
    await told(small, name, first)
    await told(small, name, "what's on my list?")
    assert when in await told(small, name, then)
    listed = (await told(small, name, "show my list")).splitlines()
    assert len(listed) == 2
    assert any(each in listed[1] for each in ("45 minutes", "at 10:00", "06:30", when))


async def test_a_reminder_is_moved_twice_and_comes_once(small: Client) -> None:
    name = await start(small)
    await told(small, name, "remind me in 3 hours to stretch")
    await told(small, name, "make it 2 hours")
    await told(small, name, "no, make it in 1 second")

    async def came() -> list[str]:
        return [text for text in await notices(small) if text == "Reminder: stretch"]

    await until(came)

    async def done() -> bool:
        return await titles(small, "done") == ["Stretch"]

    await until(done)
    assert await titles(small) == []


@pytest.mark.parametrize(
    "text", ["make it nicer", "actually I like Thursday", "make it an hour", "no thanks"]
)
async def test_what_is_no_other_time_moves_nothing(small: Client, text: str) -> None:
    name = await start(small)
    await told(small, name, "remind me to call mum tomorrow at 10")
    assert "remind you" not in await told(small, name, text)


async def test_a_reminder_comes_before_what_was_told(small: Client) -> None:
    name = await start(small)
    await say(small, name, f"I have a meeting with Lisa on {in_days(2)} at 2pm")
    await say(small, name, "she is my boss")
    set_at = await told(small, name, "remind me an hour before")
    assert set_at.startswith(f"I will remind you at 13:00 on {in_days(2)}")
    assert set_at.endswith(": meeting with Lisa (14:00)")


async def test_before_nothing_it_is_asked_of_what(small: Client) -> None:
    name = await start(small)
    assert await told(small, name, "remind me an hour before") == "What shall I remind you of, and when?"
    assert await titles(small) == []


async def test_things_of_several_days_are_listed_on_theirs(small: Client) -> None:
    name = await start(small)
    both = f'add "water the plants" for {in_days(2)} and "call mum" for {in_days(3)}'
    first, second = (await told(small, name, both)).splitlines()
    assert first.startswith(f"On your list of {in_days(2)}") and first.endswith(": Water the plants")
    assert second.startswith(f"On your list of {in_days(3)}") and second.endswith(": Call mum")


async def test_an_empty_list_that_nobody_named_is_not_shown(small: Client) -> None:
    name = await start(small)
    await say(small, name, "I want to apply for a job")
    assert await told(small, name, "what else do I need to do?") == "It is fine."
    for asked in ("what's on my list?", "what alarms do I have?", "do I have any appointments?"):
        assert await told(small, name, asked) == "There is nothing on your list."
    await say(small, name, "add a letter to my list")
    assert "A letter" in await told(small, name, "what else do I need to do?")
