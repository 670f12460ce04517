"""`hearth log`: past requests as a list, in full, or replayed and compared."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, get_args

import click
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.cli.common.client import GatewayClient, ReplyError, ServerOptions, with_server
from gateway.cli.common.files import opened_store, store_exists
from gateway.cli.common.options import json_option
from gateway.cli.common.text import say, table, text_of
from gateway.inference.embedding import outline, outline_scores
from gateway.inference.upstream.messages import chat_messages
from gateway.models.prompts import Prompt, PromptSet, load_prompts
from gateway.store.request_log import (
    GenerationRecord,
    Kind,
    RequestRecord,
    RequestSummary,
    get_record,
    list_records,
)
from model_host.protocol import Message, Sampling

_MIN_WIDTH = 30
# Fields with the same names in the log and in the API.
_SAMPLING = (*Sampling.__struct_fields__, "max_tokens")
_CONSTRAINTS = ("grammar", "stop", "ignore_eos", "suffix")
_REST_OF_CONTEXT = 1_048_576  # longer than any context; the default of /v1/completions is 16 tokens

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
        say({"records": found} if as_json else _table(found) if found else "no requests are logged")
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


def chosen_prompts(options: Sequence[str], prompts: PromptSet) -> dict[str, Prompt]:
    """Look up the prompts of ``NAME=VERSION`` options. Raises NotFoundError and InvalidRequestError."""
    chosen: dict[str, Prompt] = {}
    for option in options:
        name, equals, version = option.partition("=")
        if not equals or not version.isdigit():
            raise click.UsageError(f"--prompt takes NAME=VERSION, not `{option}`")
        chosen[name] = prompts.version(name, int(version))
    return chosen


def replay_record(
    client: GatewayClient, record: RequestRecord, prompts: Mapping[str, Prompt], as_json: bool
) -> None:
    """Repeat the generations of a record and print both outputs of each."""
    if record.redactions:
        say(
            f"{record.redactions} secrets are not in the log: the prompts differ from the first run", err=True
        )
    unused = set(prompts) - {made.prompt_name for made in record.generations}
    if unused:
        raise InvalidRequestError(f"the request did not use the prompt `{sorted(unused)[0]}`")
    results: list[dict[str, Any]] = []
    if "tool" in record.details:  # a step of a task
        results.append(_call_again(client, record))
        if not as_json:
            step, output = record.text, record.answer
            say(
                f"--- {step}: not called again, it does more than read\n{output}"
                if results[0]["same"] is None
                else _compared(f"--- {step}", "result", results[0])
            )
    for number, made in enumerate(record.generations, 1):
        prompt = prompts.get(made.prompt_name)
        call = call_of(made, prompt, record.details.get("prompt_place", "whole"))
        reply = client.post(call.path, call.body)
        output = output_of(reply)
        version = str(prompt.version) if prompt else made.prompt_version
        result = {
            "step": made.step,
            "prompt": made.prompt_name,
            "version": [made.prompt_version, version],
            "seed": made.seed,
            "model": [record.model, reply["model"]],
            "same": output == made.output,
            "output": [made.output, output],
            "prompt_tokens": [made.prompt_tokens, reply["usage"]["prompt_tokens"]],
            "completion_tokens": [made.completion_tokens, reply["usage"].get("completion_tokens", 0)],
        }
        results.append(result)
        if not as_json:
            say(_shown(number, result))
    if as_json:
        say({"id": record.id, "generations": results})


def _shown(number: int, result: dict[str, Any]) -> str:
    then, now = result["version"]
    prompt = (
        f", prompt {result['prompt']} v{then}{f' → v{now}' if then != now else ''}"
        if result["prompt"]
        else ""
    )
    tokens = f"{result['completion_tokens'][0]} → {result['completion_tokens'][1]} tokens"
    head = f"--- generation {number}: {result['step']}{prompt}, seed {result['seed']}, {tokens}"
    return _compared(head, "output", result)


def _compared(head: str, what: str, result: dict[str, Any]) -> str:
    """Write a head line and both outputs in columns, or once if they are the same."""
    outputs = result["output"]
    if result["same"]:
        return f"{head}: the same {what}\n{outputs[0]}"
    width = max(_MIN_WIDTH, shutil.get_terminal_size().columns // 2 - 2)
    columns = [
        [piece for line in text.split("\n") for piece in textwrap.wrap(line, width) or [""]]
        for text in outputs
    ]
    rows = [f"{left:<{width}} | {right}".rstrip() for left, right in zip_longest(*columns, fillvalue="")]
    return "\n".join([f"{head}: another {what}", f"{'then':<{width}} | now", *rows])


def _call_again(client: GatewayClient, record: RequestRecord) -> dict[str, Any]:
    """Make the call of a step again, if its tool only reads; ``same`` is None if it does more."""
    result: dict[str, Any] = {"step": record.text, "same": None, "output": [record.answer]}
    try:
        reply = client.post(f"/v1/tasks/{record.details['task']}/replay", {"request": record.id})
    except ReplyError as error:
        if error.code != "not_reading":
            raise
        return result
    return result | {"same": reply["now"] == record.answer, "output": [record.answer, reply["now"]]}


class Call(Struct, frozen=True):
    path: str
    body: dict[str, Any]


def call_of(made: GenerationRecord, prompt: Prompt | None, place: str = "whole") -> Call:
    """Build the request that repeats a generation, with its seed.

    With ``prompt`` the text is rendered from it with the logged variables. ``place`` says which part of the messages
    it is: ``first`` is the beginning of the first one, ``last`` the end of the last one.

    Raises InvalidRequestError when the log or the API lacks something for that.
    """
    sampling = {name: made.sampling[name] for name in _SAMPLING if made.sampling.get(name) is not None}
    messages, obeyed = made.messages, made.obeyed
    if prompt is not None:
        messages, obeyed = _rendered(made, prompt, place)
    if messages and messages[0]["role"] in ("input", "tokens"):
        return _embedding(messages, obeyed)
    if messages and messages[0]["role"] == "query":
        query, *documents = (each["content"] for each in messages)
        return Call("/v1/rerank", {"query": query, "documents": documents, **obeyed})
    body: dict[str, Any] = {"priority": "background", **sampling}
    body |= {name: obeyed[name] for name in _CONSTRAINTS if name in obeyed}
    if "adapter" in obeyed:
        body["model"] = f"default:{obeyed['adapter']}"
    if made.seed is not None:
        body["seed"] = made.seed
    if "json_schema" in obeyed:
        schema = {"name": made.prompt_name, "schema": obeyed["json_schema"]}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if messages and messages[0]["role"].startswith("prompt"):
        text = str(messages[0]["content"])
        sent = text if messages[0]["role"] == "prompt" else msgspec.json.decode(text)
        return Call("/v1/completions", {"max_tokens": _REST_OF_CONTEXT, **body, "prompt": sent})
    body |= _tools(obeyed)
    if obeyed.get("continue_final"):
        body["continue_final_message"] = True
    if variables := obeyed.get("template_variables"):
        body["chat_template_kwargs"] = variables
    if (budget := obeyed.get("thought_tokens")) is not None:
        body["thinking"] = {"budget_tokens": budget}
    body["messages"] = chat_messages(msgspec.convert(messages, list[Message]))
    return Call("/v1/chat/completions", body)


def output_of(reply: Mapping[str, Any]) -> str:
    """Write a reply's output as the log does: text, then a line per tool call; of vectors an outline."""
    if "data" in reply:
        return outline([item["embedding"] for item in reply["data"]])
    if "results" in reply:
        results = sorted(reply["results"], key=lambda result: result["index"])
        return outline_scores([result["relevance_score"] for result in results])
    choice = reply["choices"][0]
    if "text" in choice:
        return str(choice["text"])
    message = choice["message"]
    calls = [each["function"] for each in message.get("tool_calls") or []]
    lines = [f"{function['name']} {function['arguments']}" for function in calls]
    return "\n".join([message["content"], *lines] if message.get("content") else lines)


