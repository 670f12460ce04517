"""A conversation's event stream: compaction that yields to messages and resumes, facts, the end."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall, HostHealth
from gateway.inference.speed import Speed
from gateway.memory.summaries.extract import EXTRACT_VERSION
from gateway.store.db import Database
from gateway.store.keys import create_key, revoke_key
from gateway.store.memory.conversations import any_conversation
from model_host.protocol import Delta, Finished
from tests.gateway.api.conftest import Client, changed, client_of, connected, in_process, live, make_key
from tests.gateway.api.conversations.test_conversations import say, start, talker, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE, until

News = list[tuple[str, dict[str, Any]]]


def summarizing(call: GenerateCall) -> bool:
    return text_of(call).startswith("Summarize the conversation") or "Pause the conversation" in text_of(call)


class Patient(ScriptedInference):
    """Summaries wait for permission to continue."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.may_go_on = asyncio.Event()
        self.summaries_begun = 0

    def answer(self, call: GenerateCall) -> list[str]:
        if "list facts worth remembering" in text_of(call):
            fact = {
                "op": "add",
                "key": "apples",
                "text": "Has apples.",
                "quote": "I have 10 apples",
                "reason": "said",
            }
            return [msgspec.json.encode([fact]).decode()]
        return ["[]"] if "list changes to the tasks" in text_of(call) else talker(call)

    async def generate(self, call: GenerateCall) -> AsyncIterator[Any]:
        if summarizing(call):
            self.summaries_begun += 1
            await self.may_go_on.wait()
        async for event in super().generate(call):
            yield event


@pytest.fixture
def inference() -> Patient:
    return Patient()


@asynccontextmanager
async def listening(client: Client, name: str) -> AsyncIterator[News]:
    """The events of a conversation."""
    news: News = []
    heard = asyncio.Event()

    async def listen() -> None:
        async with client.stream("GET", f"/v1/conversations/{name}/events", timeout=60) as reply:
            kind = ""
            async for line in reply.aiter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    news.append((kind, msgspec.json.decode(line.removeprefix("data: "))))
                    heard.set()

    task = asyncio.create_task(listen())
    try:
        await asyncio.wait_for(heard.wait(), 20)
        yield news
    finally:
        task.cancel()
        await asyncio.wait({task})


async def fill(client: Client, name: str) -> None:
    """Send messages until a compaction is due."""
    for number in range(60):
        if (await say(client, name, f"I have {number % 7 + 10} apples " * 5))["compaction"] == "queued":
            return
    raise AssertionError("no compaction was due after 60 messages")


async def until_told(news: News, kind: str, times: int = 1) -> dict[str, Any]:
    """Wait for an event of this kind that has come ``times`` times, and return its detail."""
    [detail, *_] = await until(
        lambda: [detail for name, detail in news if name == kind][times - 1 :], f"{kind} was not told"
    )
    return detail


