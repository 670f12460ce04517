"""`hearth chat`: a conversation in the terminal. The server keeps it, so that the next call goes on with it."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from gateway.base.errors import HearthError
from gateway.cli.chat.commands import run_command
from gateway.cli.chat.news import NewsBoard
from gateway.cli.chat.talk import Talk
from gateway.cli.common.client import GatewayClient, connect
from gateway.cli.common.options import client_options
from gateway.cli.common.text import say

_PROMPT = "> "
_HELP = "Ctrl-D ends, Ctrl-C stops a reply, /help lists commands."


@click.command()
@click.option("--system", help="Instructions for a new conversation.")
@click.option("--max-tokens", type=int, help="Limit of each reply; by default the configured one.")
@click.option("--new", is_flag=True, help="Begin a new conversation instead of going on with the last one.")
@click.option("--conversation", help="Go on with the conversation of this id.")
@client_options
def chat(
    system: str | None,
    max_tokens: int | None,
    new: bool,
    conversation: str | None,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> None:
    """Talk with the model. On a terminal, the last conversation goes on. Ctrl-D ends."""
    client = connect(url, key, data_dir, config_file)
    terminal = sys.stdin.isatty()
    model = _greet(client, terminal)
    found: dict[str, Any] | None = None
    if conversation is not None:
        found = client.get(f"/v1/conversations/{quote(conversation)}")  # a wrong id is told at once
    elif terminal and not new and system is None:
        found = _last(client)
    news = NewsBoard(client, _PROMPT) if terminal else None
    name = _resumed(client, found, model)
    talk = Talk(client, news, system=system, max_tokens=max_tokens, name=name)
    while True:
        if news is not None:
            news.follow(talk.name)
        line = _read_line(news)
        if line is None:
            return
        if line.startswith("/"):
            run_command(talk, line)
        elif line:
            talk.say(line)


def _greet(client: GatewayClient, terminal: bool) -> str:
    """Name the model, and what the server remarks about it. Also proves that the server answers."""
    models = client.get("/v1/models").get("data", [])
    name = str(models[0]["id"]) if models else "default"
    if models and models[0].get("notice"):
        say(models[0]["notice"], err=True)
    if terminal:
        say(f"{name}. {_HELP}", err=True)
        threading.Thread(target=_warm, args=(client,), name="warm", daemon=True).start()
    return name


def _warm(client: GatewayClient) -> None:
    """Have the model loaded while the first line is being typed."""
    with suppress(HearthError):
        client.post("/v1/typing", {})


def _last(client: GatewayClient) -> dict[str, Any] | None:
    """The conversation that was used last, shown by its last line."""
    known = client.get("/v1/conversations?limit=20")["data"]
    found = next((dict(each) for each in known if each["kind"] == "chat"), None)
    if found is None:
        return None
    lines = client.get(f"/v1/conversations/{found['id']}/messages?limit=1")["data"]
    if lines:
        last = " ".join(lines[-1]["text"].split())
        say(f"going on after: {last[:100]}{'…' if len(last) > 100 else ''} (/new begins anew)", err=True)
    return found


def _resumed(client: GatewayClient, found: dict[str, Any] | None, model: str) -> str | None:
    """The conversation to go on with: after a change of the model a new one, from a summary of the old."""
    if found is None:
        return None
    name = str(found["id"])
    if found["model"] in ("", model) or found["archived_at"] is not None:
        return name
    change = f"the model was {found['model']} and is {model} now"
    try:
        new = str(client.post(f"/v1/conversations/{name}/rollover")["id"])
    except HearthError as error:
        say(f"{change}; without a summary the conversation goes on as it is: {error.message}", err=True)
        return name
    say(f"{change}: a new conversation goes on from a summary, the old one is archived", err=True)
    return new


def _read_line(news: NewsBoard | None) -> str | None:
    """The next line typed, without blanks around it; None at the end."""
    while True:
        try:
            return (news.read_line() if news else input()).strip()
        except EOFError:
            if news is not None:
                say(err=True)
            return None
        except KeyboardInterrupt:
            if news is None:
                raise
            say(f"\n{_HELP}", err=True)
