"""`hearth generate`: run one prompt, once or N times, and show output and cost."""

from __future__ import annotations

import sys
import time
from typing import Any

import click
import msgspec

from gateway.cli.common.client import GatewayClient, ServerOptions, with_server
from gateway.cli.common.options import json_option
from gateway.cli.common.text import say
from gateway.models.prompts import Prompt, load_prompts


@click.command()
@click.argument("text", required=False)
@click.option("--prompt", "prompt_name", help="Run this prompt of hearth's own instead of TEXT.")
@click.option(
    "--var", "variables", multiple=True, metavar="NAME=VALUE", help="Fill in a variable of the prompt."
)
@click.option("-n", "times", type=click.IntRange(1, 10_000), default=1, help="How often.  [default: 1]")
@click.option("--temperature", type=float, help="Instead of the prompt's.")
@click.option("--seed", type=int, help="Seed of the first run; each further one adds 1.")
@click.option("--max-tokens", type=int, help="Instead of the prompt's limit.")
@json_option
@with_server
def generate(
    text: str | None,
    prompt_name: str | None,
    variables: tuple[str, ...],
    times: int,
    temperature: float | None,
    seed: int | None,
    max_tokens: int | None,
    as_json: bool,
    server: ServerOptions,
) -> None:
    """Run one prompt, through the running server.

    TEXT is a free prompt; without it and without --prompt it is read from standard input.
    """
    if prompt_name:
        folder = server.local.settings.prompts_dir
        body = _named(load_prompts(folder).get(prompt_name), text, variables)
    else:
        body = _free(text, variables)
    overrides = {"temperature": temperature, "max_tokens": max_tokens}
    body |= {name: value for name, value in overrides.items() if value is not None}
    client = server.connect()
    for number in range(times):
        if seed is not None:
            body["seed"] = seed + number
        run = _run(client, body)
        say(run if as_json else _shown(run, number, times))


def _free(text: str | None, variables: tuple[str, ...]) -> dict[str, Any]:
    if variables:
        raise click.UsageError("--var needs --prompt")
    content = text or sys.stdin.read()
    if not content.strip():
        raise click.UsageError("the prompt is empty")
    return {"messages": [{"role": "user", "content": content}]}


def _named(prompt: Prompt, text: str | None, variables: tuple[str, ...]) -> dict[str, Any]:
    """Build the request for one of hearth's own prompts, with its sampling, limit and schema."""
    if text:
        raise click.UsageError("give either TEXT or --prompt")
    values: dict[str, str] = {}
    for assignment in variables:
        variable, equals, value = assignment.partition("=")
        if not equals:
            raise click.UsageError(f"--var takes NAME=VALUE, not `{assignment}`")
        if variable not in prompt.variables:
            raise click.UsageError(
                f"{prompt.name} has the variables {', '.join(prompt.variables)}, no `{variable}`"
            )
        values[variable] = value
    messages = [{"role": message.role, "content": message.text} for message in prompt.render(**values)]
    body: dict[str, Any] = {"messages": messages}
    # This omits defaults; the server's defaults are the same.
    body |= msgspec.to_builtins(prompt.sampling)
    if prompt.max_tokens is not None:
        body["max_tokens"] = prompt.max_tokens
    if prompt.grammar is not None:
        body["grammar"] = prompt.grammar
    if prompt.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": prompt.name, "schema": prompt.schema},
        }
    return body


def _run(client: GatewayClient, body: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    reply = client.post("/v1/chat/completions", body)
    choice = reply["choices"][0]
    return {
        "output": choice["message"]["content"],
        "finish_reason": choice["finish_reason"],
        "usage": reply["usage"],
        "seconds": round(time.perf_counter() - started, 4),
        "model": reply["model"],
    }


def _shown(run: dict[str, Any], number: int, times: int) -> str:
    usage, seconds = run["usage"], run["seconds"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    rate = usage["completion_tokens"] / seconds if seconds else 0.0
    head = f"--- {number + 1} of {times}\n" if times > 1 else ""
    return (
        f"{head}{run['output']}\n"
        f"({usage['prompt_tokens']} tokens in, {cached} of them cached, {usage['completion_tokens']} out, "
        f"{run['finish_reason']}; {seconds:.2f} s, {rate:.1f} tokens/s)"
    )
