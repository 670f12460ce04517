"""`hearth facts`: what conversations have taught the server about you."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.base.errors import HearthError
from gateway.cli.common.client import GatewayClient, connect
from gateway.cli.common.options import client_options, json_option
from gateway.cli.common.text import say


@click.group(invoke_without_command=True)
@click.option("--all", "ended", is_flag=True, help="Older and deleted versions too.")
@json_option
@client_options
@click.pass_context
def facts(
    context: click.Context,
    ended: bool,
    as_json: bool,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> None:
    """List facts; `add`, `forget` and `undo` change them. A fact is named by its key or the beginning of its id."""
    context.obj = connect(url, key, data_dir, config_file)
    if context.invoked_subcommand is not None:
        return
    found = list(context.obj.every(f"/v1/facts{'?ended=true' if ended else ''}"))
    if as_json:
        say(msgspec.json.encode({"data": found, "next": None}))
        return
    for fact in found:
        say(fact_line(fact))
    if not found:
        say("nothing was learned yet", err=True)


@facts.command()
@click.argument("key")
@click.argument("text", nargs=-1, required=True)
@click.pass_obj
def add(client: GatewayClient, key: str, text: tuple[str, ...]) -> None:
    """Remember TEXT under KEY, such as home_city; it takes the place of what stood there."""
    say(fact_line(remember(client, key, " ".join(text))))


@facts.command()
@click.argument("fact")
@click.pass_obj
def forget(client: GatewayClient, fact: str) -> None:
    """Forget a fact; `undo` brings it back."""
    name = fact_id(client, fact)
    client.delete(f"/v1/facts/{name}")
    say(f"forgotten; `hearth facts undo {name[:8]}` brings it back")


@facts.command()
@click.argument("fact")
@click.pass_obj
def undo(client: GatewayClient, fact: str) -> None:
    """Take the last change of a fact back."""
    left = client.post(f"/v1/facts/{fact_id(client, fact)}/undo")["fact"]
    say(f"{left['key']}: {left['text']}" if left else "the fact is gone")


def remember(client: GatewayClient, key: str, text: str) -> dict[str, Any]:
    """A fact that the user enters."""
    return dict(client.post("/v1/facts", {"key": key, "text": text}))


def fact_line(fact: dict[str, Any]) -> str:
    """One fact in one line."""
    gone = " (ended)" if fact["ended_at"] is not None else ""
    return f"{fact['id'][:8]}  {fact['key']}: {fact['text']}{gone}"


def fact_id(client: GatewayClient, name: str) -> str:
    """The id of the one fact, deleted or not, whose id begins so, or else that has this key. Raises HearthError."""
    versions = list(client.every("/v1/facts?ended=true"))
    matching = {str(fact["id"]) for fact in versions if name and fact["id"].startswith(name)}
    if not matching:
        live = {str(fact["id"]) for fact in versions if fact["key"] == name and fact["ended_at"] is None}
        matching = live or {str(fact["id"]) for fact in versions if fact["key"] == name}
    if len(matching) != 1:
        count = f"of {len(matching)} facts" if matching else "of no fact"
        raise HearthError(
            f"`{name}` is the key, or the beginning of the id, {count}; `hearth facts` lists them"
        )
    return matching.pop()
