"""The bot: receives events from its networks and acts on them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from typing import Any

import structlog
from msgspec import Struct

from clients.irc import __version__
from clients.irc.commands import COMMANDS, CommandContext, run_command
from clients.irc.config import Config, api_key
from clients.irc.gateway import Gateway, GatewayError
from clients.irc.memory import Memory, StateError, StateFile
from clients.irc.network import Network
from clients.irc.outbox import Buckets
from clients.irc.protocol.link import (
    CtcpQuery,
    Event,
    MembershipChange,
    Message,
    NickChange,
    Registered,
    SentEvent,
    Typing,
)
from clients.irc.protocol.wire import clean
from clients.irc.questions import Questions
from clients.irc.requests import Request, nick_key, user_key
from clients.irc.tasks import PeopleTasks

_GRACE_SECONDS = 5.0  # for open questions when the program stops
_QUIT_SECONDS = 2.0
_TYPING_SECONDS = 20.0  # between two announcements to the gateway
# The model answers these commands, so Questions counts them; the bot counts all others.
_QUESTIONS = {"wiki", "chat"}

log = structlog.get_logger(__name__)


class CommandLine(Struct, frozen=True):
    """A command with its arguments: ``!forget me`` is ``forget`` and ``me``."""

    name: str
    arguments: str


def addressed(
    line: str,
    *,
    nick: str,
    private: bool,
    prefix: str,
    mark: str,
    commands: Collection[str],
    fold: Callable[[str], str],
) -> str | CommandLine | None:
    """Return the question ("" if there is only the bot's name) or command in a line, None if it is not for the bot.

    Lines for the bot are all private ones, those that begin with ``nick:``, ``nick,``, ``@nick`` or ``prefix`` ("" for
    none), and known commands. A command begins with ``mark``; in a line for the bot an unknown command is also a
    command, not a question. ``fold`` makes nicks comparable.
    """
    text = clean(line)
    name = text.removeprefix("@")
    start, rest = name[: len(nick)], name[len(nick) :]
    said = None
    # People from bridged networks write `@nick` and a blank.
    if fold(start) == fold(nick) and rest[:1] in ((":", ",", " ", "") if name != text else (":", ",")):
        said = rest[1:].strip()
    elif prefix and text.casefold().startswith(prefix.casefold()):
        said = text[len(prefix) :].strip()
    elif private:
        said = text
    body = text if said is None else said
    name, _, arguments = body.removeprefix(mark).partition(" ")
    if body.startswith(mark) and name.isalpha() and (said is not None or name.casefold() in commands):
        return CommandLine(name.casefold(), arguments.strip())
    return said


class Tasks:
    """Background tasks: failures are logged, and none outlives :meth:`close`."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed unexpectedly", exc_info=error)

    async def drain(self, seconds: float) -> None:
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)

    async def close(self) -> None:
        for task in (running := list(self._running)):
            task.cancel()
        if running:
            await asyncio.wait(running)