async def test_compaction_yields_to_a_message_and_goes_on(settings: Settings, inference: Patient) -> None:
    small = changed(settings, "memory", context=1200, ceiling=300, floor=150, answer_tokens=100)
    async with connected(small, inference) as client:
        name = await start(client)
        async with listening(client, name) as news:
            assert news[0] == ("state", {"compacting": False})
            await fill(client, name)
            told = await until_told(news, "compacting")
            assert told["tokens"] > 300 and told["levels"] == ["now"]
            async with listening(client, name) as late:
                assert late[0] == ("state", {"compacting": True})
            said = await say(client, name, "Who has apples?")  # during the summary
            assert said["message"]["text"] == "So be it."
            await until_told(news, "compaction_stopped")
            assert (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"] == []
            await until_told(news, "compacting", 2)  # resumed after the reply
            assert inference.summaries_begun == 2
            inference.may_go_on.set()
            assert (await until_told(news, "compacted"))["summaries"] >= 1
            assert (await until_told(news, "facts"))["changed"] == ["apples"]
            kinds = [kind for kind, _ in news if kind.startswith("compact")]
            assert kinds[:4] == ["compacting", "compaction_stopped", "compacting", "compacted"], kinds
            assert (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
            await client.delete(f"/v1/conversations/{name}")
            await until_told(news, "erased")


async def test_a_listener_just_after_the_end_gets_the_end(settings: Settings, inference: Patient) -> None:
    """The conversation was erased between its lookup and the first event."""
    async with live(settings, inference) as server, client_of(server) as client:
        name = await start(client)
        services = server.server.config.app.state.services  # type: ignore[union-attr]
        conversation = await services.database.read(lambda c: any_conversation(c, name))
        await client.delete(f"/v1/conversations/{name}")
        async with asyncio.timeout(PATIENCE):
            assert [news.kind async for news in services.conversations.news(conversation)] == [
                "state",
                "erased",
            ]


async def test_lines_without_a_reply_do_not_stop_a_compaction(settings: Settings, inference: Patient) -> None:
    small = changed(
        settings, "memory", context=1200, ceiling=300, floor=150, answer_tokens=100, facts=False, tasks=False
    )
    async with connected(small, inference) as client:
        name = await start(client)
        async with listening(client, name) as news:
            await fill(client, name)
            await until_told(news, "compacting")
            for number in range(3):
                said = await say(client, name, f"Overheard line {number}", reply=False, speaker="Bob")
                assert said["message"] is None
            assert inference.summaries_begun == 1
            inference.may_go_on.set()
            await until_told(news, "compacted")
            assert not [kind for kind, _ in news if kind == "compaction_stopped"]
            [summary] = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
            assert summary["last"] < said["accepted"]["seq"] - 3
            context = (await client.get(f"/v1/conversations/{name}/context")).json()
            assert "Overheard line 2" in context["blocks"][-1]["text"]


class Measured(Patient):
    """Reports a decode speed of ``speed`` tokens/s. Summaries wait after their first piece."""

    speed = 100.0

    def __init__(self) -> None:
        super().__init__()
        self.first_piece = asyncio.Event()

    async def generate(self, call: GenerateCall) -> AsyncIterator[Any]:
        async for event in ScriptedInference.generate(self, call):
            if isinstance(event, Finished):
                spent = event.completion_tokens / self.speed
                event = msgspec.structs.replace(event, prefill_seconds=0.01, decode_seconds=spent)
            yield event
            if summarizing(call) and isinstance(event, Delta):
                self.first_piece.set()
                await self.may_go_on.wait()


@pytest.mark.parametrize(("speed", "stopped"), [(1000.0, False), (1.0, True)])
async def test_a_message_waits_for_a_compaction_that_ends_soon_and_stops_one_that_does_not(
    settings: Settings, speed: float, stopped: bool
) -> None:
    small = changed(
        settings, "memory", context=1200, ceiling=300, floor=150, answer_tokens=100, patience_seconds=30.0
    )
    inference = Measured()
    inference.speed = speed
    async with connected(small, inference) as client:
        name = await start(client)
        async with listening(client, name) as news:
            await fill(client, name)
            await asyncio.wait_for(inference.first_piece.wait(), PATIENCE)
            asked = asyncio.create_task(say(client, name, "Who has apples?"))
            if not stopped:
                await asyncio.sleep(0.2)
                assert not asked.done() and not any(kind == "compaction_stopped" for kind, _ in news)
                inference.may_go_on.set()
            said = await asked
            assert said["message"]["text"] == "So be it."
            assert ("now" in said["budget"]["blocks"]) == (not stopped)
            inference.may_go_on.set()
            await until_told(news, "compacted")
            kinds = [kind for kind, _ in news if kind.startswith("compact")]
            begun = ["compacting", "compaction_stopped"] if stopped else []
            assert kinds[: len(begun) + 2] == [*begun, "compacting", "compacted"]


async def test_an_extract_stands_in_for_a_rejected_summary_until_the_model_writes_one(
    settings: Settings, inference: Patient
) -> None:
    good = ""

    def script(call: GenerateCall) -> list[str]:
        return [good] if summarizing(call) else ["So be it."]

    inference.script = script
    inference.may_go_on.set()
    small = changed(settings, "memory", context=1200, ceiling=300, floor=150, answer_tokens=100)
    async with connected(small, inference) as client:
        name = await start(client)
        async with listening(client, name) as news:
            for number in range(30):  # no message falls out of the prompt without a summary
                said = await say(client, name, f"Tree {number + 10} needs water and some care again. " * 4)
                assert not any(left["why"].startswith("no room") for left in said["budget"]["left_out"])
            await until_told(news, "compacted")
        summaries = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        live_ones = [each for each in summaries if each["superseded_by"] is None]
        assert {(each["prompt_name"], each["prompt_version"]) for each in live_ones} == {
            ("extract", EXTRACT_VERSION)
        }
        assert "needs water" in live_ones[0]["text"]
    trees = dict.fromkeys(re.findall(r"Tree (\d+)", live_ones[0]["text"]))
    good = f"Trees that need water: {' '.join(trees)}."
    async with (
        connected(small, inference) as client,
        listening(client, name) as news,
    ):
        await say(client, name, "And then?")
        await until_told(news, "compacted")
        summaries = (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
        assert good in [each["text"] for each in summaries if each["superseded_by"] is None]
        good = ""
        rolled = await client.post(f"/v1/conversations/{name}/rollover")
        assert rolled.status_code == 201, rolled.text


async def test_a_rejected_summary_is_not_tried_again_in_the_same_run(
    settings: Settings, inference: Patient
) -> None:
    inference.script = lambda call: [""] if summarizing(call) else ["So be it."]
    inference.may_go_on.set()
    small = changed(settings, "memory", context=1200, ceiling=300, floor=150, answer_tokens=100)
    async with connected(small, inference) as client:
        name = await start(client)
        async with listening(client, name) as news:
            for number in range(12):  # messages without a reply stop no compaction
                text = f"Tree {number + 10} needs water and some care again. " * 4
                await client.post(f"/v1/conversations/{name}/messages", json={"text": text, "reply": False})
            await until_told(news, "compacted")
            await say(client, name, "And then?")
            await until_told(news, "compacted")
            asked = Counter(text_of(call) for call in inference.calls if summarizing(call))
            assert max(asked.values()) == 1  # the second attempt asks for fewer words


@pytest.mark.parametrize("first", ["revoked", "made"])
async def test_the_stream_ends_with_the_right_to_it(
    settings: Settings, inference: Patient, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Another process revoked its key, or created the first key after it was opened without one."""
    monkeypatch.setattr("gateway.api.streaming.streams._RECHECK_SECONDS", 0.05)
    key = make_key(settings, "ann", "user") if first == "revoked" else ""
    async with live(settings, inference) as server:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with client_of(server, headers=headers) as client:
            name = await start(client)
            async with listening(client, name) as news:
                await asyncio.to_thread(hearth_key, settings, first)
                told = await until_told(news, "error")
                assert (told["error"]["type"], told["error"]["code"]) == (
                    "authentication_error",
                    "unauthorized",
                )
                assert [kind for kind, _ in news] == ["state", "error"]
            assert (await client.get(f"/v1/conversations/{name}/events")).status_code == 401


def hearth_key(settings: Settings, what: str) -> None:
    command = ["revoke", "ann"] if what == "revoked" else ["create", "eve"]
    flags = ["--data-dir", str(settings.data_dir)]
    subprocess.run(
        [sys.executable, "-m", "gateway.cli.main", "key", *command, *flags], check=True, capture_output=True
    )


async def test_no_news_reaches_a_revoked_key(settings: Settings, inference: Patient) -> None:
    """Also between two periodic checks: the key is looked up before each event."""
    database = Database(settings.data_dir / "hearth.db")
    database.open()
    keys = [
        database.write_sync(lambda c, name=name: create_key(c, name, "user", "ann"))[1] for name in ("a", "b")
    ]
    async with (
        live(settings, inference) as server,
        client_of(server, headers={"x-api-key": keys[0]}) as client,
    ):
        name = await start(client)
        async with listening(client, name) as news:
            database.write_sync(lambda connection: revoke_key(connection, "a"))
            database.close()
            await client.delete(f"/v1/conversations/{name}", headers={"x-api-key": keys[1]})
            await until_told(news, "error")
            assert [kind for kind, _ in news] == ["state", "error"]


async def test_progress_while_a_long_prompt_is_read(settings: Settings) -> None:
    inference = ScriptedInference(talker)
    inference.state = HostHealth(state="ready", speed=Speed(100.0, 10.0))
    inference.reads = [(300, 900), (600, 900)]
    async with in_process(settings, inference) as client:
        url = f"/v1/conversations/{await start(client)}/messages"
        body = (await client.post(url, json={"text": "Hi", "stream": True})).text
    first, second = (msgspec.json.decode(data) for data in re.findall(r"event: reading\r?\ndata: (.+)", body))
    assert (first["done"], first["total"], second["done"]) == (300, 900, 600)
    assert first["seconds_left"] > 6.0 > second["seconds_left"] > 3.0
