"""What a line that begins with a slash does in `hearth chat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from gateway.base.errors import HearthError
from gateway.cli.chat.talk import Talk
from gateway.cli.common.text import say
from gateway.cli.facts import fact_id, fact_line, remember
from gateway.cli.tasks import show_tasks, task_line

_BAR = 30


class _Command(NamedTuple):
    run: Callable[[Talk, str], None]
    what: str
    argument: str = ""  # "" takes none, in brackets may be left out


def run_command(talk: Talk, line: str) -> None:
    """Carry out a command; errors are shown, not raised."""
    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        say(f"there is no command {name}; /help lists them", err=True)
        return
    argument = argument.strip()
    if command.argument and not command.argument.startswith("[") and not argument:
        say(f"{name} {command.argument}: {command.what}", err=True)
        return
    try:
        command.run(talk, argument)
    except HearthError as error:
        say(f"hearth: {error.message}", err=True)


def _again(talk: Talk, _: str) -> None:
    talk.again()


def _new(talk: Talk, _: str) -> None:
    talk.leave()
    say("a new conversation begins with your next line", err=True)


def _context(talk: Talk, name: str) -> None:
    context = talk.client.get(f"/v1/conversations/{talk.begin()}/context")
    if name:
        found = [block for block in context["blocks"] if block["name"] == name]
        names = ", ".join(dict.fromkeys(block["name"] for block in context["blocks"]))
        if not found:
            say(f"there is no block {name}; there are {names}", err=True)
        for block in found:
            say(block["text"])
        return
    for block in context["blocks"]:
        say(f"{block['tokens']:>7}  {block['name']}")
    total, limit, ceiling = context["total"], context["limit"], context["ceiling"]
    filled = min(_BAR, _BAR * total // limit)
    bar = "".join("#" if at < filled else "|" if at == _BAR * ceiling // limit else "." for at in range(_BAR))
    say(f"{total:>7}  of {limit} tokens  {bar}  compacted over {ceiling}")
    for left in context["left_out"]:
        say(f"         not in it: {left['what']} ({left['why']})")


def _compact(talk: Talk, _: str) -> None:
    made = talk.client.post(f"/v1/conversations/{talk.begin()}/compact")["summaries"]
    say(f"{made} summaries made" if made else "there was nothing to compact", err=True)


def _summaries(talk: Talk, _: str) -> None:
    live = [
        each
        for each in talk.client.every(f"/v1/conversations/{talk.begin()}/summaries")
        if each["superseded_by"] is None
    ]
    if not live:
        say("nothing was summarized yet", err=True)
    for each in live:
        say(f"{each['level']} (messages {each['first']} to {each['last']}, {each['tokens']} tokens)")
        say(each["text"])
        for pin in each["pins"]:
            say(f"  - {pin}")


def _facts(talk: Talk, word: str) -> None:
    lines = [fact_line(fact) for fact in talk.client.every("/v1/facts")]
    shown = [line for line in lines if word.casefold() in line.casefold()]
    for line in shown:
        say(line)
    if not shown:
        say("nothing was learned yet" if not lines else "no fact has this word", err=True)


def _remember(talk: Talk, said: str) -> None:
    key, _, text = said.partition(" ")
    say(fact_line(remember(talk.client, key, text.strip())), err=True)


def _forget(talk: Talk, name: str) -> None:
    found = fact_id(talk.client, name)
    fact = talk.client.delete(f"/v1/facts/{found}")
    say(f"forgotten: {fact['text']} (/undo {found[:8]} brings it back)", err=True)


def _undo(talk: Talk, name: str) -> None:
    left = talk.client.post(f"/v1/facts/{fact_id(talk.client, name)}/undo")["fact"]
    say(fact_line(left) if left else "the fact is gone", err=True)


def _tasks(talk: Talk, day: str) -> None:
    query = "" if day == "all" else f"?day={quote(day or 'today')}"
    found = list(talk.client.every(f"/v1/tasks{query}"))
    show_tasks(found)
    if not found:
        say("there are no tasks; /tasks all looks at every day", err=True)


def _done(talk: Talk, name: str) -> None:
    say(task_line(talk.client.patch(f"/v1/tasks/{quote(name)}", {"state": "done"})), err=True)


def _rollover(talk: Talk, _: str) -> None:
    talk.leave(str(talk.client.post(f"/v1/conversations/{talk.begin()}/rollover")["id"]))
    say("the old conversation is archived; a new one goes on from its summary", err=True)


def _erase(talk: Talk, _: str) -> None:
    if talk.name is not None:
        talk.client.delete(f"/v1/conversations/{talk.name}")
    talk.leave()
    say("erased", err=True)


def _help(_: Talk, __: str) -> None:
    for name, command in COMMANDS.items():
        say(f"{f'{name} {command.argument}':<20} {command.what}", err=True)


COMMANDS = {
    "/help": _Command(_help, "this list"),
    "/again": _Command(_again, "have the last line answered that got no reply"),
    "/new": _Command(_new, "begin a new conversation"),
    "/context": _Command(
        _context, "what the next prompt consists of, or the text of one of its blocks", "[BLOCK]"
    ),
    "/compact": _Command(_compact, "compact the older messages now"),
    "/summaries": _Command(_summaries, "the summaries that stand for older messages"),
    "/facts": _Command(_facts, "what was learned about you", "[WORD]"),
    "/remember": _Command(_remember, "a fact, under a key such as home_city", "KEY TEXT"),
    "/forget": _Command(_forget, "forget a fact, by its key or the beginning of its id", "FACT"),
    "/undo": _Command(_undo, "take the last change of a fact back", "FACT"),
    "/tasks": _Command(_tasks, "today's tasks, those of a day, or all", "[DAY]"),
    "/done": _Command(_done, "mark a task or a checklist item as done", "TASK"),
    "/rollover": _Command(_rollover, "archive this conversation and go on from its summary"),
    "/erase": _Command(_erase, "erase this conversation for good"),
}
