"""Stored responses."""

from __future__ import annotations

from gateway.store.db import Database
from gateway.store.responses import (
    StoredResponse,
    erase_response,
    erase_responses_of,
    get_response,
    items_of,
    keep_response,
)


def response(name: str, previous: str | None = None, user: str | None = "bea") -> StoredResponse:
    return StoredResponse(
        id=name,
        owner="ann",
        user=user,
        created_at=100.0,
        previous=previous,
        input=[{"text": name}],
        response={"output": [{"reply": name}]},
    )


def test_responses_are_kept_chained_and_erased(database: Database) -> None:
    first, second = response("resp_1"), response("resp_2", "resp_1", None)
    for each in (first, second, second):
        database.write_sync(lambda c, each=each: keep_response(c, each))  # type: ignore[misc]
    assert database.read_sync(lambda c: get_response(c, "ann", "resp_1")) == first
    assert database.read_sync(lambda c: items_of(c, "ann", "resp_2")) == [
        {"text": "resp_1"},
        {"reply": "resp_1"},
        {"text": "resp_2"},
        {"reply": "resp_2"},
    ]
    database.write_sync(lambda c: erase_responses_of(c, "ann", "bea"))
    assert database.read_sync(lambda c: items_of(c, "ann", "resp_2")) == "resp_1"
    assert database.write_sync(lambda c: erase_response(c, "ann", "resp_2"))
    assert not database.write_sync(lambda c: erase_response(c, "ann", "resp_2"))
