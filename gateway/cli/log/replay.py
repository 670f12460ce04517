"""Replay of a logged request through the running server: same prompts, sampling and seeds, outputs side by side."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import click
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.client import GatewayClient, ReplyError
from gateway.cli.common.text import say
from gateway.inference.embedding import outline
from gateway.inference.reranker import outline_scores
from gateway.inference.upstream.messages import chat_messages
from gateway.models.prompts import Prompt, PromptSet
from gateway.store.request_log import GenerationRecord, RequestRecord
from model_host.protocol import Message, Sampling

_MIN_WIDTH = 30
# Fields with the same names in the log and in the API.
_SAMPLING = (*Sampling.__struct_fields__, "max_tokens")
_CONSTRAINTS = ("grammar", "stop", "ignore_eos", "suffix")
_REST_OF_CONTEXT = 1_048_576  # longer than any context; the default of /v1/completions is 16 tokens


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
            say(_shown_call(results[0]))
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
    return "\n".join([head, *_beside(result["output"])])


def _beside(outputs: Sequence[str]) -> list[str]:
    """Two texts in columns, with a head."""
    width = max(_MIN_WIDTH, shutil.get_terminal_size().columns // 2 - 2)
    columns = [_wrapped(text, width) for text in outputs]
    rows = [f"{left:<{width}} | {right}".rstrip() for left, right in zip_longest(*columns, fillvalue="")]
    return [f"{'then':<{width}} | now", *rows]


def _wrapped(text: str, width: int) -> list[str]:
    return [piece for line in text.split("\n") for piece in textwrap.wrap(line, width) or [""]]


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


def _shown_call(result: dict[str, Any]) -> str:
    if result["same"] is None:
        return f"--- {result['step']}: not called again, it does more than read\n{result['output'][0]}"
    if result["same"]:
        return f"--- {result['step']}: the same result\n{result['output'][0]}"
    return "\n".join([f"--- {result['step']}: another result", *_beside(result["output"])])


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