def _rendered(
    made: GenerationRecord, prompt: Prompt, place: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Render messages and constraints from another version of the prompt."""
    if not made.variables:
        raise InvalidRequestError(
            f"the log has no variables of the prompt `{prompt.name}` for this request; it can be replayed as it was"
        )
    shape = {"json_schema": prompt.schema, "grammar": prompt.grammar}
    messages = [msgspec.to_builtins(message) for message in prompt.render(**made.variables)]
    if place != "whole":
        at = 0 if place == "first" else -1
        text = "".join(part["text"] for each in messages for part in each["content"]).strip()
        messages = [dict(message) for message in made.messages]
        parts = list(messages[at]["content"])
        parts[at] = {"text": text}
        messages[at]["content"] = parts
    return messages, {name: value for name, value in shape.items() if value is not None}


def _embedding(messages: Sequence[Mapping[str, Any]], obeyed: Mapping[str, Any]) -> Call:
    texts = [
        msgspec.json.decode(each["content"]) if each["role"] == "tokens" else each["content"]
        for each in messages
    ]
    return Call("/v1/embeddings", {"model": "default", "input": texts, "encoding_format": "float", **obeyed})


def _tools(obeyed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields for tools in OpenAI's form; none without tools."""
    if "tools" not in obeyed:
        return {}
    choice: Any = obeyed.get("tool_choice", "auto")
    kind, _, name = choice.partition(":")
    if name:
        choice = {"type": kind, "function": {"name": name}}
    return {
        "tools": [{"type": "function", "function": tool} for tool in obeyed["tools"]],
        "tool_choice": choice,
        "parallel_tool_calls": obeyed.get("parallel_tool_calls", True),
    }
