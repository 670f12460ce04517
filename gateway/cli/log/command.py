"""`hearth log`: past requests as a list, in full, or replayed and compared."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

import click
import msgspec

from gateway.base.errors import NotFoundError
from gateway.cli.common.client import ServerOptions, with_server
from gateway.cli.common.database import opened_store, store_exists
from gateway.cli.common.options import json_option
from gateway.cli.common.text import say, table, text_of
from gateway.cli.log.replay import chosen_prompts, replay_record
from gateway.models.prompts import load_prompts
from gateway.store.request_log import (
    GenerationRecord,
    Kind,
    RequestRecord,
    RequestSummary,
    get_record,
    list_records,
)

_TEXT_WIDTH = 60


@click.command()
@click.argument("which", metavar="[ID]", required=False)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=20, help="How many, newest first.  [default: 20]"
)
@click.option("--before", type=int, help="Only records older than this number.")
@click.option("--kind", type=click.Choice(get_args(Kind)), help="Only requests of this kind.")
@click.option(
    "--replay", is_flag=True, help="Run the request's generations again, with their seeds, and compare."
)
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="NAME=VERSION",
    help="Replay with this version of a prompt, which must be the loaded one.",
)
@json_option
@with_server
def log(
    which: str | None,
    limit: int,
    before: int | None,
    kind: Kind | None,
    replay: bool,
    prompts: tuple[str, ...],
    as_json: bool,
    server: ServerOptions,
) -> None:
    """Look at past requests: a list, or everything about the request with ID (its beginning is enough)."""
    settings = server.local.settings
    if prompts and not replay:
        raise click.UsageError("--prompt goes with --replay")
    if server.url and not replay:
        raise click.UsageError(
            "--url goes with --replay; the log is that of a data directory: --data-dir names it"
        )
    if replay and which is None:
        raise click.UsageError("--replay needs the ID of a request")
    if which is None:
        found: list[RequestSummary] = []
        if store_exists(settings):  # do not create a database by looking
            with opened_store(settings) as database:
                found = database.read_sync(lambda connection: list_records(connection, limit, before, kind))
        if as_json:
            say({"records": found})
        else:
            say(_table(found) if found else "no requests are logged")
        return
    if not store_exists(settings):
        raise NotFoundError(f"no requests are logged: there is no database {settings.database_path}")
    with opened_store(settings) as database:
        record = database.read_sync(lambda connection: get_record(connection, which))
    if replay:
        replay_record(
            server.connect(), record, chosen_prompts(prompts, load_prompts(settings.prompts_dir)), as_json
        )
    else:
        say(record if as_json else _in_full(record))


def _table(found: list[RequestSummary]) -> str:
    rows = [["NO", "WHEN", "ID", "KIND", "STATUS", "SECONDS", "TOKENS", "TEXT"]]
    for each in found:
        text = " ".join(each.text.split())
        if len(text) > _TEXT_WIDTH:
            text = text[: _TEXT_WIDTH - 1] + "…"
        tokens = f"{each.prompt_tokens}+{each.completion_tokens}"
        when, seconds = _time(each.started_at), f"{each.seconds:.1f}"
        rows.append([str(each.seq), when, each.id, each.kind, str(each.status), seconds, tokens, text])
    return table(rows)


def _in_full(record: RequestRecord) -> str:
    lines = [
        f"request {record.id} ({record.kind}), {_time(record.started_at)}",
        f"status {record.status}{f' ({record.error})' if record.error else ''}, {record.seconds:.2f} s, "
        f"model {record.model or '-'}, owner {record.owner or '-'}",
    ]
    if record.redactions:
        lines.append(f"secrets replaced before storing: {record.redactions}")
    if record.details:
        lines.append(f"details: {_json(record.details)}")
    lines += ["", "text:", record.text, "", "answer:", record.answer]
    lines += [
        f"page {page.title} (revision {page.revision}) for `{page.term}`: {page.how}, {page.tokens} tokens"
        for page in record.pages
    ]
    for number, generation in enumerate(record.generations, start=1):
        lines += ["", *_generation(number, generation)]
    return "\n".join(lines)


def _generation(number: int, made: GenerationRecord) -> list[str]:
    prompt = f", prompt {made.prompt_name} v{made.prompt_version}" if made.prompt_name else ""
    lines = [
        f"--- generation {number}: {made.step}{prompt}",
        f"{made.prompt_tokens} tokens in, {made.cached_tokens} of them cached, {made.completion_tokens} out, "
        f"{made.finish_reason}; queue {made.queue_seconds:.2f} s, prefill {made.prefill_seconds:.2f} s, "
        f"decode {made.decode_seconds:.2f} s, seed {made.seed}",
    ]
    if made.sampling:
        lines.append(f"sampling: {_json(made.sampling)}")
    if made.obeyed:
        lines.append(f"obeyed: {_json(made.obeyed)}")
    for message in made.messages:
        lines += [f"[{message.get('role')}]", text_of(message.get("content", ""))]
        calls = message.get("tool_calls", [])
        lines += [f"{call.get('name')} {_json(call.get('arguments'))}" for call in calls]
    return [*lines, "[output]", made.output]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"
