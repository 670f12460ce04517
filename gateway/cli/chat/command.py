"""`hearth chat`: a conversation in the terminal. The server keeps it; the next call continues it."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import click

from gateway.base.errors import HearthError
from gateway.cli.assistants import find_assistant
from gateway.cli.chat.commands import run_command
from gateway.cli.chat.session import ChatSession, NewsBoard
from gateway.cli.common.client import GatewayClient, ServerOptions, with_server
from gateway.cli.common.text import say

_PROMPT = "> "
_HELP = "Ctrl-D ends, Ctrl-C stops a reply, /help lists commands."


@click.command()
@click.option("--system", help="Instructions for a new conversation.")
@click.option("--assistant", help="Begin a new conversation with this assistant (name or id).")
@click.option("--project", help="Begin a new conversation about this project (name or id).")
@click.option("--model", "asked", help="The model with an adapter, such as hearth-demo:pirate.")
@click.option(
    "--max-tokens", type=click.IntRange(1), help="Limit of each reply; by default the configured one."
)
@click.option("--new", is_flag=True, help="Begin a new conversation instead of continuing the last one.")
@click.option("--conversation", help="Continue the conversation with this id.")
@with_server
def chat(
    system: str | None,
    assistant: str | None,
    project: str | None,
    asked: str | None,
    max_tokens: int | None,
    new: bool,
    conversation: str | None,
    server: ServerOptions,
) -> None:
    """Talk with the model. On a terminal, the last conversation continues. Ctrl-D ends."""
    begins = new or any(each is not None for each in (system, assistant, project))
    if conversation is not None and begins:
        raise click.UsageError(
            "--conversation continues one; --new, --system, --assistant and --project begin another"
        )
    client = server.connect()
    terminal = sys.stdin.isatty()
    found: dict[str, Any] | None = None
    # Wrong names fail now, not at the first line.
    if assistant is not None:
        find_assistant(client, assistant)
    if project is not None:
        client.get(f"/v1/projects/{quote(project, safe='')}")
    if conversation is not None:
        found = client.get(f"/v1/conversations/{quote(conversation, safe='')}")
    model = _greet(client, terminal)
    if terminal and conversation is None and not begins:
        found = _last(client)
    news = NewsBoard(client, _PROMPT) if terminal else None
    if found is not None and found["model"] not in ("", model):
        say(f"the model was {found['model']} and is {model} now; the conversation goes on", err=True)
    name = None if found is None else str(found["id"])
    begin = {"instructions": system, "assistant": assistant, "project": project}
    session = ChatSession(client, news, begin, {"model": asked, "max_tokens": max_tokens}, name)
    while True:
        if news is not None:
            news.follow(session.conversation)
        line = _read_line(news)
        if line is None:
            return
        if line.startswith("/"):
            run_command(session, line)
        elif line:
            session.send(line)


def _greet(client: GatewayClient, terminal: bool) -> str:
    """Print the model's name and the server's notice about it. Fails if the server does not answer."""
    models = client.get("/v1/models").get("data", [])
    name = str(models[0]["id"]) if models else "default"
    if models and models[0].get("notice"):
        say(models[0]["notice"], err=True)
    if terminal:
        say(f"{name}. {_HELP}", err=True)
        threading.Thread(target=_load_model, args=(client,), name="load", daemon=True).start()
    return name


def _load_model(client: GatewayClient) -> None:
    """Have the server load its model while the user types the first line."""
    with suppress(HearthError):
        client.post("/v1/typing", {})


def _last(client: GatewayClient) -> dict[str, Any] | None:
    """Find the conversation that was used last, and print the beginning of its last line."""
    known = client.get("/v1/conversations?limit=20")["data"]
    found = next((dict(each) for each in known if each["kind"] == "chat"), None)
    if found is None:
        return None
    if lines := client.get(f"/v1/conversations/{found['id']}/messages?limit=1")["data"]:
        last = " ".join(lines[-1]["text"].split())
        say(f"continuing after: {last[:100]}{'…' if len(last) > 100 else ''} (/new starts afresh)", err=True)
    return found


def _read_line(news: NewsBoard | None) -> str | None:
    """Return the next line without surrounding blanks, None at the end of the input."""
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
