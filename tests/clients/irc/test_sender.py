"""Thousands of hostile outputs through everything between an answer and the socket; every byte is looked at."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from clients.irc.gateway import Answer, Citation
from clients.irc.protocol.wire import LINE_BYTES, Mask, clean, room, with_link
from clients.irc.replies import shaped
from tests.clients.irc.conftest import configured, running
from tests.clients.irc.raw_server import Peer, raw_server
from tests.waiting import until

COMMANDS = [
    "\r\nQUIT :bye",
    "\nJOIN #evil",
    "\rPRIVMSG NickServ :drop",
    "\0",
    "\x01VERSION\x01",
    "\x01DCC SEND x\x01",
]
PIECES = [
    *COMMANDS, "\x02", "\x0304,05", "\x04ff00aa", "\x0f", "\x11", "\x16", "\x1d", "\x1e", "\x1f", "\x7f", "\x85",
    "\u2028", "\u202e", "\ufeff", "\ud83d", "\U000e0001", "é", "語", "👩\u200d🔬", "e\u0301" * 9, ":", " ", "  ",
    "@+typing=x ", "/quit", "!stats", "hearth:", "[1]", "https://evil.example/", "a" * 700, "語" * 300, "word " * 120,
    "\t", "\x1b[31m", "%s{0}",
]  # fmt: skip


def output(rng: random.Random) -> str:
    """A few nasty pieces among characters of all planes."""
    parts = [rng.choice(PIECES) for _ in range(rng.randrange(1, 5))]
    parts += [chr(rng.randrange(0x110000)) for _ in range(rng.randrange(8))]
    rng.shuffle(parts)
    return "".join(parts)


@pytest.mark.parametrize("outputs", [1000, pytest.param(3000, marks=pytest.mark.soak)])
async def test_no_output_becomes_more_than_its_lines(outputs: int, tmp_path: Path) -> None:
    meant: list[bytes] = []

    async def play(peer: Peer) -> None:
        await peer.welcome()
        await peer.let_in("#test")
        await peer.rest()

    async with raw_server(play) as server:
        config = configured(
            server.port, "http://127.0.0.1:1", tmp_path, network={"seconds_per_line": 0, "burst": 100}
        )
        async with running(config) as bot:
            network = bot.networks[0]
            rng = random.Random(7)
            for number in range(outputs):
                text, link = shaped(
                    Answer(output(rng), [Citation(1, "t", "", "https://wiki.example/x")]),
                    foreign_links=rng.random() < 0.5,
                    names=("hearth",),
                )
                target = rng.choice(["#test", "bob", "b[é]b"])
                start = "bob: " if target == "#test" else ""
                network.say(target, start + text, link=link)
                space = room(Mask("hearth", "~h", "host"), target)
                pieces, _ = with_link(clean(start + text), link, characters=350, room=space, lines=3)
                meant += [f"PRIVMSG {target} :{piece}".encode() for piece in pieces]
                if number % 20 == 19:  # the outbox refuses more than 200 lines
                    await until(lambda: network.outbox.waiting == 0)
            dropped = network.outbox.dropped
        peer = server.peers[0]
    assert dropped == 0
    _check(peer.received, meant)


def _check(received: bytes, meant: list[bytes]) -> None:
    """Every line is one that was meant, in order, and harmless whatever it says."""
    lines = received.split(b"\r\n")
    assert b"\r" not in b"".join(lines) and b"\n" not in b"".join(lines)
    said = [line for line in lines if line.startswith((b"PRIVMSG ", b"NOTICE "))]
    assert said == meant, "one line out for each that was to be said, and no other"
    rest = [line for line in lines if line not in set(said)]
    assert {line.split(b" ")[0] for line in rest} <= {
        b"CAP",
        b"NICK",
        b"USER",
        b"JOIN",
        b"MODE",
        b"QUIT",
        b"",
    }
    assert [line for line in rest if line.startswith((b"JOIN", b"QUIT"))] == [
        b"JOIN #test",
        b"QUIT :I will be back.",
    ]
    for line in said:
        head, _, body = line.partition(b" :")
        assert head in {b"PRIVMSG #test", b"PRIVMSG bob", "PRIVMSG b[é]b".encode()}
        assert not any(byte < 32 or byte == 127 for byte in body), body
        assert 0 < len(body.decode()) <= 350
        assert len(b":hearth!~hearth0000@" + b"h" * 63 + b" " + line) + 2 <= LINE_BYTES


async def test_pace_is_kept(tmp_path: Path) -> None:
    """A burst, then a line at a time; and nothing beyond what may wait."""

    async def play(peer: Peer) -> None:
        await peer.welcome()
        await peer.let_in("#test")
        await peer.rest()

    network = {"seconds_per_line": 60, "burst": 3}
    async with (
        raw_server(play) as server,
        running(configured(server.port, "http://127.0.0.1:1", tmp_path, network=network)) as bot,
    ):
        for number in range(300):
            bot.networks[0].say("#test", f"line {number}")
        await until(lambda: server.peers[0].received.count(b"PRIVMSG") == 3)
        await asyncio.sleep(0.1)
        assert server.peers[0].received.count(b"PRIVMSG") == 3
        assert bot.networks[0].outbox.dropped == 100, "200 may wait"
