"""Messages and changes of a conversation take turns; no lock remains afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from gateway.memory.service import Conversations
from tests.gateway.api.conftest import Client, changed, client_of, live
from tests.gateway.api.conversations.test_conversations import say, start, talker, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

Act = Callable[[Client, str], Coroutine[Any, Any, httpx2.Response]]


class Gated(ScriptedInference):
    """Each generation waits for a permit of ``gate``; ``most`` is the maximum of concurrent ones."""

    def __init__(self) -> None:
        super().__init__(talker)
        self.gate = asyncio.Semaphore(0)
        self.under_way: list[str] = []
        self.most = 0

    async def generate(self, call: GenerateCall) -> AsyncIterator[Any]:
        self.under_way.append(text_of(call))
        self.most = max(self.most, len(self.under_way))
        try:
            await self.gate.acquire()
            async for event in super().generate(call):
                yield event
        finally:
            self.under_way.remove(text_of(call))

    def answers(self, line: str) -> bool:
        """Whether the reply to ``line`` is being generated."""
        return any(text.endswith(line) for text in self.under_way)


class Talk:
    """A conversation on a real server."""

    def __init__(self, client: Client, name: str, conversations: Conversations) -> None:
        self.client = client
        self.name = name
        self.turns = conversations.turns

    async def waiting(self, number: int) -> None:
        """Wait until ``number`` tasks hold the conversation's turn or wait for it."""
        await until(lambda: self.turns.users(self.name) == number)

    def post(self, text: str) -> asyncio.Task[dict[str, Any]]:
        return asyncio.create_task(say(self.client, self.name, text))


@asynccontextmanager
async def talking(settings: Settings, inference: Gated) -> AsyncIterator[Talk]:
    quiet = changed(
        settings, "memory", context=1200, ceiling=500, floor=220, answer_tokens=100, facts=False, tasks=False
    )
    async with live(quiet, inference) as server, client_of(server) as client:
        conversations = server.server.config.app.state.services.conversations  # type: ignore[union-attr]
        yield Talk(client, await start(client), conversations)


async def test_a_message_that_comes_while_the_turn_is_passed_on_waits_as_well(settings: Settings) -> None:
    inference = Gated()
    async with talking(settings, inference) as talk:
        first = talk.post("line one")
        await until(lambda: inference.answers("line one"))
        second = talk.post("line two")
        await talk.waiting(2)
        inference.gate.release()
        assert (await first)["message"]["text"] == "So be it."
        await until(lambda: inference.answers("line two"))
        url = f"/v1/conversations/{talk.name}/messages"
        async with talk.client.stream("POST", url, json={"text": "line three", "stream": True}) as reply:
            lines = reply.aiter_lines()
            assert await anext(lines) == "event: held"
            inference.gate.release()
            assert (await second)["message"]["text"] == "So be it."
            inference.gate.release()
            assert "event: done" in [line async for line in lines]
        assert inference.most == 1
        log = (await talk.client.get(url)).json()["data"]
        assert [each["text"] for each in log if each["role"] == "user"] == [
            "line one",
            "line two",
            "line three",
        ]
        assert [each["role"] for each in log] == ["user", "assistant"] * 3
        assert not talk.turns.keys


async def compact(client: Client, name: str) -> httpx2.Response:
    return await client.post(f"/v1/conversations/{name}/compact")


async def convert(client: Client, name: str) -> httpx2.Response:
    return await client.post(f"/v1/conversations/{name}/convert", json={"to": 1})


async def rollover(client: Client, name: str) -> httpx2.Response:
    return await client.post(f"/v1/conversations/{name}/rollover")


async def erase(client: Client, name: str) -> httpx2.Response:
    return await client.delete(f"/v1/conversations/{name}")


async def forget(client: Client, name: str) -> httpx2.Response:
    return await client.delete(f"/v1/conversations/{name}/messages", params={"speaker": "ann"})


