"""Summaries are written again by other versions of their prompts."""

from __future__ import annotations

import pytest

from gateway.base.resources import bundled
from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from tests.gateway.api.conftest import changed, in_process
from tests.gateway.api.conversations.test_conversations import say, start, talker, text_of
from tests.gateway.api.scripted import ScriptedInference


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(talker)


@pytest.fixture
def small(settings: Settings) -> Settings:
    return changed(settings, "memory", context=1200, ceiling=500, floor=220, answer_tokens=100)


def renumber_prompts(settings: Settings) -> None:
    """The user's own prompts of summaries, as version 2."""
    folder = settings.data_dir / "prompts"
    folder.mkdir()
    for prompt in ("summary_now", "summary_fold", "history_summary"):
        shipped = bundled(f"prompts/{prompt}.md").read_text()
        (folder / f"{prompt}.md").write_text(shipped.replace("version = 1", "version = 2"))


async def test_summaries_are_made_again_by_a_newer_prompt(
    small: Settings, inference: ScriptedInference
) -> None:
    """Old rows stay; live ones have the version of their prompt."""
    async with in_process(small, inference) as client:
        name = await start(client)
        for number in range(12):
            await say(client, name, f"Fact {number}: Huế is {number * 11 + 100} km away")
        await client.post(f"/v1/conversations/{name}/compact")
        before = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        assert (await client.post(f"/v1/conversations/{name}/convert")).json()["summaries"] == 0
    renumber_prompts(small)
    async with in_process(small, inference) as client:
        wrong = await client.post(f"/v1/conversations/{name}/convert", json={"to": 9})
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "to")
        made = (await client.post(f"/v1/conversations/{name}/convert")).json()["summaries"]
        after = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        assert made > 0 and len(after) == len(before) + made
        live_ones = [each for each in after if each["superseded_by"] is None]
        assert {each["prompt_version"] for each in live_ones} == {2}
        spans = sorted((each["first"], each["last"]) for each in live_ones)
        assert spans == sorted((e["first"], e["last"]) for e in before if e["superseded_by"] is None)
        assert (await client.post(f"/v1/conversations/{name}/convert")).json()["summaries"] == 0
        back = await client.post(f"/v1/conversations/{name}/convert", json={"to": 1})
        assert back.json()["summaries"] == made, "the program's own version is still there"
        last = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        assert {each["prompt_version"] for each in last if each["superseded_by"] is None} == {1}


async def test_a_second_conversion_does_only_what_the_first_one_left(
    small: Settings, inference: ScriptedInference
) -> None:
    async with in_process(small, inference) as client:
        names = [await start(client), await start(client)]
        for name, place in zip(names, ("Huế", "Oslo"), strict=True):
            for number in range(12):
                await say(client, name, f"Fact {number}: {place} is {number * 11 + 100} km away")
            await client.post(f"/v1/conversations/{name}/compact")
    renumber_prompts(small)

    def stubborn(call: GenerateCall) -> list[str]:
        """Summaries of Oslo are empty."""
        return [""] if "Oslo" in text_of(call) else talker(call)

    inference.script = stubborn
    async with in_process(small, inference) as client:
        done = [(await client.post(f"/v1/conversations/{name}/convert")).json() for name in names]
        assert done[0]["summaries"] > 0 == done[0]["rejected"], done
        assert done[1]["rejected"] > 0 == done[1]["summaries"], done
        inference.script = talker
        before = len(inference.calls)
        again = [(await client.post(f"/v1/conversations/{name}/convert")).json() for name in names]
        assert (again[0]["summaries"], again[0]["rejected"]) == (0, 0)
        assert (again[1]["summaries"], again[1]["rejected"]) == (done[1]["rejected"], 0)
        calls = inference.calls[before:]
        assert calls and not any("Huế" in text_of(call) for call in calls), "it is not written a third time"
        third = [
            (await client.post(f"/v1/conversations/{name}/convert")).json()["summaries"] for name in names
        ]
        assert third == [0, 0]


async def test_extracts_by_former_rules_are_made_again(
    small: Settings, inference: ScriptedInference, monkeypatch: pytest.MonkeyPatch
) -> None:
    inference.script = lambda call: [""] if call.lane != "interactive" else talker(call)
    async with in_process(small, inference) as client:
        name = await start(client)
        for number in range(12):
            await say(client, name, f"Fact {number}: Huế is {number * 11 + 100} km away")
        await client.post(f"/v1/conversations/{name}/compact")
        path = f"/v1/conversations/{name}"
        before = (await client.get(f"{path}/summaries")).json()["data"]
        assert {each["prompt_name"] for each in before} == {"extract"}
        assert (await client.post(f"{path}/convert")).json()["summaries"] == 0
        monkeypatch.setattr("gateway.memory.summaries.compaction.EXTRACT_VERSION", 99)
        monkeypatch.setattr("gateway.memory.summaries.summarize.EXTRACT_VERSION", 99)
        calls = len(inference.calls)
        live = sum(each["superseded_by"] is None for each in before)
        assert (await client.post(f"{path}/convert")).json() == {"id": name, "summaries": live, "rejected": 0}
        assert len(inference.calls) == calls, "no model is asked"
        after = (await client.get(f"{path}/summaries")).json()["data"]
        assert {e["prompt_version"] for e in after if e["superseded_by"] is None} == {99}
        assert (await client.post(f"{path}/convert")).json()["summaries"] == 0
