"""`hearth import`: what `hearth export` wrote, or conversations in the shapes that OpenAI's chats export."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from gateway.cli.database import opened_database
from gateway.cli.options import local_options, settings_of
from gateway.errors import InvalidRequestError
from gateway.redact import redact
from gateway.store.conversations import Conversation
from gateway.store.db import Database
from gateway.store.messages import StoredMessage
from gateway.store.transfer import VERSION, Archive, FactRow, Header, Line, TaskRow, write_archive, write_row

_NAMESPACE = uuid.UUID("6f1c1c38-6f2c-5d0b-9a52-2d3e0c5e7a11")
_UNCOUNTED = -1  # tokens; counted when the conversation is next used


@click.command(name="import")
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--owner", help="Whose it shall be; by default as in the file, `local` for foreign ones.")
@local_options
def import_(source: Path, owner: str | None, data_dir: Path | None, config_file: Path | None) -> None:
    """Read conversations, facts and tasks from SOURCE. What is there already is left alone."""
    path = settings_of(data_dir, config_file).settings.database_path
    added = there = 0
    with opened_database(path) as database:
        for line in _lines(source):
            if isinstance(line, Header):
                continue
            new = _store(database, line, owner)
            added, there = added + new, there + (not new)
    click.echo(f"{added} added, {there} were there already", err=True)


def _store(database: Database, line: Archive | FactRow | TaskRow, owner: str | None) -> bool:
    if isinstance(line, Archive):
        return database.write_sync(lambda c: write_archive(c, line, owner))
    return database.write_sync(lambda c: write_row(c, line, owner))


def _lines(source: Path) -> Iterator[Line]:
    """The file's content, whichever of the known shapes it has. Raises InvalidRequestError naming the line."""
    with source.open("rb") as file:
        first = file.readline()
        if b'"header"' in first and b'"format"' in first:
            yield from _own(first, file)
            return
    raw = source.read_bytes()
    try:
        document = msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise InvalidRequestError(f"{source} is neither an export of hearth nor JSON: {error}") from None
    conversations = document if isinstance(document, list) else [document]
    if conversations and all(isinstance(each, dict) and "role" in each for each in conversations):
        conversations = [{"messages": conversations}]
    for number, each in enumerate(conversations, 1):
        yield _foreign(each, number, source)


def _own(first: bytes, rest: Iterator[bytes]) -> Iterator[Line]:
    decoder = msgspec.json.Decoder(Line)
    for number, raw in enumerate([first, *rest], 1):
        if not raw.strip():
            continue
        try:
            line = decoder.decode(raw)
        except msgspec.DecodeError as error:
            raise InvalidRequestError(f"line {number}: {error}") from None
        if isinstance(line, Header) and line.version > VERSION:
            raise InvalidRequestError(
                f"the file has version {line.version}; this hearth reads up to {VERSION}"
            )
        yield line


def _foreign(value: Any, number: int, source: Path) -> Archive:
    """A conversation as OpenAI's chats export it (``mapping``), or as a request has it (``messages``)."""
    if not isinstance(value, dict):
        raise InvalidRequestError(f"{source}: item {number} is no conversation")
    turns = _mapping(value["mapping"]) if isinstance(value.get("mapping"), dict) else value.get("messages")
    if not isinstance(turns, list):
        raise InvalidRequestError(f"{source}: item {number} has neither `mapping` nor `messages`")
    began = _seconds(value.get("create_time"))
    name = str(
        uuid.uuid5(
            _NAMESPACE, str(value.get("conversation_id") or value.get("id") or msgspec.json.encode(value))
        )
    )
    messages: list[StoredMessage] = []
    for turn in turns:
        role, text = _said(turn)
        if role not in ("user", "assistant") or not text.strip():
            continue
        clean, redactions = redact(text)
        last = messages[-1] if messages else None
        again = last is None or (role == "user" and last.role == "assistant")
        messages.append(
            StoredMessage(
                seq=len(messages) + 1,
                id=str(uuid.uuid5(uuid.UUID(name), str(len(messages)))),
                conversation=name,
                role=role,
                speaker="",
                text=clean,
                tokens=_UNCOUNTED,
                round=(last.round if last else 0) + again,
                failed=False,
                summarized_by=None,
                redactions=redactions,
                created_at=_seconds(turn.get("create_time")) or began,
            )
        )
    conversation = Conversation(
        id=name,
        owner="local",
        kind="chat",
        policy="ceiling",
        title=str(value.get("title") or "")[:200],
        participants=[],
        persona="",
        instructions="",
        model="",
        previous=None,
        created_at=began,
        updated_at=_seconds(value.get("update_time")) or began,
    )
    return Archive(conversation=conversation, messages=messages, summaries=[])


def _mapping(nodes: dict[str, Any]) -> list[Any]:
    """The messages along the newest branch, from the root on."""
    parents = {node.get("parent") for node in nodes.values() if isinstance(node, dict)}
    leaves = [key for key in nodes if key not in parents]
    path: list[Any] = []
    at: Any = leaves[-1] if leaves else None
    while isinstance(at, str) and at in nodes and len(path) <= len(nodes):
        node = nodes[at]
        if not isinstance(node, dict):
            break
        if isinstance(node.get("message"), dict):
            path.append(node["message"])
        at = node.get("parent")
    return path[::-1]


def _said(turn: Any) -> tuple[Any, str]:
    """Role and text of a message in either shape."""
    if not isinstance(turn, dict):
        return None, ""
    author, content = turn.get("author"), turn.get("content")
    role = author.get("role") if isinstance(author, dict) else turn.get("role")
    if isinstance(content, dict):
        content = content.get("parts")
    if isinstance(content, list):
        texts = [
            part if isinstance(part, str) else part.get("text")
            for part in content
            if isinstance(part, str | dict)
        ]
        return role, "\n".join(text for text in texts if isinstance(text, str))
    return role, content if isinstance(content, str) else ""


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
