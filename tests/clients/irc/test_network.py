"""Servers that restart, cuts in the network, lost nicks and kicks: on a real ngIRCd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from clients.irc.config import ChannelConfig
from tests.clients.irc.conftest import CHANNEL, MakeBot, configured, in_channels, running
from tests.clients.irc.ircd import Ngircd, folder
from tests.clients.irc.person import person
from tests.gateway.api.conftest import LiveServer
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until


@pytest.fixture
def ngircd() -> Iterator[Ngircd]:
    """A server of its own, with a password."""
    with folder() as made:
        started = Ngircd(made)
        yield started
        started.stop()


class Cable:
    """A wire to a server that can be cut: either loudly, or so that nobody notices."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self.mute = False
        self.closed = False
        self._target = target
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.close()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._writers += [writer, back]
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        except ConnectionError:
            return
        finally:
            writer.close()
            back.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(4096):
            if not self.mute:
                writer.write(chunk)
        writer.close()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@asynccontextmanager
async def cable(target: int) -> AsyncIterator[Cable]:
    made = Cable(target)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.cut()
        server.close()
        await server.wait_closed()


async def test_a_server_that_restarts_while_a_question_is_being_answered(
    ngircd: Ngircd, server: LiveServer, inference: ScriptedInference, tmp_path: Path
) -> None:
    inference.delay = 0.5
    async with cable(ngircd.port) as wire, running(configured(wire.port, server.url, tmp_path)) as bot:
        network = bot.networks[0]
        async with person(ngircd.port, "alice", CHANNEL) as alice:
            alice.say(CHANNEL, "hearth: who made Befunge?")
            await inference.begun.acquire()
            ngircd.stop()
            await until(lambda: not network.ready)
        await until(lambda: network.outbox.waiting == 1)  # the answer, which nobody can hear
        wire.closed = True
        ngircd.start()
        async with person(ngircd.port, "alice", CHANNEL) as alice:
            wire.closed = False
            assert await alice.answer() == "alice: The wiki does not say.", "the answer was kept"
            alice.say(CHANNEL, "hearth: and now?")
            assert await alice.answer() == "alice: The wiki does not say."
        assert network.connections == 2


@pytest.mark.parametrize("loud", [True, False])
async def test_a_cut_in_the_middle(
    loud: bool, shared_ngircd: Ngircd, server: LiveServer, tmp_path: Path
) -> None:
    """As in a netsplit: everybody is still there afterwards, and so is our old self for a while."""
    async with cable(shared_ngircd.port) as wire, person(shared_ngircd.port, "alice", CHANNEL) as alice:
        config = configured(wire.port, server.url, tmp_path, network={"silence_seconds": 0.5})
        async with running(config) as bot:
            network = bot.networks[0]
            if loud:
                wire.cut()
            else:
                wire.mute = True
                await until(lambda: not network.ready)
                wire.mute = False
            await until(lambda: network.connections == 2)
            await in_channels(bot)
            await until(lambda: network.nick == "hearth", seconds=60)
            alice.say(CHANNEL, "hearth: who made Befunge?")
            assert await alice.answer() == "alice: The wiki does not say."


async def test_a_taken_nick_is_waited_for(make_bot: MakeBot, shared_ngircd: Ngircd) -> None:
    with capture_logs() as logs:
        await _wait_for_a_taken_nick(make_bot, shared_ngircd)
    changes = [(each["old"], each["nick"]) for each in logs if each["event"] == "nick changed"]
    assert changes == [("hearth_", "hearth")]


async def _wait_for_a_taken_nick(make_bot: MakeBot, shared_ngircd: Ngircd) -> None:
    async with (
        person(shared_ngircd.port, "hearth", CHANNEL) as squatter,
        person(shared_ngircd.port, "alice", CHANNEL) as alice,
        make_bot() as bot,
    ):
        network = bot.networks[0]
        assert network.nick == "hearth_"
        alice.say(CHANNEL, "hearth_: who made Befunge?")
        assert await alice.answer("hearth_") == "alice: The wiki does not say."
        squatter.send("NICK somebody")
        await until(lambda: network.nick == "hearth")
        alice.say(CHANNEL, "hearth: who made Befunge?")
        assert await alice.answer() == "alice: The wiki does not say."


async def test_several_networks_and_channels_at_once(
    ngircd: Ngircd, shared_ngircd: Ngircd, server: LiveServer, tmp_path: Path
) -> None:
    one = configured(shared_ngircd.port, server.url, tmp_path).networks[0]
    channels = [
        ChannelConfig(name="#quiet", mode="chat", memory="off"),
        ChannelConfig(name="#test", prefix="?"),
    ]
    two = msgspec.structs.replace(one, name="two", port=ngircd.port, nick="ember", channels=channels)
    config = msgspec.structs.replace(configured(1, server.url, tmp_path), networks=[one, two])
    async with (
        running(config),
        person(shared_ngircd.port, "alice", CHANNEL) as alice,
        person(ngircd.port, "alice", CHANNEL, "#quiet") as bob,
    ):
        alice.say(CHANNEL, "hearth: who made Befunge?")
        bob.say(CHANNEL, "?who made Befunge?")
        bob.say("#quiet", "?who")
        assert await alice.answer("hearth") == "alice: The wiki does not say.", (
            "one question each, on each network"
        )
        assert await bob.answer("ember") == "alice: The wiki does not say."
        bob.say("#quiet", "ember: hello")
        assert await bob.answer("ember") == "alice: Chris Pressey created Befunge [1]."
        state = tmp_path / "state.json"
        await until(lambda: state.exists() and state.read_text().count("/#test") == 2)
        assert "#quiet" not in state.read_text()


async def test_it_comes_back_after_a_kick(make_bot: MakeBot, shared_ngircd: Ngircd) -> None:
    async with person(shared_ngircd.port, "alice", "#kick") as alice:
        network = {"channels": [{"name": "#kick"}, {"name": "#Other"}]}
        async with make_bot(network=network) as bot:
            alice.send("KICK #kick hearth :out")
            await alice.expect("KICK #kick hearth")
            await alice.expect(":hearth!.* JOIN :?#kick")
            await in_channels(bot)
            alice.say("#kick", "hearth: who made Befunge?")
            assert await alice.answer() == "alice: The wiki does not say."


async def test_the_wrong_password(server: LiveServer, tmp_path: Path) -> None:
    with folder() as made:
        guarded = Ngircd(made, password="opensesame")
        try:
            config = configured(guarded.port, server.url, tmp_path, network={"password": "opensesame"})
            async with running(config) as bot:
                assert bot.networks[0].ready
            config = configured(guarded.port, server.url, tmp_path, network={"password": "wrong"})
            with capture_logs() as logs:
                async with running(config, joined=False):
                    await until(lambda: any("assword" in str(each.get("reason")) for each in logs))
        finally:
            guarded.stop()
