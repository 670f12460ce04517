"""`hearth export`: conversations, facts and tasks as JSON Lines, or as the documents' JSON files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.base.errors import ConfigurationError, HearthError
from gateway.cli.common.database import opened_database
from gateway.cli.common.options import LocalOptions, PathType, with_local
from gateway.cli.common.surroundings import FULL
from gateway.cli.common.text import say
from gateway.cli.imports.documents import CHAT, REGISTRY, SUMMARY
from gateway.store.db import Database
from gateway.store.memory.transfer import VERSION, Archive, Header, conversation_ids, read_archive, read_rest


@click.command()
@click.argument("target", type=PathType(allow_dash=True))
@click.option("--owner", help="Only what belongs to this owner; `local` without keys.")
@click.option(
    "--documents",
    is_flag=True,
    help="Write Daily_chat.json, Daily_summary.json and root.json into the folder TARGET.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@with_local
def export(
    target: Path,
    owner: str | None,
    documents: bool,
    force: bool,
    local: LocalOptions,
) -> None:
    """Write conversations, facts and tasks to TARGET (`-` for standard output)."""
    path = local.settings.database_path
    if not path.is_file():
        raise ConfigurationError(f"there is no database {path} to export from")
    with opened_database(path) as database:
        if documents:
            _write_documents(database, target, owner, force)
            return
        with _output(target, force) as write:
            written = _write_lines(database, write, owner)
    say(f"{written} conversations", err=True)


def _write_lines(database: Database, write: Callable[[bytes], None], owner: str | None) -> int:
    """A header, a line a conversation, then facts and tasks."""
    write(msgspec.json.encode(Header("hearth", VERSION, time.time())))
    names = database.read_sync(lambda c: conversation_ids(c, owner))
    for archive in _archives(database, names):
        write(msgspec.json.encode(archive))
    for row in database.read_sync(lambda c: list(read_rest(c, owner))):
        write(msgspec.json.encode(row))
    return len(names)


def _write_documents(database: Database, folder: Path, owner: str | None, force: bool) -> None:
    """The shapes of the design documents: the log by day, the summaries with their spans, and a registry."""
    folder.mkdir(parents=True, exist_ok=True)
    archives = list(_archives(database, database.read_sync(lambda c: conversation_ids(c, owner))))
    files: dict[str, Any] = {
        CHAT: _by_day(archives),
        SUMMARY: [_summary(archive, each) for archive in archives for each in archive.summaries],
        REGISTRY: {
            archive.conversation.id: {
                "name": archive.conversation.title,
                "kind": archive.conversation.kind,
                "last_accessed": _time(archive.conversation.updated_at),
                "stats": {"messages": len(archive.messages), "summaries": len(archive.summaries)},
            }
            for archive in archives
        },
    }
    for name in files:
        if (folder / name).exists() and not force:
            raise ConfigurationError(f"{folder / name} exists; --force replaces it")
    for name, content in files.items():
        with _output(folder / name, force) as write:
            write(msgspec.json.format(msgspec.json.encode(content), indent=2))
    say(f"{', '.join(files)} in {folder}", err=True)


def _archives(database: Database, names: list[str]) -> Iterator[Archive]:
    for name in names:
        yield database.read_sync(partial(read_archive, conversation=name))


def _by_day(archives: list[Archive]) -> dict[str, list[dict[str, Any]]]:
    days: dict[str, list[dict[str, Any]]] = {}
    for archive in archives:
        for message in archive.messages:
            day = datetime.fromtimestamp(message.created_at).astimezone().date().isoformat()
            days.setdefault(day, []).append(
                {
                    "conversation": archive.conversation.id,
                    "id": message.id,
                    "role": message.role,
                    "speaker": message.speaker,
                    "text": message.text,
                    "failed": message.failed,
                    "time": _time(message.created_at),
                }
            )
    return dict(sorted(days.items()))


def _summary(archive: Archive, summary: Any) -> dict[str, Any]:
    return {
        "conversation": archive.conversation.id,
        "level": summary.level,
        "from": _time(summary.from_time),
        "to": _time(summary.to_time),
        "messages": [m.id for m in archive.messages if summary.first <= m.seq <= summary.last],
        "text": summary.text,
        "pins": summary.pins,
        "prompt": f"{summary.prompt_name} {summary.prompt_version}",
        "model": summary.model,
        "live": summary.superseded_by is None,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="milliseconds")


@contextmanager
def _output(target: Path, force: bool) -> Iterator[Callable[[bytes], None]]:
    """Writes a line: to standard output, or to a file that appears only when it is complete. Raises HearthError."""
    if str(target) == "-":
        yield say
        return
    if target.exists() and not force:
        raise ConfigurationError(f"{target} exists; --force replaces it")
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
