"""`hearth export`: conversations, facts and tasks as JSON Lines, or as the documents' JSON files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

import click
import msgspec

from gateway.base.errors import ConfigurationError, HearthError
from gateway.cli.common.files import opened_store, store_exists
from gateway.cli.common.options import LocalOptions, PathType, with_local
from gateway.cli.common.surroundings import FULL
from gateway.cli.common.text import say
from gateway.cli.imports.documents import written
from gateway.store.keys import check_owner
from gateway.store.transfer.rows import (
    VERSION,
    Header,
    conversation_ids,
    read_archive,
    read_assistants,
    read_rest,
)


@click.command()
@click.argument("target", type=PathType(allow_dash=True))
@click.option("--owner", help="Only what belongs to this owner; `local` without keys.")
@click.option(
    "--documents",
    is_flag=True,
    help="Write a folder TARGET of JSON files and summaries: Daily_chat.json, root.json and others.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@with_local
def export(target: Path, owner: str | None, documents: bool, force: bool, local: LocalOptions) -> None:
    """Write conversations, facts and tasks to TARGET (`-` for standard output)."""
    if not store_exists(local.settings):
        raise ConfigurationError(f"there is no database {local.settings.database_path} to export from")
    with opened_store(local.settings) as database:
        if owner is not None:
            database.read_sync(partial(check_owner, owner=owner))
        names = database.read_sync(lambda connection: conversation_ids(connection, owner))
        archives = (database.read_sync(partial(read_archive, conversation=name)) for name in names)
        assistants = database.read_sync(lambda connection: read_assistants(connection, owner))
        rest = database.read_sync(lambda connection: list(read_rest(connection, owner)))
        if documents:
            files = written(list(archives), rest, assistants)
            for name in files:
                _check_free(target / name, force)
            for name, content in files.items():
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                with _output(target / name, force) as write:
                    write(content)
            say(f"{len(names)} conversations in {target}", err=True)
            return
        with _output(target, force) as write:
            for row in chain([Header("hearth", VERSION, time.time())], assistants, archives, rest):
                write(msgspec.json.encode(row))
    say(f"{len(names)} conversations", err=True)


def _check_free(target: Path, force: bool) -> None:
    if target.exists() and not force:
        raise ConfigurationError(f"{target} exists; --force replaces it")


@contextmanager
def _output(target: Path, force: bool) -> Iterator[Callable[[bytes], None]]:
    """A function that writes a line to standard output, or to a file that appears when complete. Raises HearthError."""
    if str(target) == "-":
        yield say
        return
    _check_free(target, force)
    unfinished = target.with_name(f".{target.name}.partial")
    try:
        with unfinished.open("wb") as out:
            yield lambda line: out.writelines((line, b"\n"))
        unfinished.replace(target)
    except OSError as error:
        kind = HearthError if error.errno in FULL else ConfigurationError
        raise kind(f"{target} cannot be written: {error.strerror}", status=503) from None
    finally:
        with suppress(OSError):
            unfinished.unlink()
