"""The summary of a whole conversation is brought up to date in idle time, and gives way to requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing
from typing import Any

import apsw
import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall, GenerationEvent, HostHealth
from gateway.memory.summaries.fresh import Allowance
from tests.gateway.api.conftest import Client, changed, in_process
from tests.gateway.api.conversations.test_conversations import say, start, talker, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE, until

LINE = "Number {n}: the house in Huế has {n}7 windows and the boat in Hội An has {n}9 oars, as Mai told us."


def summarizes(call: GenerateCall) -> bool:
    text = text_of(call)
    return "Pause the conversation" in text or text.startswith("Summarize the conversation")


async def until_current(client: Client, name: str, last: int) -> dict[str, Any]:
    async def current() -> dict[str, Any]:
        found = (await client.get(f"/v1/conversations/{name}/summary")).json()
        return found if found["last"] >= last else {}

    return await until(current, "the summary is not up to date")


@pytest.fixture
def inference() -> ScriptedInference:
    made = ScriptedInference(talker)
    made.state = HostHealth(state="ready")
    return made


async def test_an_unloaded_model_is_not_loaded_for_it(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(changed(settings, "memory", fresh_share=0.5), inference) as client:
        await say(client, await start(client), f"{LINE.format(n=1)} {LINE.format(n=2)}")
        inference.state = HostHealth(state="stopped")
        with closing(apsw.Connection(str(settings.data_dir / "hearth.db"))) as database:
            await until(lambda: not database.execute("SELECT count(*) FROM jobs").get)
        assert not any(map(summarizes, inference.calls))


async def test_a_continuation_begins_at_once_with_the_fresh_summary(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(changed(settings, "memory", fresh_share=1.0), inference) as client:
        name = await start(client)
        assert (await client.get(f"/v1/conversations/{name}/summary")).json()["text"] == ""
        for number in range(1, 4):
            await say(client, name, LINE.format(n=number))
        assert "17" in (await until_current(client, name, 6))["text"]
        await say(client, name, LINE.format(n=4))
        fresh = await until_current(client, name, 8)
        assert "17" in fresh["text"] and "47" in fresh["text"], "it contains the one before"
        before = sum(map(summarizes, inference.calls))
        new = (await client.post(f"/v1/conversations/{name}/rollover")).json()["id"]
        assert sum(map(summarizes, inference.calls)) == before
        blocks = (await client.get(f"/v1/conversations/{new}/context")).json()["blocks"]
        assert "47" in "".join(block["text"] for block in blocks)


async def test_any_request_stops_it_at_once(settings: Settings, inference: ScriptedInference) -> None:
    fresh_alone = changed(settings, "memory", fresh_share=1.0, facts=False, tasks=False)
    async with in_process(fresh_alone, inference) as client:
        name = await start(client)
        await say(client, name, f"{LINE.format(n=1)} {LINE.format(n=2)}")
        inference.delay = PATIENCE  # the summary takes forever
        await until(lambda: any(map(summarizes, inference.calls)))
        inference.state = HostHealth(state="ready", foreground=1)  # a reply of somebody else
        await inference.cancelled.wait()
        inference.state, inference.delay = HostHealth(state="ready"), 0.0
        assert "17" in (await until_current(client, name, 2))["text"]


async def test_nothing_is_made_without_a_share(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(changed(settings, "memory", fresh_share=0.0), inference) as client:
        name = await start(client)
        await say(client, name, LINE.format(n=1))
        await until(lambda: any("list changes" in text_of(call) for call in inference.calls))
        assert not any(map(summarizes, inference.calls))


async def test_it_is_erased_with_what_a_speaker_said(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(changed(settings, "memory", fresh_share=1.0), inference) as client:
        name = await start(client, kind="channel")
        await say(client, name, LINE.format(n=1), speaker="ann")
        await say(client, name, LINE.format(n=2), speaker="bob")
        await until_current(client, name, 4)
        await client.delete(f"/v1/conversations/{name}/messages?speaker=bob")
        found = (await client.get(f"/v1/conversations/{name}/summary")).json()
        assert "27" not in found["text"]


def test_the_work_has_its_share_of_the_time() -> None:
    now = 100.0
    allowance = Allowance(0.1, lambda: now)
    assert allowance.wait(2.0) == pytest.approx(20.0)
    now += 20.0
    assert allowance.wait(2.0) <= 0
    allowance.spend(5.0)
    assert allowance.wait(2.0) == pytest.approx(50.0)
    now += 1_000_000.0
    assert allowance.wait(2.0) <= 0
    allowance.spend(360.0)
    assert allowance.wait(1.0) == pytest.approx(10.0), "no more than an hour is saved up"


class Counting(ScriptedInference):
    """Counts the summaries that are written at once."""

    summaries = most = 0

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        if not summarizes(call):
            async for event in super().generate(call):
                yield event
            return
        self.summaries += 1
        self.most = max(self.most, self.summaries)
        try:
            await asyncio.sleep(0.2)
            async for event in super().generate(call):
                yield event
        finally:
            self.summaries -= 1


async def test_at_most_four_summaries_are_written_at_once(settings: Settings) -> None:
    inference = Counting(talker)
    async with in_process(settings, inference) as client:
        names = [await start(client) for _ in range(9)]
        for name in names:
            await say(client, name, f"{LINE.format(n=1)} {LINE.format(n=2)}")
        await asyncio.gather(*(client.post(f"/v1/conversations/{name}/rollover") for name in names))
        assert inference.most == 4


async def test_an_episode_where_nothing_happened_has_no_summary(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(settings, inference) as client:
        name = await start(client, policy="conversations")
        await say(client, name, "Hi there! How are you today? I'm fine, thanks. " * 4)
        await say(client, name, f"{LINE.format(n=1)} {LINE.format(n=2)}")
        await say(client, name, "Xin chào cả nhà, mình khỏe, cảm ơn nhiều nhé! Tạm biệt! " * 4)
        with closing(apsw.Connection(str(settings.data_dir / "hearth.db"))) as database:
            database.execute("UPDATE messages SET created_at = created_at - 7200 * (4 - round)")
        await client.post(f"/v1/conversations/{name}/compact")
        found = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        assert ["27" in each["text"] for each in found if each["text"] or each["pins"]] == [True]
        assert sorted(each["last"] for each in found) == [2, 4, 6], "every message is accounted for"
        blocks = (await client.get(f"/v1/conversations/{name}/context")).json()["blocks"]
        assert [each["name"] for each in blocks].count("conversation") == 1


async def test_two_rollovers_make_one_continuation(client: Client) -> None:
    name = await start(client)
    await say(client, name, "Huế is 400 km away")
    path = f"/v1/conversations/{name}/rollover"
    first, second = await asyncio.gather(client.post(path), client.post(path))
    assert first.json()["id"] == second.json()["id"] != name
    await say(client, name, "and Hội An 300")  # to the old one
    assert (await client.post(path)).json()["id"] != first.json()["id"], "it must not be lost"
    listed = (await client.get("/v1/conversations?archived=true")).json()["data"]
    assert sum(each["previous"] == name for each in listed) == 2


async def test_a_long_stretch_without_replies_is_summarized_too(
    settings: Settings, inference: ScriptedInference
) -> None:
    small = changed(settings, "memory", context=1200, ceiling=500, floor=220, answer_tokens=100)
    async with in_process(small, inference) as client:
        name = await start(client)
        for number in range(80):
            await say(client, name, LINE.format(n=number), reply=False)
        said = await say(client, name, "How many windows?")
        assert not [
            left
            for left in said["budget"]["left_out"]
            if left["what"].startswith("messages") and "no room" in left["why"]
        ]
        assert {"now", "today"} & said["budget"]["blocks"].keys()


async def test_summaries_of_a_month_are_in_the_prompt_when_it_is_mentioned(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(
        changed(settings, "memory", context=2000, ceiling=900, floor=600), inference
    ) as client:
        name = await start(client)
        with closing(apsw.Connection(str(settings.data_dir / "hearth.db"))) as database:
            database.set_busy_timeout(5000)
            for day in ("2024-03-01", "2024-03-09", "2024-05-02", "2024-07-02"):
                for _ in range(5):
                    await say(client, name, LINE.format(n=day[5:7]), reply=False)
                moved = (
                    "UPDATE messages SET created_at = unixepoch(?) WHERE created_at > unixepoch('2026-01-01')"
                )
                database.execute(moved, (day,))
                await client.post(f"/v1/conversations/{name}/compact")

        async def block(text: str) -> str:
            await say(client, name, text)
            blocks = (await client.get(f"/v1/conversations/{name}/context")).json()["blocks"]
            return "".join(each["text"] for each in blocks if each["name"] == "recalled")

        assert await block("Hello there") == ""
        march = await block("How was it in March 2024?")
        assert march.startswith("What was said in 2024-03:") and "037" in march
