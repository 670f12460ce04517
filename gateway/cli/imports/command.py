"""`hearth import`: exports of hearth in either form, or conversations that ChatGPT or Claude exported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import click
import msgspec
from tqdm import tqdm

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.files import opened_store
from gateway.cli.common.options import LocalOptions, PathType, with_local
from gateway.cli.common.text import say
from gateway.cli.imports.chats import PARTS, foreign
from gateway.cli.imports.documents import CHAT, documents
from gateway.store.db import Database
from gateway.store.memory.conversations import PolicyName
from gateway.store.transfer.check import Content, check, clean
from gateway.store.transfer.rows import (
    VERSION,
    Archive,
    AssistantRow,
    FactRow,
    Header,
    Line,
    Numbers,
    write_archive,
    write_assistant,
    write_row,
)


@click.command(name="import")
@click.argument("source", type=PathType(exists=True))
@click.option("--owner", help="The new owner; by default as in the file, `local` for other products' files.")
@with_local
def import_(source: Path, owner: str | None, local: LocalOptions) -> None:
    """Read conversations, facts and tasks from SOURCE, a file or the folder of an export with --documents.

    SOURCE may also be the conversations.json of ChatGPT or Claude.

    Existing rows stay as they are. An invalid file is refused before anything is written.
    """
    if not (source.is_file() or source.is_dir()):
        raise InvalidRequestError(
            f"{source} is neither a file nor a folder; it is read twice, so a pipe does not work"
        )
    policy = local.settings.memory.policy
    left_out: Counter[str] = Counter()
    total = 0
    for where, line in _lines(source, policy, left_out):  # check everything before storing the first line
        with _at(where):
            check(line)
        total += 1
    numbers = Numbers()
    added = redacted = 0
    with opened_store(local.settings) as database, tqdm(total=total, disable=None, leave=False) as bar:
        for where, raw in _lines(source, policy, Counter()):
            with _at(where):
                line = clean(raw)
                new = _store(database, line, owner, numbers)
            added += new
            redacted += _redactions(line) if new else 0
            bar.update()
    secrets = f"; secrets replaced in them: {redacted}" if redacted else ""
    say(f"{added} added, {total - added} were there already{secrets}", err=True)
    if parts := left_out.pop(PARTS, 0):
        say(f"parts of messages without text left out: {parts}", err=True)
    if left_out:
        counts = ", ".join(f"{count} {what}" for what, count in left_out.items())
        say(f"messages left out: {counts}", err=True)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Put the position in front of an error's message."""
    try:
        yield
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{where}: {error.message}") from None


def _store(database: Database, line: Content, owner: str | None, numbers: Numbers) -> bool:
    """Store a row; return False if it exists already."""
    if isinstance(line, Archive):
        return database.write_sync(lambda c: write_archive(c, line, owner, numbers))
    if isinstance(line, AssistantRow):
        return database.write_sync(lambda c: write_assistant(c, line, owner))
    return database.write_sync(lambda c: write_row(c, line, owner, numbers))


def _redactions(line: Content) -> int:
    """Count the secrets that were removed from its rows, here or before the export."""
    if isinstance(line, Archive):
        return line.conversation.redactions + sum(message.redactions for message in line.messages)
    if isinstance(line, AssistantRow):
        return line.assistant.redactions
    return line.fact.redactions if isinstance(line, FactRow) else line.task.redactions


def _lines(source: Path, policy: PolicyName, left_out: Counter[str]) -> Iterator[tuple[str, Content]]:
    """Recognize the format of the source and yield its rows with their positions. Raises InvalidRequestError."""
    if source.is_dir() or source.name == CHAT:
        folder = source if source.is_dir() else source.parent
        yield from documents(folder, policy)
        return
    with source.open("rb") as file:
        first = file.readline()
        if b'"header"' in first and b'"format"' in first:
            yield from _own(first, file)
            return
    yield from foreign(source, policy, left_out)


def _own(first: bytes, rest: Iterator[bytes]) -> Iterator[tuple[str, Content]]:
    decoder = msgspec.json.Decoder(Line)
    for number, raw in enumerate(chain([first], rest), 1):
        if not raw.strip():
            continue
        try:
            line = decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidRequestError(f"line {number}: {error}") from None
        if not isinstance(line, Header):
            yield f"line {number}", line
        elif line.version != VERSION:
            raise InvalidRequestError(f"the file has version {line.version}; this hearth reads {VERSION}")
