"""`hearth assistants`: the characters that speak in conversations."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import click

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.client import (
    GatewayClient,
    ServerOptions,
    ServerReply,
    say_list,
    with_client,
    with_server,
)
from gateway.cli.common.options import CommandGroup, is_group, json_option
from gateway.cli.common.text import say


@click.group(cls=CommandGroup, invoke_without_command=True)
@json_option
@click.pass_context
@with_server
def assistants(context: click.Context, as_json: bool, server: ServerOptions) -> None:
    """List assistants; the commands name one by its name or id. `hearth chat --assistant NAME` talks with one."""
    if is_group(context):
        return
    found = list(server.connect().every("/v1/assistants"))
    say_list(found, as_json, lambda rows: "\n".join(map(_line, rows)), "there are no assistants")


@assistants.command()
@click.argument("name")
@click.argument("biography", nargs=-1)
@with_client
def add(client: GatewayClient, name: str, biography: tuple[str, ...]) -> None:
    """Add an assistant; BIOGRAPHY opens each of its prompts."""
    say(_line(client.post("/v1/assistants", {"name": name, "biography": " ".join(biography)})))


@assistants.command()
@click.argument("which")
@click.argument("biography", nargs=-1)
@click.option("--name", help="A new name.")
@with_client
def edit(client: GatewayClient, which: str, biography: tuple[str, ...], name: str | None) -> None:
    """Give an assistant a new BIOGRAPHY, name, or both."""
    if not biography and name is None:
        raise click.UsageError("give a biography, --name, or both")
    body = {"biography": " ".join(biography)} if biography else {}
    say(
        _line(
            client.patch(
                _path(find_assistant(client, which)["id"]), body if name is None else body | {"name": name}
            )
        )
    )


@assistants.command()
@click.argument("which")
@with_client
def show(client: GatewayClient, which: str) -> None:
    """Show an assistant's biography and what it has learned in its conversations."""
    found = find_assistant(client, which)
    say(_line(found))
    reflections = client.get(f"{_path(found['id'])}/reflections?limit=1")["data"]
    for each in reflections:
        say(
            "\n".join(
                [f"reflection {each['version']}", each["text"], *(f"  - {pin}" for pin in each["pins"])]
            )
        )


@assistants.command()
@click.argument("which")
@with_client
def remove(client: GatewayClient, which: str) -> None:
    """Erase an assistant permanently; its conversations stay."""
    client.delete(_path(find_assistant(client, which)["id"]))
    say("erased")


def find_assistant(client: GatewayClient, which: str) -> ServerReply:
    """Return the assistant with this id or name. Raises HearthError if there is none."""
    name = which
    if "/" in which:  # a path cannot have such a name
        rows = client.every("/v1/assistants")
        name = next((str(each["id"]) for each in rows if each["name"] == which), "")
        if not name:
            raise InvalidRequestError(f"there is no assistant `{which}`", param="assistant")
    return client.get(_path(name))


def _path(name: str) -> str:
    return f"/v1/assistants/{quote(name, safe='')}"


def _line(found: dict[str, Any]) -> str:
    name = found["name"] or "(no name)"
    return f"{found['id'][:8]}  {name}: {found['biography']} (version {found['version']})"
