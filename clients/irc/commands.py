"""What can be commanded: a table of names, and one short function each, which returns the reply or ""."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from msgspec import Struct

from clients.irc.answer import source_line, told
from clients.irc.asking import Asking
from clients.irc.config import ChannelConfig
from clients.irc.gateway import GatewayError
from clients.irc.memory import Memory
from clients.irc.people import nick_key
from clients.irc.request import Request
from clients.irc.state import StateError, StateFile
from clients.irc.stats import Stats
from clients.irc.wire import NICK, is_channel

_SOURCES = 3
_QUIET_MINUTES = 30

log = structlog.get_logger(__name__)


class Desk(Struct):
    """What commands work with. ``quiet`` holds places and the loop's time until which they are quiet."""

    asking: Asking
    memory: Memory
    state: StateFile
    stats: Stats
    mark: str
    stop: Callable[[], None]
    quiet: dict[str, float] = {}

    def silent(self, request: Request) -> bool:
        """Whether the bot was told to be quiet there."""
        return self.quiet.get(request.place.key, 0.0) > asyncio.get_running_loop().time()


Handler = Callable[[Desk, Request, str], Awaitable[str]]


class Command(Struct, frozen=True):
    """One command. ``usage`` is what follows its name."""

    run: Handler
    usage: str = ""
    admin: bool = False


async def run_command(desk: Desk, request: Request, name: str, arguments: str) -> None:
    """Carry out a command and reply. What is unknown or not allowed is said."""
    command = COMMANDS.get(name)
    if command is None:
        request.reply(f"I do not know that one; {desk.mark}help tells what I know.")
        return
    if command.admin and not is_admin(request):
        log.warning("not allowed", command=name, person=request.person.key)
        request.reply("that is for my operators, by their services account.")
        return
    try:
        if reply := await command.run(desk, request, arguments):
            request.reply(reply)
    except GatewayError as error:
        log.warning("a command failed", command=name, problem=str(error))
        request.reply(told(error, name))
    except StateError as error:
        log.error("a command failed", command=name, problem=str(error))
        request.reply("something is wrong with my notes; my operator has to look at it.")


def is_admin(request: Request) -> bool:
    """Whether the server says that the person is logged in to an account of ``admins``. A nick proves nothing."""
    admins = {account.casefold() for account in request.network.config.admins}
    return bool(request.person.account) and request.person.account in admins


async def _help(desk: Desk, request: Request, arguments: str) -> str:
    mark, nick = desk.mark, request.network.nick
    shown = [
        f"{mark}{name} {command.usage}".strip()
        for name, command in COMMANDS.items()
        if not command.admin or is_admin(request)
    ]
    return f"ask me with `{nick}: question`, or in private. I know {', '.join(shown)}."


async def _sources(desk: Desk, request: Request, arguments: str) -> str:
    sources = desk.asking.recent.sources(request.place)
    if sources is None:
        return "I have not answered anything here yet."
    if not sources:
        return "my last answer here had no sources."
    lines = [source_line(source) for source in sources[:_SOURCES]]
    if len(sources) > _SOURCES:
        lines.append(f"and {len(sources) - _SOURCES} more.")
    for line in lines[:-1]:
        request.reply(line)
    return lines[-1]


async def _more(desk: Desk, request: Request, arguments: str) -> str:
    rest = desk.asking.recent.leftover(request.place, request.person)
    if not rest:
        return "that was all."
    desk.asking.recent.left_over(request.place, request.person, request.reply(rest))
    return ""


async def _stats(desk: Desk, request: Request, arguments: str) -> str:
    return desk.stats.told(desk.asking.queue.running, desk.asking.queue.waiting) + "."


async def _forget(desk: Desk, request: Request, arguments: str) -> str:
    if arguments.casefold() != "me":
        return f"say {desk.mark}forget me, and I forget what you have told me."
    lines, questions = await desk.memory.forget(request.person)
    return (
        f"done, {lines} lines and the records of {questions} questions are gone, and I will not remember you until "
        f"you say {desk.mark}remember me."
    )


async def _remember(desk: Desk, request: Request, arguments: str) -> str:
    if arguments.casefold() != "me":
        return f"say {desk.mark}remember me, and I remember what you tell me."
    return "from now on I do." if desk.memory.remember(request.person) else "I do already."


async def _wiki(desk: Desk, request: Request, arguments: str) -> str:
    if not arguments:
        return f"{desk.mark}wiki question"
    desk.asking.take(request, arguments, "wiki")
    return ""


async def _chat(desk: Desk, request: Request, arguments: str) -> str:
    if not arguments:
        return f"{desk.mark}chat text"
    desk.asking.take(request, arguments, "chat")
    return ""


async def _join(desk: Desk, request: Request, arguments: str) -> str:
    name, _, key = arguments.partition(" ")
    if not is_channel(name) or " " in key:
        return f"{desk.mark}join #channel [key]"
    request.network.join(ChannelConfig(name=name, key=key))
    return f"on my way to {name}, until my next start."


async def _part(desk: Desk, request: Request, arguments: str) -> str:
    return "left." if request.network.leave(arguments or request.place.channel) else "I am not there."


async def _ignore(desk: Desk, request: Request, arguments: str) -> str:
    if not NICK.fullmatch(arguments):
        return f"{desk.mark}ignore nick-or-account"
    desk.state.state.ignored |= _keys(request, arguments)
    desk.state.save()
    return f"I do not hear {arguments} any more."


async def _unignore(desk: Desk, request: Request, arguments: str) -> str:
    known = desk.state.state.ignored & _keys(request, arguments)
    desk.state.state.ignored -= known
    desk.state.save()
    return f"I hear {arguments} again." if known else "I do hear them."


async def _quiet(desk: Desk, request: Request, arguments: str) -> str:
    minutes = int(arguments) if arguments.isdecimal() and len(arguments) < 6 else _QUIET_MINUTES
    desk.quiet[request.place.key] = asyncio.get_running_loop().time() + minutes * 60
    return f"quiet here for {minutes} minutes; {desk.mark}wake ends it."


async def _wake(desk: Desk, request: Request, arguments: str) -> str:
    return "here I am." if desk.quiet.pop(request.place.key, None) is not None else "I am awake."


async def _erase(desk: Desk, request: Request, arguments: str) -> str:
    return (
        "this place is forgotten."
        if await desk.memory.erase(request.place)
        else "there is nothing to forget."
    )


async def _reconnect(desk: Desk, request: Request, arguments: str) -> str:
    request.network.reconnect()
    return ""


async def _die(desk: Desk, request: Request, arguments: str) -> str:
    desk.stop()
    return ""


def _keys(request: Request, name: str) -> set[str]:
    return {nick_key(request.network, name), f"{request.network.name}/account:{name.casefold()}"}


COMMANDS: dict[str, Command] = {
    "help": Command(_help),
    "sources": Command(_sources),
    "more": Command(_more),
    "wiki": Command(_wiki, "question"),
    "chat": Command(_chat, "text"),
    "forget": Command(_forget, "me"),
    "remember": Command(_remember, "me"),
    "stats": Command(_stats),
    "join": Command(_join, "#channel", admin=True),
    "part": Command(_part, "#channel", admin=True),
    "ignore": Command(_ignore, "name", admin=True),
    "unignore": Command(_unignore, "name", admin=True),
    "quiet": Command(_quiet, "minutes", admin=True),
    "wake": Command(_wake, admin=True),
    "erase": Command(_erase, admin=True),
    "reconnect": Command(_reconnect, admin=True),
    "die": Command(_die, admin=True),
}
