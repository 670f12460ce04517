"""SQL of the request log: requests, every prompt and raw output behind the answer, and the pages used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.base.redact import redact_value
from gateway.store.rows import as_json, column, converted, exists, insert, load, select, select_one

# A conversation's prompt lists facts, tasks and an assistant's memories from its owner's other conversations. They are
# found by their text when the record is stored; a chance match erases one record too many.
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

# The kinds from `summary` on are background work for a conversation.
Kind = Literal["ask", "chat", "generate", "embed", "rerank", "summary", "reflection", "facts", "tasks"]

# The table allows only these; the others are stored as `generate`, with their own name in `details.work`.
_STORED_KINDS = ("ask", "chat", "generate")
_KIND = "CASE kind WHEN 'generate' THEN coalesce(details ->> '$.work', kind) ELSE kind END"

_CANDIDATES_SHOWN = 5


class GenerationRecord(Struct, frozen=True, kw_only=True):
    """One call of the model. Seconds are the host's; ``output`` is the raw text, cancelled or not."""

    step: str  # terms, compact, answer, …
    messages: list[
        dict[str, Any]
    ]  # role and content of the whole prompt; each text of embeddings, or its tokens; query and documents
    output: str
    prompt_name: str = ""
    prompt_version: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    queue_seconds: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    seed: int | None = None
    finish_reason: str = ""
    sampling: dict[str, Any] = {}
    variables: dict[str, str] = {}  # of the prompt
    # Parameters: json_schema, grammar, stop, ignore_eos, tools and their choice; dimensions, task, ….
    obeyed: dict[str, Any] = {}


class PageRecord(Struct, frozen=True, kw_only=True):
    """A page that went into a prompt: ``how`` is whole, passages or summary."""

    title: str
    revision: int
    term: str = ""
    how: str = ""
    tokens: int = 0


class RequestColumns(Struct, frozen=True, kw_only=True):
    """Columns of a request. ``started_at`` is in Unix seconds; ``error`` is an error code."""

    id: str
    kind: Kind
    started_at: float
    seconds: float
    status: int
    text: str  # the question, or the last user message
    answer: str = ""
    owner: str = ""
    model: str = ""
    error: str | None = None


class StoredRequest(RequestColumns, frozen=True, kw_only=True):
    details: dict[str, Any] = {}
    redactions: int = 0  # secrets redacted when the record was stored
    conversation: str = ""  # the record is erased with it, and with those whose text is in the prompts


class RequestRecord(StoredRequest, frozen=True, kw_only=True):
    """A request with its model calls and its pages."""

    generations: list[GenerationRecord] = []
    pages: list[PageRecord] = []
    quoted: list[str] = []  # conversations whose messages are in the prompts; stored as its sources


class RequestSummary(RequestColumns, frozen=True, kw_only=True):
    """The short form. ``seq`` orders records and is the cursor of :func:`list_records`."""

    seq: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


def add_record(
    connection: apsw.Connection, record: RequestRecord, *, max_records: int, max_record_bytes: int
) -> int:
    """Store a record with its secrets redacted, then drop the oldest ones over either limit; returns its ``seq``.

    ``max_record_bytes`` bounds all records together. The new record stays, even if it alone exceeds the limit.
    """
    plain, redactions = redact_value(msgspec.to_builtins(record))
    clean = converted(plain, RequestRecord)
    size = len(msgspec.json.encode(clean))
    seq = _insert(connection, clean, redactions, size)
    if clean.conversation:
        _note_sources(connection, seq, clean)
    connection.execute("UPDATE request_totals SET records = records + 1, bytes = bytes + ?", (size,))
    _rotate(connection, max_records, max_record_bytes)
    return seq


def list_records(
    connection: apsw.Connection, limit: int, before: int | None = None, kind: Kind | None = None
) -> list[RequestSummary]:
    """Records older than the cursor ``before`` (a ``seq``), newest first, of one kind or of all."""
    totals = ", ".join(
        f"(SELECT coalesce(sum({name}), 0) FROM generations WHERE request = requests.seq) AS {name}"
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens")
    )
    names = [n for n in RequestSummary.__struct_fields__ if not n.endswith("_tokens")]
    shown = [f"{_KIND} AS kind" if name == "kind" else name for name in names]
    # The first part of the condition for a kind has an index.
    conditions = ["TRUE" if before is None else "seq < :before"]
    conditions += [f"kind = :stored AND {_KIND} = :kind"] if kind else []
    values = {"limit": limit, "before": before, "kind": kind, "stored": kind and _stored(kind)}
    query = (
        f"SELECT {', '.join(shown)}, {totals} FROM requests WHERE {' AND '.join(conditions)} "
        "ORDER BY seq DESC LIMIT :limit"
    )
    return load(connection, RequestSummary, query, values)


