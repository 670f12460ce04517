"""The bot when its gateway is away, slow, busy, or does not let it in: what people read then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall, GenerationEvent
from model_host.protocol import Queued
from tests.clients.irc.conftest import CHANNEL, MakeBot, configured, running
from tests.clients.irc.ircd import Ngircd, free_port
from tests.clients.irc.person import Person, person
from tests.gateway.api.conftest import changed, client_of, live, make_key
from tests.gateway.api.scripted import ScriptedInference

CHAT = {"channels": [{"name": CHANNEL, "mode": "chat"}], "private": "chat"}


async def test_a_gateway_that_is_not_there(shared_ngircd: Ngircd, tmp_path: Path, alice: Person) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    async with running(configured(shared_ngircd.port, nowhere, tmp_path, network=CHAT)):
        for text in ("!wiki who?", "!chat hi"):
            alice.say(CHANNEL, text)
            found = await alice.answer()
            assert found.startswith("alice: I cannot reach my server") and found[-11:-9] == "[#"
        alice.say(CHANNEL, "!forget me")
        found = await alice.answer()
        assert found.startswith("alice: I cannot reach my server"), "nothing is said to be gone that is not"


async def test_a_slow_gateway_and_the_place_in_the_queue(
    make_bot: MakeBot, shared_ngircd: Ngircd, inference: ScriptedInference, alice: Person, bob: Person
) -> None:
    inference.delay = 1.5
    gateway, replies = {"max_concurrent": 1, "max_waiting": 1}, {"patience_seconds": 0.3}
    async with (
        make_bot(gateway=gateway, replies=replies),
        person(shared_ngircd.port, "carol", CHANNEL) as carol,
    ):
        alice.say("hearth", "who made Befunge?")
        assert await alice.answer() == "I am still working on it."
        bob.say(CHANNEL, "hearth: who made Chef?")
        assert await bob.answer() == "bob: one other question is before yours, please bear with me."
        carol.say(CHANNEL, "hearth: and Malbolge?")
        assert "too many questions" in await carol.expect_from("hearth", "carol: ")
        inference.delay = 0.0
        assert await alice.private() == "The wiki does not say."
        assert (
            await bob.answer()
            == "carol: too many questions are waiting already, please try again in a while."
        )
        assert await bob.answer() == "bob: The wiki does not say."


class Queueing(ScriptedInference):
    """Others are answered first, until ``turn`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = asyncio.Event()

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        yield Queued(call.id, 3, 42.0)
        await self.turn.wait()
        async for event in super().generate(call):
            yield event


async def test_the_place_in_the_queue_of_the_gateway(
    shared_ngircd: Ngircd, settings: Settings, tmp_path: Path, alice: Person
) -> None:
    patient, queueing = {"patience_seconds": 0.3}, Queueing()
    async with (
        live(settings, queueing) as server,
        running(configured(shared_ngircd.port, server.url, tmp_path, replies=patient)),
    ):
        for order in ("!wiki who made Befunge?", "!chat hello"):
            queueing.turn.clear()
            alice.say(CHANNEL, order)
            told = "alice: 3 other questions are before yours (about 42 s), please bear with me."
            assert await alice.answer() == told
            queueing.turn.set()
            assert await alice.answer() != told


async def test_a_gateway_that_gives_up(
    shared_ngircd: Ngircd,
    settings: Settings,
    inference: ScriptedInference,
    tmp_path: Path,
    alice: Person,
    bob: Person,
) -> None:
    """Its deadline, ours, and a key that is not taken."""
    inference.delay = 5.0
    async with (
        live(changed(settings, "ask", deadline_seconds=0.3, target_seconds=0.3), inference) as server,
        running(configured(shared_ngircd.port, server.url, tmp_path)),
    ):
        alice.say(CHANNEL, "hearth: who made Befunge?")
        assert (await alice.answer()).startswith("alice: that took too long")
    impatient = {"timeout_seconds": 0.3}
    async with (
        live(settings, inference) as server,
        running(configured(shared_ngircd.port, server.url, tmp_path, gateway=impatient, network=CHAT)),
    ):
        alice.say(CHANNEL, "hearth: hello")
        assert (await alice.answer()).startswith("alice: that took too long")
        alice.say(CHANNEL, "!wiki who made Befunge?")
        assert (await alice.answer()).startswith("alice: that took too long")
    make_key(settings, "somebody", "user")
    async with (
        live(settings, inference) as server,
        running(configured(shared_ngircd.port, server.url, tmp_path)),
    ):
        alice.say(CHANNEL, "hearth: who made Befunge?")
        assert (await alice.answer()).startswith("alice: my server does not let me in")


@pytest.mark.soak  # the gateway wants a pause of five seconds
async def test_a_busy_gateway_is_tried_again(
    shared_ngircd: Ngircd, settings: Settings, inference: ScriptedInference, tmp_path: Path, alice: Person
) -> None:
    inference.delay = 0.5
    settings = changed(settings, "ask", max_concurrent=1)
    async with live(settings, inference) as server, client_of(server) as http:
        other = asyncio.create_task(http.post("/ask", json={"question": "who?"}, timeout=30))
        await inference.begun.acquire()
        async with running(configured(shared_ngircd.port, server.url, tmp_path)):
            alice.say(CHANNEL, "hearth: who made Befunge?")
            assert await alice.answer() == "alice: The wiki does not say.", (
                "after the pause that was asked for"
            )
        assert (await other).status_code == 200
