"""The bot: what it hears on its networks, and what it does about it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import structlog

from clients.irc import __version__
from clients.irc.address import CommandLine, addressed
from clients.irc.asking import Asking
from clients.irc.commands import COMMANDS, Desk, run_command
from clients.irc.config import Config, Mode, api_key
from clients.irc.gateway import Gateway, GatewayError
from clients.irc.limits import Buckets
from clients.irc.link import Ctcp, Heard
from clients.irc.memory import Memory
from clients.irc.network import Network
from clients.irc.people import nick_key, person_of, place_of
from clients.irc.request import Request
from clients.irc.state import StateError, StateFile
from clients.irc.stats import Stats
from clients.irc.tasks import Tasks
from clients.irc.text import clean

_GRACE_SECONDS = 5.0  # for questions in work when the program is told to end
_QUIT_SECONDS = 2.0
_TYPING_SECONDS = 20.0  # the gateway hears of people who write no more often than this
# Commands that are answered by the model are counted there; all others here.
_ASKING = {"wiki", "chat"}

log = structlog.get_logger(__name__)


class Bot:
    """One bot on all its networks. Raises ConfigError and StateError when it cannot be made."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stop = asyncio.Event()
        self._tasks = Tasks()
        self._gateway = Gateway(config.gateway, api_key(config.gateway))
        self._state = StateFile(config.bot.state_dir.expanduser())
        self._memory = Memory(self._gateway, self._state)
        self._stats = Stats()
        self._asking = Asking(config, self._gateway, self._memory, self._stats, self._tasks)
        self._queries = Buckets(3, 10.0, time.monotonic)
        self._typing = Buckets(1, _TYPING_SECONDS, time.monotonic)
        self._desk = Desk(
            asking=self._asking,
            memory=self._memory,
            state=self._state,
            stats=self._stats,
            mark=config.bot.command_mark,
            stop=self.stop,
        )
        self.networks = [Network(each, config.bot, config.replies, self) for each in config.networks]

    def stop(self) -> None:
        """End :meth:`run`."""
        self._stop.set()

    async def check(self) -> None:
        """Whether the gateway would answer. Raises GatewayError."""
        try:
            await self._gateway.check()
        finally:
            await self._gateway.close()

    async def run(self) -> None:
        """Be on all networks until :meth:`stop`. Raises StateError when another process uses the state's folder."""
        self._state.hold()
        running = [asyncio.create_task(network.run()) for network in self.networks]
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await self._tasks.drain(_GRACE_SECONDS)
            async with asyncio.timeout(_QUIT_SECONDS):
                await asyncio.gather(*(network.quit("I will be back.") for network in self.networks))
        except TimeoutError:
            log.warning("a server did not take our leave in time")
        finally:
            await self._tasks.close()
            for task in (*running, stopping):
                task.cancel()
            await asyncio.wait({*running, stopping})
            await self._gateway.close()
            self._state.release()
        for task in running:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def heard(self, network: Network, heard: Heard) -> None:
        """Somebody said something."""
        if self._deaf(network, heard):
            return
        person = person_of(network, heard)
        request = Request(network, person, place_of(network, heard, person), heard.nick)
        channel = network.channel_config(heard.channel) if heard.channel else None
        prefix = self._config.bot.prefix
        wanted = addressed(
            heard.text,
            nick=network.nick,
            private=channel is None,
            prefix=channel.prefix if channel is not None and channel.prefix is not None else prefix,
            mark=self._config.bot.command_mark,
            commands=COMMANDS,
            fold=network.fold,
        )
        mode: Mode | str = channel.mode if channel is not None else network.config.private
        if wanted is None:
            if channel is not None and channel.memory == "all":
                self._overhear(request, heard.text)
        elif isinstance(wanted, CommandLine):
            self._command(request, wanted)
        elif self._desk.silent(request) or mode == "off":
            return
        elif wanted.text:
            self._asking.take(request, wanted.text, "chat" if mode == "chat" else "wiki")
        elif self._asking.admit(request):
            request.reply(f"yes? {self._config.bot.command_mark}help tells what I can do.")

    def _deaf(self, network: Network, heard: Heard) -> bool:
        """Whether this is from somebody who gets no answer."""
        ignored = self._state.state.ignored
        keys = (person_of(network, heard).key, nick_key(network, heard.nick))
        return self._stop.is_set() or heard.bot or any(key in ignored for key in keys)

    def typing(self, network: Network, heard: Heard) -> None:
        """Somebody writes to us: the model can be loaded meanwhile."""
        answered = network.config.private != "off" and not self._deaf(network, heard)
        if answered and not self._typing.take("all"):
            self._tasks.spawn(self._announce())

    async def _announce(self) -> None:
        with suppress(GatewayError):  # the question that follows is told what is wrong
            await self._gateway.typing()

    def queried(self, network: Network, query: Ctcp) -> None:
        """CTCP: VERSION, PING and CLIENTINFO are answered, within limits; nothing else is."""
        told = {
            "VERSION": f"hearth-irc {__version__}",
            "PING": clean(query.text)[:100],
            "CLIENTINFO": "VERSION PING CLIENTINFO",
        }.get(query.kind)
        if told is not None and not self._queries.take(network.name):
            network.answer_query(query, told)

    def renamed(self, network: Network, old: str, new: str) -> None:
        """Somebody has another nick."""
        self._asking.renamed(network, old, new)

    def _command(self, request: Request, line: CommandLine) -> None:
        command = COMMANDS.get(line.name)
        admin = command is not None and command.admin
        if self._desk.silent(request) and not admin:
            return
        if line.name in _ASKING or admin or self._asking.admit(request):
            self._tasks.spawn(run_command(self._desk, request, line.name, line.arguments))

    def _overhear(self, request: Request, text: str) -> None:
        if self._memory.overhear(request.place, request.person, clean(text)):
            self._tasks.spawn(self._keep_overheard(request))

    async def _keep_overheard(self, request: Request) -> None:
        try:
            await self._memory.keep_overheard(request.place, self._asking.instructions(request))
        except (GatewayError, StateError) as error:
            log.warning("lines could not be remembered", place=request.place.key, problem=str(error))
