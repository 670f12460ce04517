"""Replay of a logged request through the running server: same prompts, sampling and seeds, outputs side by side."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import click
import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.client import GatewayClient
from gateway.cli.common.text import say
from gateway.cli.log.replay_call import call_of, output_of
from gateway.models.prompts import Prompt, PromptSet
from gateway.store.request_log import RequestRecord

_MIN_WIDTH = 30


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
    results = []
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
        say(msgspec.json.encode({"id": record.id, "generations": results}))


def _shown(number: int, result: dict[str, Any]) -> str:
    """Write a head line and both outputs in columns, or once if they are the same."""
    then, now = result["version"]
    prompt = (
        f", prompt {result['prompt']} v{then}{f' → v{now}' if then != now else ''}"
        if result["prompt"]
        else ""
    )
    tokens = f"{result['completion_tokens'][0]} → {result['completion_tokens'][1]} tokens"
    same = "the same output" if result["same"] else "another output"
    head = f"--- generation {number}: {result['step']}{prompt}, seed {result['seed']}, {tokens}: {same}"
    if result["same"]:
        return f"{head}\n{result['output'][0]}"
    width = max(_MIN_WIDTH, shutil.get_terminal_size().columns // 2 - 2)
    columns = [_wrapped(text, width) for text in result["output"]]
    rows = [f"{left:<{width}} | {right}".rstrip() for left, right in zip_longest(*columns, fillvalue="")]
    return "\n".join([head, f"{'then':<{width}} | now", *rows])


def _wrapped(text: str, width: int) -> list[str]:
    return [piece for line in text.split("\n") for piece in textwrap.wrap(line, width) or [""]]