def get_record(connection: apsw.Connection, which: str) -> RequestRecord:
    """The record whose id is ``which``, or the only one that starts with it; the newest one when an id repeats.

    Raises NotFoundError, or InvalidRequestError when several ids start with it.
    """
    request_id = _complete_id(connection, which)
    seq = connection.execute("SELECT max(seq) FROM requests WHERE id = ?", (request_id,)).get
    row = select_one(connection, StoredRequest, "requests WHERE seq = ?", (seq,))
    assert row is not None
    fields = msgspec.structs.asdict(row)
    if row.kind == "generate":
        fields["kind"] = row.details.pop("work", row.kind)
    return RequestRecord(
        **fields,
        generations=select(
            connection, GenerationRecord, "generations WHERE request = ? ORDER BY seq", (seq,)
        ),
        pages=select(connection, PageRecord, "request_pages WHERE request = ? ORDER BY seq", (seq,)),
    )


def erase_records_of(connection: apsw.Connection, owner: str, user: str) -> int:
    """Delete the records of an owner's user, as the requests named them; returns their number."""
    return delete_records(connection, "owner = ? AND details ->> '$.user' = ?", (owner, user))


def _complete_id(connection: apsw.Connection, which: str) -> str:
    if exists(connection, "requests WHERE id = ?", (which,)):
        return which
    query = (
        "SELECT DISTINCT id FROM requests WHERE id >= ?1 AND id < ?1 || char(0x10ffff) ORDER BY id LIMIT ?2"
    )
    found: list[str] = column(connection, query, (which, _CANDIDATES_SHOWN + 1))
    if not found or not which:
        raise NotFoundError(f"no request in the log has the id `{which}`: it may have been rotated out")
    if len(found) > 1:
        more = ", …" if len(found) > _CANDIDATES_SHOWN else ""
        raise InvalidRequestError(
            f"`{which}` is the beginning of several ids: {', '.join(found[:_CANDIDATES_SHOWN])}{more}",
            param="id",
        )
    return found[0]


def _insert(connection: apsw.Connection, record: RequestRecord, redactions: int, size: int) -> int:
    row = {name: getattr(record, name) for name in StoredRequest.__struct_fields__}
    if record.kind not in _STORED_KINDS:
        row["details"] = {**record.details, "work": record.kind}
    row |= {"kind": _stored(record.kind), "redactions": redactions, "bytes": size}
    seq = insert(connection, "requests", row)
    for table, children in (("generations", record.generations), ("request_pages", record.pages)):
        for index, child in enumerate(children):
            insert(connection, table, child, request=seq, seq=index)
    return seq


def _stored(kind: Kind) -> str:
    return kind if kind in _STORED_KINDS else "generate"


def _rotate(connection: apsw.Connection, max_records: int, max_bytes: int) -> None:
    while True:
        records, size = connection.execute("SELECT records, bytes FROM request_totals").get
        if records <= 1 or (records <= max_records and size <= max_bytes):
            return
        delete_records(connection, "seq = (SELECT min(seq) FROM requests)", ())


def _note_sources(connection: apsw.Connection, seq: int, record: RequestRecord) -> None:
    """Link a stored request to the other conversations of its owner whose text is in its prompts."""
    sources = _LEARNED
    if exists(connection, "assistants WHERE owner = ?", (record.owner,)):
        sources += f" UNION {_REMEMBERED}"
    connection.execute(
        f"INSERT INTO request_sources SELECT :request, conversation FROM ({sources}) AS sources "
        "WHERE conversation <> :own",
        {
            "quoted": as_json(record.quoted),
            "request": seq,
            "owner": record.owner,
            "own": record.conversation,
            "prompts": "\n".join(_texts([each.messages for each in record.generations])),
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
