"""`hearth chat`: a conversation in the terminal. The history lives here; the server keeps none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.catalog import Catalog
from gateway.cli.client import Client, connect, raise_event_error
from gateway.cli.options import client_options
from gateway.cli.text import printable
from gateway.errors import HearthError

_HELP = "Ctrl-D ends, Ctrl-C stops a reply, /new starts over."


@click.command()
@click.option("--system", help="Instructions that come before the conversation.")
@click.option("--max-tokens", type=int, help="Limit of each reply; by default the rest of the context.")
@client_options
def chat(
    system: str | None,
    max_tokens: int | None,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> None:
    """Talk with the model. Ctrl-C stops a reply, Ctrl-D ends the conversation."""
    client = connect(url, key, data_dir, config_file)
    terminal = sys.stdin.isatty()
    _greet(client, terminal)
    opening = [{"role": "system", "content": system}] if system else []
    limit = {} if max_tokens is None else {"max_tokens": max_tokens}
    messages = list(opening)
    while (line := _read_line(terminal)) is not None:
        if line == "/new":
            messages = list(opening)
        elif line:
            _turn(client, messages, line, limit, terminal)


def _greet(client: Client, terminal: bool) -> None:
    """Name the model, and what its catalog row says about it. Also proves that the server answers."""
    models = client.get("/v1/models").get("data", [])
    name = str(models[0]["id"]) if models else "default"
    row = Catalog.load().get(name)
    if row is not None and row.notice:
        click.echo(row.notice, err=True)
    if terminal:
        click.echo(f"{printable(name)}. {_HELP}", err=True)


def _read_line(terminal: bool) -> str | None:
    """The next line typed, without blanks around it; None at the end."""
    while True:
        try:
            return input("> " if terminal else "").strip()
        except EOFError:
            if terminal:
                click.echo(err=True)
            return None
        except KeyboardInterrupt:
            if not terminal:
                raise
            click.echo(f"\n{_HELP}", err=True)


def _turn(
    client: Client, messages: list[dict[str, str]], line: str, limit: dict[str, int], terminal: bool
) -> None:
    """One question and its reply. A turn without any reply leaves no trace in ``messages``.

    Raises HearthError when no terminal is there to read it and go on.
    """
    messages.append({"role": "user", "content": line})
    parts: list[str] = []
    try:
        _stream_reply(client, {"messages": messages, "stream": True, **limit}, parts)
    except KeyboardInterrupt:
        click.echo(" [stopped]", err=True)
        if not terminal:
            raise
    except HearthError as error:
        if not terminal:
            raise
        click.echo(f"hearth: {error.message}", err=True)
    if parts:
        click.echo()
        messages.append({"role": "assistant", "content": "".join(parts)})
    else:
        messages.pop()


def _stream_reply(client: Client, body: dict[str, Any], parts: list[str]) -> None:
    with client.stream("/v1/chat/completions", body) as events:
        for event in events:
            if event.data == "[DONE]":
                return
            chunk = msgspec.json.decode(event.data)
            if "error" in chunk:
                raise_event_error(chunk)
            for choice in chunk["choices"]:
                if text := choice["delta"].get("content"):
                    parts.append(text)
                    click.echo(printable(text), nl=False)
                if choice["finish_reason"] == "length":
                    click.echo(" [cut at the token limit]", err=True)
    raise HearthError("the server ended the reply early", status=503)
