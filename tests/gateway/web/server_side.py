"""What the tests of the page do and look up beside the browser: at the server, and with its model host."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from gateway.cli.common.files import opened_database
from gateway.store.keys import create_key
from gateway.wiki import ingest
from tests.end_to_end.server import Server

CONVERSATIONS = "/v1/conversations"


@contextmanager
def halted(server: Server) -> Iterator[None]:
    """The model host stands still inside the block: whatever is asked stays in the middle of it."""
    server.client.post("/admin/host/warm").raise_for_status()
    pid = server.host_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def host_has(server: Server, requests: int) -> bool:
    """Whether the model host has this number of open requests."""
    return bool(server.health()["host"]["open_requests"] == requests)


def post(server: Server, path: str, **body: Any) -> dict[str, Any]:
    reply = server.client.post(path, json=body or None)
    reply.raise_for_status()
    return dict(reply.json())


def kept(server: Server, name: str, *lines: str) -> None:
    """Put lines into a conversation, people's and the model's in turns."""
    for number, line in enumerate(lines):
        role = "assistant" if number % 2 else "user"
        post(server, f"{CONVERSATIONS}/{name}/messages", text=line, role=role, reply=False)


def stored(server: Server, name: str) -> list[tuple[str, bool]]:
    """Role and whether it failed, of the messages that the server has."""
    page = server.client.get(f"{CONVERSATIONS}/{name}/messages").json()
    return [(message["role"], message["failed"]) for message in page["data"]]


def last_question(server: Server) -> tuple[int, set[str]]:
    """The status of the newest question's record, and how its generations ended."""
    with closing(sqlite3.connect(f"file:{server.data_dir / 'hearth.db'}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT status, finish_reason FROM requests LEFT JOIN generations ON request = requests.seq "
            "WHERE requests.seq = (SELECT max(seq) FROM requests WHERE kind = 'ask')"
        ).fetchall()
    return (rows[0][0] if rows else 0), {str(reason) for _, reason in rows}


def new_key(server: Server) -> str:
    """A user's key, as `hearth key create` makes it while the server runs."""
    with opened_database(server.data_dir / "hearth.db") as database:
        return database.write_sync(lambda connection: create_key(connection, "ann", "user"))[1]


def add_page(server: Server, title: str, text: str, origin: str = "sample") -> None:
    """Put a page into the wiki while the server runs; of another origin, nothing says where it is on the web."""
    with opened_database(server.data_dir / "hearth.db") as database:
        page = ingest.prepare(title, 1, text)
        database.write_sync(lambda connection: ingest.put(connection, page, origin))