@pytest.mark.parametrize("act", [compact, convert, rollover, erase, forget])
async def test_a_change_of_the_whole_conversation_runs_beside_no_message(
    settings: Settings, act: Act
) -> None:
    """It runs after two messages, of which the second has waited too, and before the third."""
    inference = Gated()
    async with talking(settings, inference) as talk:
        for number in range(12):  # something to compact
            told = f"Fact {number}: Huế is {number * 11 + 100} km away"
            await say(talk.client, talk.name, told, reply=False)
            await say(talk.client, talk.name, "Noted.", role="assistant", reply=False)
        first = talk.post("line one")
        await until(lambda: inference.answers("line one"))
        second = talk.post("line two")
        await talk.waiting(2)
        inference.gate.release()
        await first
        await until(lambda: inference.answers("line two"))
        changing = asyncio.create_task(act(talk.client, talk.name))
        await talk.waiting(2)
        assert inference.answers("line two") and not changing.done()
        inference.gate.release()
        assert (await second)["message"]["text"] == "So be it."
        if act in (compact, rollover):
            await until(lambda: len(inference.under_way) == 1)
            third = asyncio.create_task(
                talk.client.post(f"/v1/conversations/{talk.name}/messages", json={"text": "line three"})
            )
            await talk.waiting(2)
            inference.gate.release()
            assert (await changing).is_success
            inference.gate.release()
            assert (await third).is_success
        assert (await changing).is_success, changing.result().text
        assert inference.most == 1
        assert not talk.turns.keys


async def test_a_change_finds_the_conversation_as_the_change_before_it_left_it(settings: Settings) -> None:
    """Both arrive while a message is answered; the second must not restore a forgotten name."""
    inference = Gated()
    async with talking(settings, inference) as talk:
        name = talk.name = await start(talk.client, kind="channel", participants=["ann", "bob"])
        said = talk.post("line one")
        await until(lambda: inference.answers("line one"))
        forgetting = asyncio.create_task(forget(talk.client, name))
        await talk.waiting(2)
        rolling = asyncio.create_task(rollover(talk.client, name))
        await talk.waiting(3)
        inference.gate.release()
        inference.gate.release()
        await said
        assert (await forgetting).is_success
        new = (await rolling).json()
        old = (await talk.client.get(f"/v1/conversations/{name}")).json()
        assert (new["participants"], old["participants"]) == (["bob"], ["bob"])


async def test_nothing_is_changed_in_a_conversation_that_was_erased_meanwhile(settings: Settings) -> None:
    inference = Gated()
    async with talking(settings, inference) as talk:
        said = talk.post("line one")
        await until(lambda: inference.answers("line one"))
        changing: list[asyncio.Task[httpx2.Response]] = []
        for number, act in enumerate((erase, compact, convert, rollover, forget), 2):
            changing.append(asyncio.create_task(act(talk.client, talk.name)))
            await talk.waiting(number)
        inference.gate.release()
        await said
        assert [reply.status_code for reply in await asyncio.gather(*changing)] == [200, 404, 404, 404, 404]
        assert not talk.turns.keys


async def test_a_cancelled_waiter_leaves_no_lock(settings: Settings) -> None:
    inference = Gated()
    async with talking(settings, inference) as talk:
        first = talk.post("line one")
        await until(lambda: inference.answers("line one"))
        second = talk.post("line two")
        changing = asyncio.create_task(compact(talk.client, talk.name))
        await talk.waiting(3)
        for each in (second, changing):
            each.cancel()
            await asyncio.wait({each})
        await talk.waiting(1)
        inference.gate.release()
        await first
        assert not talk.turns.keys


async def test_no_more_than_sixteen_messages_wait(settings: Settings) -> None:
    inference = Gated()
    async with talking(settings, inference) as talk:
        posted = [talk.post(f"line {number}") for number in range(16)]
        await talk.waiting(16)
        refused = await talk.client.post(
            f"/v1/conversations/{talk.name}/messages", json={"text": "one too many"}
        )
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
        for _ in posted:
            inference.gate.release()
        assert {said["message"]["text"] for said in await asyncio.gather(*posted)} == {"So be it."}
        assert inference.most == 1
        assert not talk.turns.keys
