"""Which conversations a recorded request tells of, so that its record is erased with each of them.

The prompt of one conversation lists facts and tasks that were read from the owner's others. They are found by their
text when the record is stored; one that stands there by chance costs a record too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from gateway.store.rows import as_json

_LEARNED = (
    "SELECT conversation FROM facts WHERE owner = :owner AND instr(:prompts, text) > 0 "
    "UNION SELECT conversation FROM tasks WHERE owner = :owner AND instr(:prompts, title) > 0"
)


def note_sources(
    connection: apsw.Connection, request: int, *, owner: str, conversation: str, prompts: Sequence[Any]
) -> None:
    """Note of which other conversations of ``owner`` a stored request has facts or tasks in its ``prompts``."""
    connection.execute(
        f"INSERT INTO request_sources SELECT :request, conversation FROM ({_LEARNED}) WHERE conversation <> :own",
        {"request": request, "owner": owner, "own": conversation, "prompts": "\n".join(_texts(prompts))},
    )


def erase_records(connection: apsw.Connection, conversations: Sequence[str]) -> None:
    """Delete the recorded requests of conversations, and those of others whose prompts have something of them."""
    gone = connection.execute(
        "DELETE FROM requests WHERE conversation <> '' AND conversation IN (SELECT value FROM json_each(?1)) OR seq IN "
        "(SELECT request FROM request_sources WHERE conversation IN (SELECT value FROM json_each(?1))) RETURNING bytes",
        (as_json(conversations),),
    )
    sizes = [int(str(size)) for (size,) in gone]
    connection.execute(
        "UPDATE request_totals SET records = records - ?, bytes = bytes - ?", (len(sizes), sum(sizes))
    )


def _texts(value: object) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
