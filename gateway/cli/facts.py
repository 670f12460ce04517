"""`hearth facts`: what conversations have taught the server about the user."""

from __future__ import annotations

from typing import Any

import click

from gateway.base.errors import HearthError
from gateway.cli.common.client import GatewayClient, ServerOptions, say_list, with_client, with_server
from gateway.cli.common.options import CommandGroup, is_group, json_option
from gateway.cli.common.text import say


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--all", "ended", is_flag=True, help="Older and deleted versions too.")
@json_option
@click.pass_context
@with_server
def facts(context: click.Context, ended: bool, as_json: bool, server: ServerOptions) -> None:
    """List facts; `add`, `forget` and `undo` change them. A fact is named by its key or the beginning of its id."""
    if is_group(context):
        return
    found = list(server.connect().every(f"/v1/facts{'?ended=true' if ended else ''}"))
    say_list(found, as_json, lambda rows: "\n".join(map(fact_line, rows)), "nothing was learned yet")


@facts.command()
@click.argument("name", metavar="KEY")
@click.argument("text", nargs=-1, required=True)
@with_client
def add(client: GatewayClient, name: str, text: tuple[str, ...]) -> None:
    """Remember TEXT under KEY, such as home_city. It replaces the fact under that key."""
    say(fact_line(client.post("/v1/facts", {"key": name, "text": " ".join(text)})))


@facts.command()
@click.argument("fact")
@with_client
def forget(client: GatewayClient, fact: str) -> None:
    """Forget a fact; `undo` brings it back."""
    name = fact_id(client, fact)
    client.delete(f"/v1/facts/{name}")
    say(f"forgotten; `hearth facts undo {name[:8]}` brings it back")


@facts.command()
@click.argument("fact")
@with_client
def undo(client: GatewayClient, fact: str) -> None:
    """Undo the last change of a fact."""
    left = client.post(f"/v1/facts/{fact_id(client, fact)}/undo")["fact"]
    say(f"{left['key']}: {left['text']}" if left else "the fact is gone")


def fact_line(fact: dict[str, Any]) -> str:
    gone = " (ended)" if fact["ended_at"] is not None else ""
    return f"{fact['id'][:8]}  {fact['key']}: {fact['text']}{gone}"


def fact_id(client: GatewayClient, name: str) -> str:
    """Find the one fact, deleted or not, whose id begins with ``name``, or else whose key it is.

    Raises HearthError when there is none, or more than one.
    """
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
