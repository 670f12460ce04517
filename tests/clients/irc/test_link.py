"""What servers do that they should not, or seldom do: played by hand, byte by byte."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from clients.irc.protocol.connection import Login
from tests.clients.irc.conftest import configured, in_channels, running
from tests.clients.irc.raw_server import Peer, RawServer, raw_server
from tests.waiting import until

NOWHERE = "http://127.0.0.1:1"
SASL = {"account": "hearth", "password": "pässword"}


async def friendly(peer: Peer) -> None:
    await peer.welcome()
    await peer.let_in("#test")
    await peer.rest()


def reasons(logs: list[Any]) -> list[str]:
    return [str(each["reason"]) for each in logs if each["event"] == "not connected"]


async def fails(server: RawServer, state: Path, **changes: Any) -> list[str]:
    """Why the bot is not connected, from its log, after two attempts."""
    with capture_logs() as logs:
        async with running(configured(server.port, NOWHERE, state, **changes), joined=False):
            await until(lambda: len(reasons(logs)) >= 2)
    return reasons(logs)


async def test_capabilities_in_several_lines_and_a_login(tmp_path: Path) -> None:
    async def play(peer: Peer) -> None:
        await peer.until("CAP LS")
        peer.send(
            ":s CAP * LS * :account-notify message-tags",
            ":s CAP * LS * :a b=c",
            ":s CAP * LS :sasl=EXTERNAL,PLAIN x",
        )
        assert await peer.until("CAP REQ") == "CAP REQ :message-tags sasl"
        peer.send(":s CAP hearth ACK :sasl message-tags ")
        assert await peer.line() == "AUTHENTICATE PLAIN"
        peer.send("AUTHENTICATE +")
        sent = (await peer.line()).removeprefix("AUTHENTICATE ")
        assert base64.b64decode(sent).decode() == "hearth\0hearth\0pässword"
        peer.send(":s 900 hearth h!h@h hearth :in", ":s 903 hearth :in")
        assert await peer.line() == "CAP END"
        peer.send(":s 001 hearth :hi", ":s 376 hearth :end")
        await peer.let_in("#test")
        await peer.rest()

    async with (
        raw_server(play) as server,
        running(configured(server.port, NOWHERE, tmp_path, network={"sasl": SASL})) as bot,
    ):
        assert bot.networks[0].link.joined("#test")


@pytest.mark.parametrize("size", [10, 290, 291, 300])
def test_a_long_response_goes_in_chunks(size: int) -> None:
    lines = Login("PLAIN", "a", "p" * size).lines()
    assert all(len(line) <= 400 for line in lines)
    assert len(lines[-1]) < 400 and all(len(line) == 400 for line in lines[:-1])
    assert base64.b64decode("".join(line for line in lines if line != "+")).decode() == "a\0a\0" + "p" * size


def test_an_empty_response_is_a_plus() -> None:
    assert Login("EXTERNAL").lines() == ["+"]


@pytest.mark.parametrize(
    ("offer", "then", "reason"),
    [
        ("message-tags", [], "offers no SASL"),
        ("sasl=EXTERNAL", [], "no SASL PLAIN"),
        ("sasl", [":s CAP hearth NAK :sasl"], "refused SASL"),
        (
            "sasl",
            [":s CAP hearth ACK :sasl", ":s 904 hearth :SASL authentication failed"],
            "authentication failed",
        ),
        ("sasl", [":s CAP hearth ACK :sasl", "AUTHENTICATE bm9uY2U="], "challenge"),
        ("sasl", [":s 001 hearth :hi"], "without the account"),
    ],
)
async def test_without_its_account_it_does_not_go_on(
    offer: str, then: list[str], reason: str, tmp_path: Path
) -> None:
    async def play(peer: Peer) -> None:
        await peer.until("CAP LS")
        peer.send(f":s CAP * LS :{offer}", *then)
        await peer.rest()
        assert b"JOIN" not in peer.received and b"password" not in peer.received

    async with raw_server(play) as server:
        found = await fails(server, tmp_path, network={"sasl": SASL})
    assert reason in found[0] and not any("password" in each for each in found)


async def test_broken_lines_do_not_end_the_connection(tmp_path: Path) -> None:
    async def play(peer: Peer) -> None:
        await peer.welcome()
        await peer.let_in("#test")
        peer.send(
            b"", b" ", b":", b"@", b"@tag", b":x", b"\xff\xfe\xfd", b":a!b@c@d!e PRIVMSG #test :x", b"PRIVMSG", b"JOIN",
            b":bob PRIVMSG", b":bob!b@h KICK", b":bob!b@h NICK", b":s 353 hearth", b":s 005 hearth CHANMODES=x :y",
            b"CAP", b":s CAP * ACK", b"@time=" + b"9" * 2000 + b" PING :x", b":bob!b@h PRIVMSG hearth :\x01VERSION",
            b":s MODE #test +o", b"ERROR", b":s 433", "@+a=\\ü;account=é :bob!b@h PRIVMSG #test :hello".encode(),
        )  # fmt: skip
        peer.send("PING :still there?")
        await peer.until("PONG")
        await peer.rest()

    async with raw_server(play) as server, running(configured(server.port, NOWHERE, tmp_path)) as bot:
        await until(lambda: b"PONG :still there?" in server.peers[0].received)
        assert bot.networks[0].ready and bot.networks[0].link.joined("#test")
    assert len(server.peers) == 1


async def test_a_line_without_end_ends_the_connection(tmp_path: Path) -> None:
    async def play(peer: Peer) -> None:
        await peer.welcome()
        peer.send(b"x" * 200_000)
        await peer.rest()

    async with raw_server(play) as server:
        assert "no end" in (await fails(server, tmp_path))[0]


async def test_a_silent_server_is_left(tmp_path: Path) -> None:
    """As after a cut in the middle of the network: the connection seems to be there, and nothing comes."""

    async def play(peer: Peer) -> None:
        await peer.welcome()
        await peer.let_in("#test")
        assert await peer.until("PING") == "PING hearth"
        await peer.rest()

    async with raw_server(play, friendly) as server:
        config = configured(server.port, NOWHERE, tmp_path, network={"silence_seconds": 0.2})
        with capture_logs() as logs:
            async with running(config) as bot:
                await until(lambda: len(server.peers) >= 2)
                await in_channels(bot)
    assert "fallen silent" in reasons(logs)[0]


async def test_every_nick_taken_ends_in_a_new_attempt(tmp_path: Path) -> None:
    tried: list[str] = []

    async def play(peer: Peer) -> None:
        await peer.until("CAP LS")
        peer.send(":s CAP * LS :")
        while True:
            nick = (await peer.until("NICK ")).removeprefix("NICK ")
            tried.append(nick)
            peer.send(f":s 433 * {nick} :Nickname is already in use")

    async with raw_server(play) as server:
        found = await fails(server, tmp_path, bot={"nick": "hearth", "alternatives": ["ember"]})
    assert "every nick is taken" in found[0]
    assert tried[:2] == ["hearth", "ember"] and len(set(tried[:12])) > 6
    assert all(len(nick) <= 9 for nick in tried), "short enough for every server"


async def test_the_last_words_of_a_server_are_told(tmp_path: Path) -> None:
    async def play(peer: Peer) -> None:
        await peer.until("CAP LS")
        peer.send("ERROR :Closing link: (banned)")

    async with raw_server(play) as server:
        assert (await fails(server, tmp_path))[0] == "Closing link: (banned)"


async def test_nothing_listens(tmp_path: Path) -> None:
    async with raw_server(friendly) as server:
        port = server.port
    with capture_logs() as logs:
        async with running(configured(port, NOWHERE, tmp_path), joined=False):
            await until(lambda: len(reasons(logs)) >= 3)
    waits = [each["next_try_seconds"] for each in logs if each["event"] == "not connected"]
    assert all(0 <= wait <= 0.4 for wait in waits)


async def test_tags_count_only_when_they_were_agreed_on(tmp_path: Path) -> None:
    """A server that does not know account tags passes on whatever a client claims."""
    order = "@account=boss :eve!e@h PRIVMSG hearth :!die"

    async def play(peer: Peer) -> None:
        await peer.welcome()
        await peer.let_in("#test")
        peer.send(order)
        assert "operators" in await peer.until("PRIVMSG eve")
        await peer.rest()

    async with raw_server(play) as server:
        config = configured(server.port, NOWHERE, tmp_path, network={"admins": ["boss"]})
        async with running(config):
            await until(lambda: b"operators" in server.peers[0].received)


async def test_replies_survive_a_lost_connection_for_a_while(tmp_path: Path) -> None:
    async def cut(peer: Peer) -> None:
        await peer.welcome()
        await peer.let_in("#test")

    async def late(peer: Peer) -> None:
        await peer.welcome()
        await peer.until("JOIN #test")
        await asyncio.sleep(0.1)
        assert b"PRIVMSG" not in peer.received, "not before the channel is joined"
        peer.send(":hearth!~h@host JOIN #test")
        assert await peer.until("PRIVMSG") == "PRIVMSG #test :alice: here it is"
        await peer.rest()

    async with raw_server(cut, late) as server:
        async with running(configured(server.port, NOWHERE, tmp_path), joined=False) as bot:
            await until(lambda: len(server.peers) == 1 and not bot.networks[0].ready)
            bot.networks[0].say("#test", "alice: here it is")
            await until(lambda: bool(server.peers[-1].received.count(b"here it is")))
            assert bot.networks[0].outbox.dropped == 0
        config = configured(server.port, NOWHERE, tmp_path, replies={"keep_seconds": 0.05})
        async with running(config, joined=False) as bot:
            bot.networks[0].say("#elsewhere", "alice: too late")
            await until(lambda: bot.networks[0].outbox.dropped == 1)


async def test_secrets_are_sent_and_never_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The server's password, the account's, a channel's key and the gateway's, through a failure as well."""

    async def play(peer: Peer) -> None:
        if (await peer.line()).startswith("POST"):  # the bot's question to the gateway
            await peer.until("Authorization")
            peer.send("HTTP/1.1 500 Oh", "Content-Length: 0", "")
            return
        peer.send(":s CAP * LS :sasl=PLAIN", ":s CAP * ACK :sasl", "AUTHENTICATE +")
        peer.send(
            ":s 900 hearth h!h@h hearth :in",
            ":s 903 hearth :in",
            ":s 001 hearth :hi",
            ":s 422 hearth :no motd",
        )
        await peer.until("JOIN")
        peer.send(":hearth!h@h JOIN #test", ":bob!b@h PRIVMSG #test :hearth: hello")
        await peer.until("PRIVMSG #test")
        peer.send("ERROR :go away")

    network = {
        "password": "canary-server", "sasl": {"account": "a", "password": "canary-account"},
        "channels": [{"name": "#test", "key": "canary-channel"}],
    }  # fmt: skip
    (tmp_path / "key").write_text("canary-gateway")
    caplog.set_level("DEBUG")
    async with raw_server(play) as server:
        gateway = {
            "url": f"http://127.0.0.1:{server.port}",
            "key_file": str(tmp_path / "key"),
            "timeout_seconds": 30,
        }
        config = configured(server.port, NOWHERE, tmp_path, network=network, gateway=gateway)
        with capture_logs() as logs:
            async with running(config):
                await until(lambda: len(reasons(logs)) >= 1)
        sent = b"".join(peer.received for peer in server.peers)
    assert b"PASS canary-server" in sent and base64.b64encode(b"a\0a\0canary-account") in sent
    assert b"JOIN #test canary-channel" in sent and b"Bearer canary-gateway" in sent
    told = caplog.text + repr(logs)
    assert "no answer" in told and "canary" not in told and "Y2FuYXJ5" not in told
