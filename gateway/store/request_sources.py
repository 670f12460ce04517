"""Link recorded requests to the conversations whose text is in their prompts, and erase them with those.

A conversation's prompt lists facts, tasks and an assistant's memories from its owner's other conversations. They are
found by their text when the record is stored; a chance match erases one record too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from gateway.store.rows import as_json, column, exists

_LEARNED = (
    "SELECT conversation FROM facts WHERE owner = :owner AND instr(:prompts, text) > 0 "
    "UNION SELECT conversation FROM tasks WHERE owner = :owner AND instr(:prompts, title) > 0 "
    "UNION SELECT value FROM json_each(:quoted)"
)
# A summary as prompts show it, or the beginning of it.
_SUMMARY = (
    "coalesce(iif(json_valid(text), nullif(json_extract(text, '$.ConversationSummary'), ''), nullif(text, '')), "
    "json_extract(pins, '$[0]'))"
)
# Only the prompts of an assistant show summaries of other conversations.
_REMEMBERED = (
    "SELECT conversation FROM summaries JOIN conversations ON conversations.id = conversation "
    f"WHERE owner = :owner AND instr(:prompts, {_SUMMARY}) > 0 "
    "UNION SELECT summaries.conversation FROM assistants "
    "JOIN reflections ON reflections.assistant = assistants.id AND instr(:prompts, reflections.text) > 0 "
    "JOIN reflected ON reflected.assistant = assistants.id AND reflection <= reflections.version "
    "JOIN summaries ON summaries.seq = summary WHERE assistants.owner = :owner"
)


def note_sources(
    connection: apsw.Connection,
    request: int,
    *,
    owner: str,
    conversation: str,
    prompts: Sequence[Any],
    quoted: Sequence[str],
) -> None:
    """Link a stored request to the other conversations of ``owner`` whose text is in its ``prompts``.

    The caller adds the conversations that these quote.
    """
    sources = _LEARNED
    if exists(connection, "assistants WHERE owner = ?", (owner,)):
        sources += f" UNION {_REMEMBERED}"
    connection.execute(
        f"INSERT INTO request_sources SELECT :request, conversation FROM ({sources}) AS sources "
        "WHERE conversation <> :own",
        {
            "quoted": as_json(list(quoted)),
            "request": request,
            "owner": owner,
            "own": conversation,
            "prompts": "\n".join(_texts(prompts)),
        },
    )


def erase_records(connection: apsw.Connection, conversations: Sequence[str]) -> None:
    """Delete the recorded requests of conversations, and those whose prompts quote them."""
    delete_records(
        connection,
        "conversation <> '' AND conversation IN (SELECT value FROM json_each(?1)) OR seq IN "
        "(SELECT request FROM request_sources WHERE conversation IN (SELECT value FROM json_each(?1)))",
        (as_json(conversations),),
    )


def delete_records(connection: apsw.Connection, where: str, values: Sequence[Any]) -> int:
    """Delete recorded requests; returns their number."""
    sizes = column(connection, f"DELETE FROM requests WHERE {where} RETURNING bytes", values)
    query = "UPDATE request_totals SET records = records - ?, bytes = bytes - ?"
    connection.execute(query, (len(sizes), sum(sizes)))
    return len(sizes)


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
