"""The commands of `hearth chat`: lines that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from gateway.base.errors import HearthError
from gateway.cli.chat.session import ChatSession
from gateway.cli.common.text import say, time_text
from gateway.cli.facts import fact_id, fact_line
from gateway.cli.tasks.lines import task_line, tasks_text

_BAR = 30
_HITS = 20
_ROUNDS, _LINE = 10, 160
# Fields of a conversation that /set shows and changes.
SETTABLE = ("title", "kind", "policy", "time_zone", "instructions", "participants", "assistant", "project")


class _Command(NamedTuple):
    run: Callable[[ChatSession, str], None]
    help: str
    argument: str = ""  # "" takes none; one in brackets is optional


def run_command(session: ChatSession, line: str) -> None:
    """Run a command. Errors are printed, not raised."""
    name, _, argument = line.partition(" ")
    command = COMMANDS.get(name)
    argument = argument.strip()
    if command is None:
        say(f"there is no command {name}; /help lists them", err=True)
    elif command.argument and not command.argument.startswith("[") and not argument:
        say(f"{name} {command.argument}: {command.help}", err=True)
    else:
        try:
            command.run(session, argument)
        except HearthError as error:
            say(f"hearth: {error.message}", err=True)


def _new(session: ChatSession, _: str) -> None:
    session.leave()
    say("a new conversation begins with your next line", err=True)


def _context(session: ChatSession, name: str) -> None:
    context = session.client.get(f"{session.path}/context")
    blocks = context["blocks"]
    if name:
        if found := [block["text"] for block in blocks if block["name"] == name]:
            say("\n".join(found))
        else:
            names = ", ".join(dict.fromkeys(block["name"] for block in blocks))
            say(f"there is no block {name}; there are {names}", err=True)
        return
    for block in blocks:
        say(f"{block['tokens']:>7}  {block['name']}")
    total, limit, ceiling = context["total"], context["limit"], context["ceiling"]
    filled = min(_BAR, _BAR * total // limit)
    bar = "".join("#" if at < filled else "|" if at == _BAR * ceiling // limit else "." for at in range(_BAR))
    say(f"{total:>7}  of {limit} tokens  {bar}  compacted over {ceiling}")
    for left in context["left_out"]:
        say(f"         not in it: {left['what']} ({left['why']})")


def _compact(session: ChatSession, _: str) -> None:
    made = session.client.post(f"{session.path}/compact")["summaries"]
    say(f"{made} summaries made" if made else "there was nothing to compact", err=True)


def _summaries(session: ChatSession, _: str) -> None:
    every = session.client.every(f"{session.path}/summaries")
    live = [each for each in every if each["superseded_by"] is None]
    if not live:
        say("nothing was summarized yet", err=True)
    for each in live:
        head = f"{each['level']} (messages {each['first']} to {each['last']}, {each['tokens']} tokens)"
        say("\n".join([head, each["text"], *(f"  - {pin}" for pin in each["pins"])]))


def _facts(session: ChatSession, word: str) -> None:
    lines = [fact_line(fact) for fact in session.client.every("/v1/facts")]
    if shown := [line for line in lines if word.casefold() in line.casefold()]:
        say("\n".join(shown))
    else:
        say("no fact has this word" if lines else "nothing was learned yet", err=True)


def _remember(session: ChatSession, argument: str) -> None:
    key, _, text = argument.partition(" ")
    say(fact_line(session.client.post("/v1/facts", {"key": key, "text": text.strip()})), err=True)


def _forget(session: ChatSession, name: str) -> None:
    found = fact_id(session.client, name)
    fact = session.client.delete(f"/v1/facts/{found}")
    say(f"forgotten: {fact['text']} (/undo {found[:8]} brings it back)", err=True)


def _undo(session: ChatSession, name: str) -> None:
    left = session.client.post(f"/v1/facts/{fact_id(session.client, name)}/undo")["fact"]
    say(fact_line(left) if left else "the fact is gone", err=True)


def _search(session: ChatSession, words: str) -> None:
    page = session.client.get(f"/v1/conversations/search?limit={_HITS}&q={quote(words)}")
    for hit in page["data"]:
        when = time_text(hit["created_at"])
        who = hit["speaker"] or ("you" if hit["role"] == "user" else "assistant")
        here = hit["conversation"] == session.conversation
        say(f"{when} {'here' if here else hit['title'] or hit['conversation'][:8]}, {who}: {hit['snippet']}")
    if page["next"] is not None:
        say(f"there are more than {_HITS}; more words find fewer", err=True)
    elif not page["data"]:
        say("nobody said that", err=True)


def _keep(session: ChatSession, _: str) -> None:
    say(f"stored as you typed it: {session.client.post(f'{session.path}/keep')['text']}", err=True)


def _tasks(session: ChatSession, day: str) -> None:
    query = "" if day == "all" else f"?day={quote(day or 'today')}&conversation={session.conversation}"
    found = list(session.client.every(f"/v1/tasks{query}"))
    if found:
        say(tasks_text(found))
    else:
        say("there are no tasks; /tasks all looks at every day", err=True)


def _done(session: ChatSession, name: str) -> None:
    say(task_line(session.client.patch(f"/v1/tasks/{quote(name)}", {"state": "done"})), err=True)


def _rounds(session: ChatSession, most: str) -> None:
    page = session.client.get(f"{session.path}/rounds?limit={quote(most or str(_ROUNDS))}")
    for each in page["data"]:
        note = " (failed)" if each["failed"] else " (summarized)" if each["summarized"] else ""
        said = " | ".join(" ".join(message["text"].split()) for message in each["messages"])
        say(f"{each['round']:>5}{note}  {said if len(said) <= _LINE else f'{said[: _LINE - 1]}…'}")
    if not page["data"]:
        say("there is no round yet", err=True)


def _failed(session: ChatSession, number: str) -> None:
    last = session.client.get(f"{session.path}/rounds?limit=1")["data"]
    if not number and not last:
        say("there is no round yet", err=True)
        return
    number = number or str(last[-1]["round"])
    session.client.patch(f"{session.path}/rounds/{quote(number)}", {"failed": True})
    say(f"round {number} is marked as failed; prompts and summaries leave it out", err=True)


def _set(session: ChatSession, argument: str) -> None:
    field, _, value = argument.partition(" ")
    client, path = session.client, session.path
    names = [name for each in value.split(",") if (name := each.strip())]
    given = {field: names if field == "participants" else value.strip()}
    shown = client.patch(path, given) if field else client.get(path)
    if shown["assistant"]:
        shown["assistant"] = client.get(f"/v1/assistants/{shown['assistant']}")["name"] or shown["assistant"]
    for name in SETTABLE:
        told = ", ".join(shown[name]) if name == "participants" else shown[name] or ""
        say(f"{name:<13} {told}".rstrip())


def _rollover(session: ChatSession, _: str) -> None:
    session.leave(str(session.client.post(f"{session.path}/rollover")["id"]))
    say("the old conversation is archived; a new one goes on from its summary", err=True)


def _erase(session: ChatSession, _: str) -> None:
    if session.conversation is not None:
        session.client.delete(session.path)
    session.leave()
    say("erased", err=True)


def _help(_: ChatSession, __: str) -> None:
    for name, command in COMMANDS.items():
        say(f"{f'{name} {command.argument}':<20} {command.help}", err=True)


COMMANDS = {
    "/help": _Command(_help, "this list"),
    "/again": _Command(lambda session, _: session.again(), "send the last line again, which got no reply"),
    "/new": _Command(_new, "begin a new conversation"),
    "/context": _Command(_context, "the parts of the next prompt, or the text of one of them", "[BLOCK]"),
    "/compact": _Command(_compact, "compact the older messages now"),
    "/summaries": _Command(_summaries, "the summaries that replace older messages in the prompt"),
    "/search": _Command(_search, "what was said in all conversations, best first", "WORDS"),
    "/facts": _Command(_facts, "what was learned about you", "[WORD]"),
    "/keep": _Command(_keep, "store your last line with the secrets that were taken out of it"),
    "/remember": _Command(_remember, "remember a fact, under a key such as home_city", "KEY TEXT"),
    "/forget": _Command(_forget, "forget a fact, by its key or the beginning of its id", "FACT"),
    "/undo": _Command(_undo, "undo the last change of a fact", "FACT"),
    "/tasks": _Command(_tasks, "today's tasks, those of a day, or all", "[DAY]"),
    "/done": _Command(_done, "mark a task or a checklist item as done", "TASK"),
    "/rounds": _Command(_rounds, "the last rounds with their numbers", "[HOW MANY]"),
    "/failed": _Command(_failed, "leave the last round, or that of a number, out from now on", "[ROUND]"),
    "/set": _Command(_set, f"change {', '.join(SETTABLE)}", "[FIELD VALUE]"),
    "/rollover": _Command(_rollover, "archive this conversation and continue from its summary"),
    "/erase": _Command(_erase, "erase this conversation for good"),
}
