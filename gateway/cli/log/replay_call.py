"""Conversions of a replay: a logged generation to a request of the HTTP API, and its reply to the log's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.cli.common.text import text_of
from gateway.inference.embedding import outline
from gateway.models.prompts import Prompt
from gateway.store.request_log import GenerationRecord
from model_host.protocol import Message, Sampling

# Fields with the same names in the log and in the API.
_SAMPLING = (*Sampling.__struct_fields__, "max_tokens")
_CONSTRAINTS = ("grammar", "stop", "ignore_eos")
_REST_OF_CONTEXT = 1_048_576  # longer than any context; the default of /v1/completions is 16 tokens


class Call(Struct, frozen=True):
    """A POST."""

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
    body: dict[str, Any] = {"priority": "background", **sampling}
    body |= {name: obeyed[name] for name in _CONSTRAINTS if name in obeyed}
    if made.seed is not None:
        body["seed"] = made.seed
    if "json_schema" in obeyed:
        schema = {"name": made.prompt_name, "schema": obeyed["json_schema"]}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if [message["role"] for message in messages] == ["prompt"]:
        text = str(messages[0]["content"])
        return Call("/v1/completions", {"max_tokens": _REST_OF_CONTEXT, **body, "prompt": text})
    body |= _tools(obeyed)
    return Call("/v1/chat/completions", body | {"messages": [_message(each) for each in messages]})


def output_of(reply: Mapping[str, Any]) -> str:
    """Write a reply's output as the log does: text, then a line per tool call; of vectors an outline."""
    if "data" in reply:
        return outline([item["embedding"] for item in reply["data"]])
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


def _message(logged: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a message to OpenAI's form."""
    message = msgspec.convert(logged, Message)
    made: dict[str, Any] = {"role": message.role, "content": text_of(logged.get("content", ""))}
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made
