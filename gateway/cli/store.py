"""`hearth store copy`: move conversations between SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import click
from tqdm import tqdm

from gateway.base.errors import ConfigurationError, HearthError
from gateway.cli.common.files import opened
from gateway.cli.common.options import CommandGroup, LocalOptions, json_option, with_local
from gateway.cli.common.runfile import running
from gateway.cli.common.text import say
from gateway.store.db import Database
from gateway.store.open import postgres_database

_SCHEMES = ("postgresql://", "postgres://")


@click.group(cls=CommandGroup)
def store() -> None:
    """The database of keys, request log, conversations, facts and tasks."""


@store.command()
@click.argument("source")
@click.argument("target")
@click.option("--replace", is_flag=True, help="Erase what TARGET has of these.")
@json_option
@with_local
def copy(source: str, target: str, replace: bool, as_json: bool, local: LocalOptions) -> None:
    """Copy from SOURCE to TARGET: the path of a hearth.db and a postgresql:// URL, or the other way round.

    `store.url` instead of a URL is that of the configuration, which keeps passwords out of the list of processes.

    All or nothing, and verified. Stop the gateways of both first. Pages, code and vectors stay where they are. A
    hearth.db that does not exist is made.
    """
    if "store.url" in (source, target) and not local.settings.store.url:
        raise ConfigurationError("store.url is not set: set it, or give the postgresql:// URL")
    source, target = (local.settings.store.url if each == "store.url" else each for each in (source, target))
    up = target.startswith(_SCHEMES)
    url, path = (target, source) if up else (source, target)
    if not url.startswith(_SCHEMES) or path.startswith(_SCHEMES):
        raise ConfigurationError(
            "SOURCE or TARGET is a postgresql:// URL, and the other one the path of a hearth.db"
        )
    file = Path(path).expanduser()
    if not (file if up else file.parent).exists():
        raise ConfigurationError(
            f"there is no {'database' if up else 'folder'} {file if up else file.parent}"
        )
    if server := running(file.parent):
        raise HearthError(
            f"a server uses {file.parent} (process {server.pid}), and what it writes meanwhile would be lost: "
            "`hearth stop` ends it",
            code="already_running",
        )
    shared = postgres_database(url, Database(file), "alone")
    # Late, because it needs psycopg, whose absence has been reported by now.
    from gateway.store.postgres.copy import copy_store

    with opened(shared), tqdm(total=None, unit=" rows", disable=None, leave=False) as bar:
        pair = (shared.local, shared) if up else (shared, shared.local)
        counts = copy_store(*pair, replace=replace, progress=bar.update)
    shown = [f"{count} {name}" for name, count in counts.items() if count]
    say({"rows": counts} if as_json else f"copied and compared: {', '.join(shown) or 'no rows'}")
