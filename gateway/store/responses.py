"""SQL of stored responses."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec
from msgspec import Struct

from gateway.base.redact import redact_value
from gateway.store.request_log import delete_records
from gateway.store.rows import as_json, insert, select_one

# Beyond these limits the oldest responses are deleted, except the newest one.
MAX_AGE_SECONDS = 30 * 86_400.0
MAX_RESPONSES = 1000  # of one owner
MAX_BYTES = 64 * 1024 * 1024  # of one owner


class StoredResponse(Struct, frozen=True, kw_only=True):
    """The items of a request and the reply. ``previous`` is the id of the response that it continues."""

    id: str
    owner: str
    user: str | None
    created_at: float
    previous: str | None
    input: list[dict[str, Any]]
    response: dict[str, Any]


def keep_response(connection: apsw.Connection, response: StoredResponse) -> None:
    """Store a response with its secrets redacted, then delete what is over the limits."""
    clean = {name: redact_value(getattr(response, name))[0] for name in ("user", "input", "response")}
    row, owner = msgspec.structs.asdict(response) | clean, response.owner
    size = len(as_json(row))
    connection.execute("DELETE FROM responses WHERE owner = ? AND id = ?", (owner, response.id))
    newest = insert(connection, "responses", row | {"bytes": size})
    connection.execute(
        "DELETE FROM responses WHERE created_at < ? AND seq != ?",
        (response.created_at - MAX_AGE_SECONDS, newest),
    )
    connection.execute(
        "DELETE FROM responses WHERE seq != ?1 AND seq IN (SELECT seq FROM ("
        "SELECT seq, row_number() OVER newest AS number, sum(bytes) OVER newest AS total "
        "FROM responses WHERE owner = ?2 WINDOW newest AS (ORDER BY seq DESC)"
        ") AS counted WHERE number > ?3 OR total > ?4)",
        (newest, owner, MAX_RESPONSES, MAX_BYTES),
    )


def get_response(connection: apsw.Connection, owner: str, response: str) -> StoredResponse | None:
    return select_one(connection, StoredResponse, "responses WHERE owner = ? AND id = ?", (owner, response))


def items_of(connection: apsw.Connection, owner: str, response: str) -> list[dict[str, Any]] | str:
    """Return the items of a response and all before it, outputs included, or the id of one that was erased."""
    items: list[dict[str, Any]] = []
    at: str | None = response
    while at is not None:
        row = get_response(connection, owner, at)
        if row is None:
            return at
        items = [*row.input, *row.response["output"], *items]
        at = row.previous
    return items


def erase_response(connection: apsw.Connection, owner: str, response: str) -> bool:
    """Delete a response and the record of its request; False if there is none."""
    if get_response(connection, owner, response) is None:
        return False
    connection.execute("DELETE FROM responses WHERE owner = ? AND id = ?", (owner, response))
    delete_records(connection, "owner = ? AND id = ?", (owner, response.removeprefix("resp_")))
    return True


def erase_responses_of(connection: apsw.Connection, owner: str, user: str) -> None:
    """Delete the responses of an owner's user, as it is stored."""
    connection.execute("DELETE FROM responses WHERE owner = ? AND user = ?", (owner, user))
