"""Servers of IRC, a gateway with a scripted model, and bots between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from clients.irc.bot import Bot
from clients.irc.config import Config, parse
from tests.clients.irc.ircd import Inspircd, Ngircd, folder
from tests.clients.irc.person import Person, person
from tests.gateway.api.conftest import LiveServer, inference, server, settings
from tests.waiting import until

__all__ = ["inference", "server", "settings"]

CHANNEL = "#test"
PASSWORD = "correct-horse"
MakeBot = Callable[..., AbstractAsyncContextManager[Bot]]


@pytest.fixture(scope="session")
def shared_ngircd() -> Iterator[Ngircd]:
    """For tests that leave the server as it is."""
    with folder() as made:
        running = Ngircd(made)
        yield running
        running.stop()


@pytest.fixture(scope="session")
def inspircd() -> Iterator[Inspircd]:
    """With services, and the accounts `hearth`, `boss`, `alice` and `ember` of the password PASSWORD."""
    with folder() as made:
        running = Inspircd(made)
        with ThreadPoolExecutor(1) as pool:  # with a loop of its own, beside that of the tests
            pool.submit(asyncio.run, _register(running)).result()
        yield running
        running.stop()


async def _register(server: Inspircd) -> None:
    for account in ("hearth", "boss", "alice", "ember"):
        async with person(server.port, account) as owner:
            found = None
            while not found:  # services may still be linking
                owner.say("NickServ", f"REGISTER {PASSWORD} {account}@example.org")
                found = (await owner.expect("401 .* NickServ|(is now registered)"))[1]


def configured(port: int, url: str, state: Path, **changes: Any) -> Config:
    """A configuration for one network, with short times; ``changes`` are tables of the file."""
    network = {
        "name": "test", "host": "127.0.0.1", "port": port, "tls": False, "channels": [{"name": CHANNEL}],
        "burst": 20, "seconds_per_line": 0.05, "reconnect_first_seconds": 0.05, "reconnect_most_seconds": 0.4,
        "tend_seconds": 0.3,
    }  # fmt: skip
    tables: dict[str, Any] = {
        "networks": [network | changes.pop("network", {})],
        "gateway": {"url": url} | changes.pop("gateway", {}),
        "bot": {"state_dir": str(state)} | changes.pop("bot", {}),
        "limits": {"user_burst": 100, "channel_burst": 200} | changes.pop("limits", {}),
    }
    return parse(tables | changes)


@asynccontextmanager
async def running(config: Config, *, joined: bool = True) -> AsyncIterator[Bot]:
    """A bot at work; with ``joined`` it is in all its channels."""
    bot = Bot(config)
    task = asyncio.create_task(bot.run())
    try:
        if joined:
            await in_channels(bot, task)
        yield bot
    finally:
        bot.stop()
        await task


async def in_channels(bot: Bot, task: asyncio.Task[None] | None = None) -> None:
    """Wait until the bot is where it wants to be."""

    def there() -> bool:
        assert task is None or not task.done(), "the bot has ended"
        return all(each.ready and all(map(each.ready.joined, each.keeper.wanted)) for each in bot.networks)

    await until(there)


@pytest.fixture
async def alice(shared_ngircd: Ngircd) -> AsyncIterator[Person]:
    async with person(shared_ngircd.port, "alice", CHANNEL) as made:
        yield made


@pytest.fixture
async def bob(shared_ngircd: Ngircd) -> AsyncIterator[Person]:
    async with person(shared_ngircd.port, "bob", CHANNEL) as made:
        yield made


@pytest.fixture
def make_bot(shared_ngircd: Ngircd, server: LiveServer, tmp_path: Path) -> MakeBot:
    """Bots on the shared server; their arguments are those of :func:`configured`."""
    return lambda **changes: running(configured(shared_ngircd.port, server.url, tmp_path, **changes))
