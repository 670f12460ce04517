"""`hearth ask`: one question, its answer as it is generated, and its sources."""

from __future__ import annotations

import sys
from typing import Any

import click

from gateway.ask.stages import stage_text
from gateway.base.errors import HearthError
from gateway.cli.common.client import ServerOptions, raise_event_error, with_server
from gateway.cli.common.options import json_option
from gateway.cli.common.text import say


@click.command()
@click.argument("question", nargs=-1)
@click.option("--model", help="The model with an adapter, such as hearth-demo:pirate.")
@click.option("--style", help="Answer style, such as plain or irc. Default: the server's setting.")
@click.option("--project", help="Ask the documents and code of this project instead of the wiki.")
@json_option
@with_server
def ask(question: tuple[str, ...], as_json: bool, server: ServerOptions, **fields: str | None) -> None:
    """Ask the wiki a question and print the answer with its sources.

    Without QUESTION, the question is read from standard input. Progress is printed to standard error.
    """
    text = " ".join(question) or sys.stdin.read().strip()
    if not text:
        raise click.UsageError("the question is empty: pass it as an argument or on standard input")
    body = {"question": text} | {name: value for name, value in fields.items() if value}
    client = server.connect()
    stages = _StageLine()
    with client.stream("/ask", body) as events:
        for kind, data in events:
            if kind == "stage":
                stages.show(data)
            elif kind == "delta" and not as_json:
                stages.clear()
                say(data["text"], nl=False)
            elif kind == "error":
                stages.clear()
                raise_event_error(data)
            elif kind == "done":
                stages.clear()
                say(data if as_json else _ending(data))
                _remarks(data)
                return
    raise HearthError("the server ended the answer early; ask again", status=503)


class _StageLine:
    """Progress on standard error: one changing line on a terminal, otherwise one line per stage."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = ""
        self._answering = False

    def show(self, stage: dict[str, Any]) -> None:
        """Show a stage event. On a terminal, nothing interrupts the answer."""
        line = stage_text(str(stage["stage"]), dict(stage.get("detail") or {}))
        if not self._terminal and stage["stage"] == "reading":
            return  # only a line that changes can show progress
        if line == self._shown or (self._terminal and self._answering):
            return
        self._shown = line
        say(line, err=True, over=self._terminal, nl=not self._terminal)

    def clear(self) -> None:
        """Erase the line before the answer or an error."""
        if self._terminal and self._shown:
            say(err=True, over=True, nl=False)
        self._shown = ""
        self._answering = True


def _ending(reply: dict[str, Any]) -> str:
    """End the streamed answer with a line break and the sources."""
    lines = [""]
    for source in reply["citations"]:
        place = f"{source['title']}, {source['section']}" if source["section"] else source["title"]
        lines.append(f"[{source['n']}] {place}: {source['url']}")
    if len(lines) > 1:
        lines.insert(1, "")
    return "\n".join(lines)


def _remarks(reply: dict[str, Any]) -> None:
    for page in reply["skipped"]:
        say(f"skipped {page['title']}: {page['reason']}", err=True)
    if reply.get("notice"):
        say(reply["notice"], err=True)
