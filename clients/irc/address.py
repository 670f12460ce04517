"""Is a line meant for the bot, and what does it ask? A pure function of the line."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from clients.irc.text import clean


class Question(Struct, frozen=True):
    """Something to answer; ``text`` may be empty when only the bot's name was called."""

    text: str


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
) -> Question | CommandLine | None:
    """What the line wants of the bot, None when it is not for it.

    For the bot is everything in private, in a channel what begins with ``nick:``, ``nick,`` or ``prefix`` ("" for
    none), and commands that it knows. A command begins with ``mark``; said to the bot, an unknown one counts too, so
    that it can be told apart from a question. ``fold`` makes nicks comparable.
    """
    text = clean(line)
    called = _after_nick(text, nick, fold)
    if called is None and prefix and text.casefold().startswith(prefix.casefold()):
        called = text[len(prefix) :].strip()
    if called is None and private:
        called = text
    command = _command(text if called is None else called, mark)
    if command is not None and (called is not None or command.name in commands):
        return command
    return None if called is None else Question(called)


def _after_nick(text: str, nick: str, fold: Callable[[str], str]) -> str | None:
    """What follows ``nick:`` or ``nick,`` at the beginning of the line."""
    rest = text[len(nick) :]
    if fold(text[: len(nick)]) == fold(nick) and rest[:1] in (":", ","):
        return rest[1:].strip()
    return None


def _command(text: str, mark: str) -> CommandLine | None:
    name, _, arguments = text.removeprefix(mark).partition(" ")
    if not text.startswith(mark) or not name.isalpha():
        return None
    return CommandLine(name.casefold(), arguments.strip())
