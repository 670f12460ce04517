"""What a line that begins with a slash does in `hearth chat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gateway.cli.facts import fact_id
from gateway.cli.tasks import task_line
from gateway.cli.text import printable
from gateway.errors import HearthError

if TYPE_CHECKING:
    from gateway.cli.chat import Talk

_COMMANDS = {
    "/help": "this list",
    "/new": "begin a new conversation",
    "/context": "what the next prompt consists of, and what is left out",
    "/compact": "compact the older messages now",
    "/summaries": "the summaries that stand for older messages",
    "/facts": "what was learned about you",
    "/tasks": "today's tasks",
    "/forget ID": "forget a fact",
    "/undo ID": "take the last change of a fact back",
    "/erase": "erase this conversation for good",
}


def run_command(talk: Talk, line: str) -> None:
    """Carry out a command; errors are shown, not raised."""
    name, _, argument = line.partition(" ")
    try:
        _run(talk, name, argument.strip())
    except HearthError as error:
        click.echo(f"hearth: {error.message}", err=True)


def _run(talk: Talk, name: str, argument: str) -> None:
    match name:
        case "/new":
            talk.name = None
            click.echo("a new conversation begins with your next line", err=True)
        case "/context":
            _context(talk)
        case "/compact":
            made = talk.client.post(f"/v1/conversations/{talk.begin()}/compact", {})["summaries"]
            click.echo(f"{made} summaries made" if made else "there was nothing to compact", err=True)
        case "/summaries":
            for each in talk.client.get(f"/v1/conversations/{talk.begin()}/summaries")["data"]:
                if each["superseded_by"] is None:
                    click.echo(
                        f"{each['level']} (messages {each['first']} to {each['last']}, {each['tokens']} tokens)"
                    )
                    click.echo(printable(each["text"]))
                    for pin in each["pins"]:
                        click.echo(f"  - {printable(pin)}")
        case "/facts":
            for fact in talk.client.get("/v1/facts?limit=200")["data"]:
                click.echo(f"{fact['id'][:8]}  {printable(fact['key'])}: {printable(fact['text'])}")
        case "/tasks":
            for task in talk.client.get("/v1/tasks?day=today&limit=200")["data"]:
                click.echo(printable(task_line(task)))
        case "/forget":
            talk.client.delete(f"/v1/facts/{fact_id(talk.client, argument)}")
            click.echo(f"forgotten; /undo {argument} brings it back", err=True)
        case "/undo":
            talk.client.post(f"/v1/facts/{fact_id(talk.client, argument)}/undo", {})
            click.echo("done", err=True)
        case "/erase":
            if talk.name is not None:
                talk.client.delete(f"/v1/conversations/{talk.name}")
            talk.name = None
            click.echo("erased", err=True)
        case "/help":
            for command, what in _COMMANDS.items():
                click.echo(f"{command:<12} {what}", err=True)
        case _:
            click.echo(f"there is no command {printable(name)}; /help lists them", err=True)


def _context(talk: Talk) -> None:
    context = talk.client.get(f"/v1/conversations/{talk.begin()}/context")
    for block in context["blocks"]:
        click.echo(f"{block['tokens']:>7}  {block['name']}")
    click.echo(f"{context['total']:>7}  of {context['limit']} (compacted over {context['ceiling']})")
    for left in context["left_out"]:
        click.echo(f"         not in it: {printable(left['what'])} ({printable(left['why'])})")
