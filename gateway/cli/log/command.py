"""`hearth log`: past requests, in short, with every prompt and raw output, or run again and compared."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from gateway.base.errors import NotFoundError
from gateway.cli.common.client import connect
from gateway.cli.common.database import opened_database
from gateway.cli.common.options import client_options, json_option, settings_of
from gateway.cli.common.text import say, table
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
@client_options
def log(
    which: str | None,
    limit: int,
    before: int | None,
    kind: Kind | None,
    replay: bool,
    prompts: tuple[str, ...],
    as_json: bool,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> None:
    """Look at past requests: a list, or everything about the request with ID (its beginning is enough)."""
    settings = settings_of(data_dir, config_file).settings
    path = settings.database_path
    if prompts and not replay:
        raise click.UsageError("--prompt goes with --replay")
    if replay and which is None:
        raise click.UsageError("--replay needs the ID of a request")
    if not path.exists():  # looking creates nothing
        if which is not None:
            raise NotFoundError(f"no requests are logged: there is no database {path}")
        say(msgspec.json.encode({"records": []}) if as_json else "no requests are logged")
        return
    with opened_database(path) as database:
        if which is not None:
            record = database.read_sync(lambda connection: get_record(connection, which))
            if replay:
                wanted = chosen_prompts(prompts, load_prompts(settings.prompts_dir))
                replay_record(connect(url, key, data_dir, config_file), record, wanted, as_json)
                return
            say(msgspec.json.encode(record) if as_json else long_form(record))
            return
        found = database.read_sync(lambda connection: list_records(connection, limit, before, kind))
    if as_json:
        say(msgspec.json.encode({"records": found}))
    elif found:
        say(short_form(found))
    else:
        say("no requests are logged")


def short_form(found: list[RequestSummary]) -> str:
    """One line a request."""
    rows = [["NO", "WHEN", "ID", "KIND", "STATUS", "SECONDS", "TOKENS", "TEXT"]]
    for each in found:
        text = " ".join(each.text.split())
        rows.append(
            [
                str(each.seq),
                _when(each.started_at),
                each.id,
                each.kind,
                str(each.status),
                f"{each.seconds:.1f}",
                f"{each.prompt_tokens}+{each.completion_tokens}",
                text if len(text) <= _TEXT_WIDTH else text[: _TEXT_WIDTH - 1] + "…",
            ]
        )
    return table(rows)


def long_form(record: RequestRecord) -> str:
    """Everything that is kept of a request: prompts and outputs whole."""
    lines = [
        f"request {record.id} ({record.kind}), {_when(record.started_at)}",
        f"status {record.status}{f' ({record.error})' if record.error else ''}, {record.seconds:.2f} s, "
        f"model {record.model or '-'}, owner {record.owner or '-'}",
    ]
    if record.redactions:
        lines.append(f"secrets replaced before storing: {record.redactions}")
    if record.details:
        lines.append(f"details: {msgspec.json.encode(record.details).decode()}")
    lines += ["", "text:", record.text, "", "answer:", record.answer]
    for page in record.pages:
        lines.append(
            f"page {page.title} (revision {page.revision}) for `{page.term}`: {page.how}, {page.tokens} tokens"
        )
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
        lines.append(f"sampling: {msgspec.json.encode(made.sampling).decode()}")
    if made.obeyed:
        lines.append(f"obeyed: {msgspec.json.encode(made.obeyed).decode()}")
    for message in made.messages:
        content = message.get("content", "")
        if isinstance(content, list):
            content = "".join(str(part.get("text", "")) for part in content)
        lines += [f"[{message.get('role')}]", str(content)]
        lines += [_called(call) for call in message.get("tool_calls", [])]
    return [*lines, "[output]", made.output]


def _called(call: dict[str, Any]) -> str:
    return f"{call.get('name')} {msgspec.json.encode(call.get('arguments')).decode()}"


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"