class Bot:
    """One bot on all its networks. The constructor raises ConfigError and StateError."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stop = asyncio.Event()
        self._tasks = Tasks()
        self._gateway = Gateway(config.gateway, api_key(config.gateway))
        self._file = StateFile(config.bot.state_dir.expanduser())
        self._memory = Memory(self._gateway, self._file)
        self._questions = Questions(config, self._gateway, self._memory, self._tasks.spawn)
        self._people_tasks = PeopleTasks(self._gateway, self._file, config.bot.command_mark)
        self._ctcp_limits = Buckets(3, 10.0)
        self._typing_limit = Buckets(1, _TYPING_SECONDS)
        self._context = CommandContext(
            questions=self._questions,
            memory=self._memory,
            file=self._file,
            mark=config.bot.command_mark,
            tasks=self._people_tasks,
            stop=self.stop,
        )
        self.networks = [Network(each, config.bot, config.replies, self.handle) for each in config.networks]

    def stop(self) -> None:
        """Let :meth:`run` end."""
        self._stop.set()

    async def check(self) -> None:
        """Check that the gateway would answer. Raises GatewayError."""
        try:
            await self._gateway.check()
        finally:
            await self._gateway.close()

    async def run(self) -> None:
        """Stay on all networks until :meth:`stop`. Raises StateError if another process uses the state's folder."""
        self._file.hold()
        running = [asyncio.create_task(network.run()) for network in self.networks]
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({*running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await self._tasks.drain(_GRACE_SECONDS)
            async with asyncio.timeout(_QUIT_SECONDS):
                await asyncio.gather(*(network.quit("I will be back.") for network in self.networks))
        except TimeoutError:
            log.warning("a server did not accept QUIT in time")
        finally:
            await self._people_tasks.close()
            await self._tasks.close()
            for task in (*running, stopping):
                task.cancel()
            await asyncio.wait({*running, stopping})
            await self._gateway.close()
            self._file.release()
        for task in running:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def handle(self, network: Network, event: Event) -> None:
        match event:
            case Message() if self._hears(network, event):
                self._on_message(network, event)
            case Typing() if network.config.private != "off" and self._hears(network, event):
                if not self._typing_limit.take("all"):
                    self._tasks.spawn(self._announce_typing())
            case CtcpQuery():
                self._on_query(network, event)
            case NickChange():
                self._questions.renamed(network, event.old, event.new)
                self._people_tasks.renamed(network, event.old, event.new)
            case MembershipChange(freed=nick) if nick:
                self._people_tasks.left(network, nick)
            case Registered():
                self._people_tasks.left(network, None)

    def _hears(self, network: Network, sender: SentEvent) -> bool:
        keys = {user_key(network, sender), nick_key(network, sender.nick)}
        return not (self._stop.is_set() or sender.bot or keys & self._file.state.ignored)

    def _on_message(self, network: Network, message: Message) -> None:
        bot = self._config.bot
        request = Request.of(network, message)
        self._people_tasks.heard(request)
        channel = request.channel_config
        wanted = addressed(
            message.text,
            nick=network.nick,
            private=channel is None,
            prefix=bot.prefix if channel is None or channel.prefix is None else channel.prefix,
            mark=bot.command_mark,
            commands=COMMANDS,
            fold=network.fold,
        )
        mode = network.config.private if channel is None else channel.mode
        if wanted is None:
            overheard = channel is not None and channel.memory == "all"
            if overheard and self._memory.overhear(request, clean(message.text)):
                self._tasks.spawn(self._keep_overheard(request))
        elif isinstance(wanted, CommandLine):
            self._on_command(request, wanted)
        elif self._context.is_quiet(request) or mode == "off":
            return
        elif wanted:
            self._questions.ask(request, wanted, mode)
        elif self._questions.admit(request):
            request.reply(f"yes? {bot.command_mark}help tells what I can do.")

    def _on_command(self, request: Request, line: CommandLine) -> None:
        admin = line.name in COMMANDS and COMMANDS[line.name].admin
        if self._context.is_quiet(request) and not admin:
            return
        if admin or line.name in _QUESTIONS or self._questions.admit(request):
            self._tasks.spawn(run_command(self._context, request, line.name, line.arguments))

    def _on_query(self, network: Network, query: CtcpQuery) -> None:
        reply = {
            "VERSION": f"hearth-irc {__version__}",
            "PING": clean(query.text)[:100],
            "CLIENTINFO": "VERSION PING CLIENTINFO",
        }.get(query.kind)
        if reply is not None and not self._ctcp_limits.take(network.name):
            network.answer_query(query, reply)

    async def _announce_typing(self) -> None:
        with suppress(GatewayError):  # the question that follows will report it
            await self._gateway.typing()

    async def _keep_overheard(self, request: Request) -> None:
        try:
            await self._memory.keep_overheard(request)
        except (GatewayError, StateError) as error:
            log.warning("overheard lines were not kept", place=request.place, problem=str(error))
