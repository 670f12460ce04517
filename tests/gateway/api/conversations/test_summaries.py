"""What counts as a summary, through HTTP, with scripted models."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.base.resources import bundled
from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from gateway.memory.compose import HEADINGS
from tests.gateway.api.conftest import Client, changed, connected
from tests.gateway.api.conversations.test_conversations import say, start, text_of
from tests.gateway.api.conversations.test_events import News, listening, summarizing, until_told
from tests.gateway.api.scripted import ScriptedInference


@asynccontextmanager
async def windowed(
    settings: Settings, inference: ScriptedInference
) -> AsyncIterator[tuple[Client, str, News]]:
    """A conversation with a short window, and its events."""
    small = changed(settings, "memory", window_messages=6, window_summarized=4)
    async with connected(small, inference) as client:
        name = await start(client, policy="window")
        async with listening(client, name) as news:
            yield client, name, news


async def test_a_summary_that_says_nothing_does_not_stand(
    settings: Settings, inference: ScriptedInference
) -> None:
    inference.script = lambda call: ["Same story, different ending."] if summarizing(call) else ["So be it."]
    async with windowed(settings, inference) as (client, name, news):
        for number in range(4):
            await say(client, name, f"The tree {number + 10} in the yard needs water again.")
        await until_told(news, "compacted")
        [summary] = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        assert summary["prompt_name"] == "extract" and "Same story" not in summary["text"]


async def test_a_rolling_summary_joins_no_name_and_number_of_different_sentences(
    settings: Settings, inference: ScriptedInference
) -> None:
    def script(call: GenerateCall) -> list[str]:
        if not summarizing(call):
            return ["So be it."]
        again = "has 28 guests." in text_of(call) and "It comes from Frome." in text_of(call)
        return [
            "In Frome there are 28 guests. The party is nice."
            if again
            else "It comes from Frome. It has 28 guests."
        ]

    inference.script = script
    async with windowed(settings, inference) as (client, name, news):
        said = (
            "The cheese for the table comes from Frome this year, in a basket with straw.",
            "The party for my mother has 28 guests, as far as I can count them.",
            "It is a nice party, with a garden and with music from the school.",
            "It is a nice cheese, with bread and with apples from the neighbours.",
        )
        for number, text in enumerate([*said, said[2]]):
            await say(client, name, text)
            if number in (2, 4):  # 6 lines, and 6 again
                await until_told(news, "compacted", number // 2)
        summaries = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        [rolled] = [each["text"] for each in summaries if each["superseded_by"] is None]
        assert rolled == "The party is nice."


async def test_a_model_that_repeats_what_it_reads_repeats_no_heading(
    settings: Settings, inference: ScriptedInference
) -> None:
    inference.script = lambda call: ["Trees need water."] if summarizing(call) else ["So be it."]
    async with windowed(settings, inference) as (client, name, news):
        for number in range(10):
            await say(client, name, f"The tree in the yard needs water again, number {number} of ours.")
            if number % 3 == 2:
                await until_told(news, "compacted", number // 3 + 1)
        read = [text_of(call) for call in inference.calls if text_of(call).startswith("Summarize the conv")]
        assert any("Trees need water." in text for text in read), "the rolling summary goes on"
        assert not [text for text in read for heading in HEADINGS.values() if heading in text]


async def test_the_standard_model_writes_no_summaries_and_sees_one_where_it_is_asked_for(
    settings: Settings, inference: ScriptedInference
) -> None:
    weights = settings.data_dir / "models/hearth/smollm2-135m-hearth/smollm2-135m-hearth.gguf"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(bundled("models/demo/hearth-demo.gguf").read_bytes())
    window = changed(settings, "memory", window_messages=6, window_summarized=4)
    async with connected(changed(window, "model", name="smollm2-135m-hearth"), inference) as client:
        name = await start(client, policy="window")
        async with listening(client, name) as news:
            for number in range(4):
                await say(
                    client, name, f"Zoe paid {number + 10} for the tree in the yard, which needs water."
                )
            await until_told(news, "compacted")
        [summary] = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        assert summary["prompt_name"] == "extract" and not any(map(summarizing, inference.calls))
        idle = (await say(client, name, "I am so tired today."))["budget"]
        assert "conversation" not in idle["blocks"] and any(
            "summaries" in each["what"] for each in idle["left_out"]
        )
        assert "conversation" in (await say(client, name, "What did Zoe pay for?"))["budget"]["blocks"]
        continued = (await client.post(f"/v1/conversations/{name}/rollover")).json()["id"]
        [summary] = (await client.get(f"/v1/conversations/{continued}/summaries")).json()["data"]
        assert "Zoe paid 10" in summary["text"] and not any(map(summarizing, inference.calls))
