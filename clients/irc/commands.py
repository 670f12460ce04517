"""Commands: a function each, which returns the reply or "" for none, and the table of their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from msgspec import Struct

from clients.irc.config import ChannelConfig, Mode
from clients.irc.gateway import GatewayError
from clients.irc.memory import Memory, StateError, StateFile
from clients.irc.protocol.wire import NICK, is_channel
from clients.irc.questions import Questions
from clients.irc.replies import failure, source_line
from clients.irc.requests import Request, nick_key
from clients.irc.tasks import PeopleTasks

_MAX_SOURCES = 3
_QUIET_MINUTES = 30
# Fields of a conversation that admins change. Its kind stays `channel`: that keeps its facts in the channel.
_SETTABLE = ("title", "assistant", "policy", "time_zone", "instructions", "project")

log = structlog.get_logger(__name__)


class CommandContext(Struct):
    """State shared by all commands. ``quiet`` maps places to the loop time until which the bot is quiet there."""

    questions: Questions
    memory: Memory
    file: StateFile
    mark: str
    tasks: PeopleTasks
    stop: Callable[[], None]
    quiet: dict[str, float] = {}

    def is_quiet(self, request: Request) -> bool:
        return self.quiet.get(request.place, 0.0) > asyncio.get_running_loop().time()


Handler = Callable[[CommandContext, Request, str], Awaitable[str]]


class BotCommand(Struct, frozen=True):
    """``usage`` follows the name in the help. A command ``of_tasks`` is for those who may run tasks."""

    run: Handler
    usage: str = ""
    admin: bool = False
    of_tasks: bool = False


async def run_command(context: CommandContext, request: Request, name: str, arguments: str) -> None:
    """Run a command and reply, also when it is unknown or not allowed."""
    command = COMMANDS.get(name)
    if command is None:
        request.reply(f"I do not know that one; {context.mark}help lists what I know.")
        return
    if command.admin and not _is_admin(request):
        log.warning("command not allowed", command=name, user=request.user)
        request.reply("that is for my operators, by their services account.")
        return
    if command.of_tasks and (problem := _no_tasks(request)):
        request.reply(problem)
        return
    try:
        if reply := await command.run(context, request, arguments):
            request.reply(reply)
    except (GatewayError, StateError) as error:
        log.warning("a command failed", command=name, code=error.code, problem=str(error))
        request.reply(failure(error, name))


def _is_admin(request: Request) -> bool:
    """By the services account alone: anybody can take a nick."""
    admins = {account.casefold() for account in request.network.config.admins}
    return bool(request.account) and request.account in admins


async def _help(context: CommandContext, request: Request, arguments: str) -> str:
    shown = [
        f"{context.mark}{name} {command.usage}".strip()
        for name, command in COMMANDS.items()
        if (not command.admin or _is_admin(request))
        and (not command.of_tasks or request.network.config.tasks != "off")
    ]
    return f"ask me with `{request.network.nick}: question`, or in private. I know {', '.join(shown)}."


async def _sources(context: CommandContext, request: Request, arguments: str) -> str:
    sources = context.questions.sources.get(request.place)
    if sources is None:
        return "I have not answered anything here yet."
    if not sources:
        return "my last answer here had no sources."
    lines = [source_line(source) for source in sources[:_MAX_SOURCES]]
    if len(sources) > _MAX_SOURCES:
        lines.append(f"and {len(sources) - _MAX_SOURCES} more.")
    for line in lines[:-1]:
        request.reply(line)
    return lines[-1]


async def _more(context: CommandContext, request: Request, arguments: str) -> str:
    leftovers, key = context.questions.leftovers, (request.place, request.user)
    if not leftovers.get(key):
        return "that was all."
    leftovers[key] = request.reply(leftovers[key])
    return ""


async def _stats(context: CommandContext, request: Request, arguments: str) -> str:
    return context.questions.stats.summary(context.questions.queue) + "."


async def _forget(context: CommandContext, request: Request, arguments: str) -> str:
    if arguments.casefold() != "me":
        return f"say {context.mark}forget me, and I forget what you have told me."
    lines, questions = await context.memory.forget(request)
    await context.tasks.forget(request)
    return (
        f"done, {lines} lines and the records of {questions} questions are gone, and I will not remember you until "
        f"you say {context.mark}remember me."
    )


async def _remember(context: CommandContext, request: Request, arguments: str) -> str:
    if arguments.casefold() != "me":
        return f"say {context.mark}remember me, and I remember what you tell me."
    return "from now on I do." if context.memory.remember(request) else "I do already."


async def _keep(context: CommandContext, request: Request, arguments: str) -> str:
    if request.channel:
        return f"say {context.mark}keep to me in private: I keep no secrets that were said in a channel."
    try:
        known = await context.memory.restore(request)
    except GatewayError as error:
        if error.status != 410:
            raise
        return "I hold no secret of yours, or not any more. Say it again."
    return (
        "your last message with a secret is stored as you wrote it."
        if known
        else "I remember nothing of yours."
    )


def _asking(name: str, mode: Mode, usage: str) -> Handler:
    async def ask(context: CommandContext, request: Request, arguments: str) -> str:
        if not arguments:
            return f"{context.mark}{name} {usage}"
        context.questions.ask(request, arguments, mode)
        return ""

    return ask


async def _tasks(context: CommandContext, request: Request, arguments: str) -> str:
    for line in await context.tasks.listing(request):
        request.reply(line)
    context.tasks.heard(request)
    return "that is all; " + f"{context.mark}do WORDS starts a task."


async def _do(context: CommandContext, request: Request, arguments: str) -> str:
    if not arguments:
        return f"{context.mark}do what"
    try:
        return f"{await context.tasks.begin(request, arguments)} is under way."
    except GatewayError as error:
        if error.status not in (400, 404, 409):
            raise
        return f"that does not work: {error}"


async def _answer(context: CommandContext, request: Request, arguments: str) -> str:
    return (
        await context.tasks.answer(request, arguments) if arguments else f"{context.mark}answer TASK ANSWER"
    )


def _no_tasks(request: Request) -> str:
    """Why this user may run no tasks here; "" if they may."""
    allowed = request.network.config.tasks
    if allowed == "off":
        return "I run no tasks on this network."
    if allowed == "admins" and not _is_admin(request):
        return "tasks are for my operators, by their services account."
    if not request.account:
        return "tasks need a services account: anybody can take a nick."
    return "tell me in private." if request.channel else ""


async def _join(context: CommandContext, request: Request, arguments: str) -> str:
    name, _, key = arguments.partition(" ")
    if not is_channel(name) or " " in key:
        return f"{context.mark}join #channel [key]"
    request.network.keeper.join(ChannelConfig(name=name, key=key))
    return f"on my way to {name}, until my next start."


async def _part(context: CommandContext, request: Request, arguments: str) -> str:
    return "left." if request.network.keeper.leave(arguments or request.channel) else "I am not there."


async def _ignore(context: CommandContext, request: Request, arguments: str) -> str:
    if not NICK.fullmatch(arguments):
        return f"{context.mark}ignore nick-or-account"
    context.file.state.ignored |= _user_keys(request, arguments)
    context.file.save()
    return f"I do not hear {arguments} any more."


async def _unignore(context: CommandContext, request: Request, arguments: str) -> str:
    known = context.file.state.ignored & _user_keys(request, arguments)
    context.file.state.ignored -= known
    context.file.save()
    return f"I hear {arguments} again." if known else "I do hear them."


def _user_keys(request: Request, name: str) -> set[str]:
    return {nick_key(request.network, name), f"{request.network.name}/account:{name.casefold()}"}


async def _quiet(context: CommandContext, request: Request, arguments: str) -> str:
    minutes = int(arguments) if arguments.isdecimal() and len(arguments) < 6 else _QUIET_MINUTES
    context.quiet[request.place] = asyncio.get_running_loop().time() + minutes * 60
    return f"quiet here for {minutes} minutes; {context.mark}wake ends it."


async def _wake(context: CommandContext, request: Request, arguments: str) -> str:
    return "here I am." if context.quiet.pop(request.place, None) is not None else "I am awake."


async def _set(context: CommandContext, request: Request, arguments: str) -> str:
    field, _, value = arguments.partition(" ")
    if field not in _SETTABLE:
        return f"{context.mark}set field value, where the field is {', '.join(_SETTABLE)}"
    try:
        known = await context.memory.change(request, field, value.strip())
    except GatewayError as error:
        if error.status != 400:
            raise
        return f"that does not work: {error}"
    return f"{field} is changed." if known else "there is no conversation here yet."


async def _erase(context: CommandContext, request: Request, arguments: str) -> str:
    erased = await context.memory.erase(request)
    return "this place is forgotten." if erased else "there is nothing to forget."


async def _reconnect(context: CommandContext, request: Request, arguments: str) -> str:
    request.network.reconnect()
    return ""


async def _die(context: CommandContext, request: Request, arguments: str) -> str:
    context.stop()
    return ""


COMMANDS: dict[str, BotCommand] = {
    "help": BotCommand(_help),
    "sources": BotCommand(_sources),
    "more": BotCommand(_more),
    "wiki": BotCommand(_asking("wiki", "wiki", "question"), "question"),
    "chat": BotCommand(_asking("chat", "chat", "text"), "text"),
    "forget": BotCommand(_forget, "me"),
    "remember": BotCommand(_remember, "me"),
    "keep": BotCommand(_keep),
    "tasks": BotCommand(_tasks, of_tasks=True),
    "do": BotCommand(_do, "words", of_tasks=True),
    "answer": BotCommand(_answer, "task text", of_tasks=True),
    "stats": BotCommand(_stats),
    "join": BotCommand(_join, "#channel", admin=True),
    "part": BotCommand(_part, "#channel", admin=True),
    "ignore": BotCommand(_ignore, "name", admin=True),
    "unignore": BotCommand(_unignore, "name", admin=True),
    "quiet": BotCommand(_quiet, "minutes", admin=True),
    "wake": BotCommand(_wake, admin=True),
    "set": BotCommand(_set, "field value", admin=True),
    "erase": BotCommand(_erase, admin=True),
    "reconnect": BotCommand(_reconnect, admin=True),
    "die": BotCommand(_die, admin=True),
}
