"""`hearth key`: API keys, created and revoked in the database, whether a server runs or not."""

from __future__ import annotations

import apsw
import click
import msgspec

from gateway.cli.common.files import opened_store, store_exists
from gateway.cli.common.options import CommandGroup, LocalOptions, json_option, with_local
from gateway.cli.common.text import say, table, time_text
from gateway.store.keys import KeyInfo, Role, create_key, list_keys, revoke_key
from gateway.store.transfer.rows import conversation_ids


@click.group(cls=CommandGroup)
def key() -> None:
    """Manage API keys. Once there is a key, every request needs one."""


@key.command()
@click.argument("name")
@click.option("--role", type=click.Choice(["user", "admin"]), default="user", help="[default: user]")
@json_option
@with_local
def create(name: str, role: Role, as_json: bool, local: LocalOptions) -> None:
    """Create a key and print it. It is shown only now: hearth stores a hash."""

    def make(connection: apsw.Connection) -> KeyInfo:
        info, token = create_key(connection, name, role)
        # Inside the transaction: a key that could not be printed is rolled back.
        say({"token": token, **msgspec.to_builtins(info)} if as_json else token)
        return info

    with opened_store(local.settings) as database:
        info = database.write_sync(make)
        first = len(database.read_sync(list_keys)) == 1
        keyless = len(database.read_sync(lambda c: conversation_ids(c, "local"))) if first else 0
    if not as_json:
        say(f"this is the key of {info.name} ({info.role}); it is not shown again", err=True)
    if keyless:
        say(
            f"no key sees the conversations from before the first one ({keyless}), nor their facts and tasks: "
            "docs/operations.md describes under Keys how to hand them over",
            err=True,
        )


@key.command(name="list")
@json_option
@with_local
def list_(as_json: bool, local: LocalOptions) -> None:
    """List the keys, revoked ones included."""
    found: list[KeyInfo] = []
    if store_exists(local.settings):  # do not create a database by looking
        with opened_store(local.settings) as database:
            found = database.read_sync(list_keys)
    rows = [["ID", "NAME", "ROLE", "MADE", "LAST USED", "STATE"], *map(_row, found)]
    nothing = "there are no keys: every request over loopback is accepted"
    say({"keys": found} if as_json else table(rows) if found else nothing)


@key.command()
@click.argument("which")
@with_local
def revoke(which: str, local: LocalOptions) -> None:
    """Revoke the key with this id or name, immediately and permanently."""
    with opened_store(local.settings) as database:
        info = database.write_sync(lambda connection: revoke_key(connection, which))
    say(f"revoked {info.name} ({info.id})")


def _row(info: KeyInfo) -> list[str]:
    state = "active" if info.revoked_at is None else f"revoked {time_text(info.revoked_at)}"
    return [info.id, info.name, info.role, time_text(info.created_at), time_text(info.last_used_at), state]
