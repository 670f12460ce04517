"""`hearth facts`: what conversations have taught the server about you."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from gateway.cli.client import Client, connect
from gateway.cli.options import client_options, json_option
from gateway.cli.text import printable
from gateway.errors import HearthError


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
    """List facts; `forget` and `undo` change them. An id may be shortened."""
    context.obj = connect(url, key, data_dir, config_file)
    if context.invoked_subcommand is not None:
        return
    reply = context.obj.get(f"/v1/facts?limit=200{'&ended=true' if ended else ''}")
    if as_json:
        click.echo(msgspec.json.encode(reply))
        return
    for fact in reply["data"]:
        gone = " (ended)" if fact["ended_at"] is not None else ""
        click.echo(f"{fact['id'][:8]}  {printable(fact['key'])}: {printable(fact['text'])}{gone}")
    if not reply["data"]:
        click.echo("nothing was learned yet", err=True)


@facts.command()
@click.argument("fact")
@click.pass_obj
def forget(client: Client, fact: str) -> None:
    """Forget a fact; `undo` brings it back."""
    name = fact_id(client, fact)
    client.delete(f"/v1/facts/{name}")
    click.echo(f"forgotten; `hearth facts undo {name[:8]}` brings it back")


@facts.command()
@click.argument("fact")
@click.pass_obj
def undo(client: Client, fact: str) -> None:
    """Take the last change of a fact back."""
    left = client.post(f"/v1/facts/{fact_id(client, fact)}/undo", {})["fact"]
    click.echo(f"{printable(left['key'])}: {printable(left['text'])}" if left else "the fact is gone")


def fact_id(client: Client, beginning: str) -> str:
    """The id of the one fact, deleted or not, whose id begins so. Raises HearthError."""
    found = {str(fact["id"]) for fact in client.get("/v1/facts?limit=200&ended=true")["data"]}
    matching = [name for name in found if beginning and name.startswith(beginning)]
    if len(matching) != 1:
        raise HearthError(
            f"`{beginning}` is the beginning of {len(matching)} facts' ids; `hearth facts` lists them"
        )
    return matching[0]
