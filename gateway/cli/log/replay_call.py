"""A logged generation as a request of the HTTP API, and the reply's output as the log writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.inference.embedding import outline
from gateway.models.prompts import Prompt
from gateway.store.request_log import GenerationRecord
from model_host.protocol import Message, Sampling

# Sampling settings have the same names in the log and in the API.
_SAMPLING = (*Sampling.__struct_fields__, "max_tokens")
# So is what shapes the output, but for schemas and tools.
_ALIKE = ("grammar", "stop", "ignore_eos")
_REST_OF_CONTEXT = 1_048_576  # more than any context: /v1/completions would else end after 16 tokens


class Call(Struct, frozen=True):
    """A POST."""

    path: str
    body: dict[str, Any]


def call_of(made: GenerationRecord, prompt: Prompt | None, place: str = "whole") -> Call:
    """The generation again, with its seed; with ``prompt`` its text comes from there, with the stored variables.

    ``place`` is where the prompt stands: it may be the beginning of the first message or the end of the last one.

    Raises InvalidRequestError when the log or the API lacks something for that.
    """
    sampling = {name: made.sampling[name] for name in _SAMPLING if made.sampling.get(name) is not None}
    messages, obeyed = made.messages, made.obeyed
    if prompt is not None:
        messages, obeyed = _rendered(made, prompt, place)
    body: dict[str, Any] = {"priority": "background", **sampling}
    body |= {name: obeyed[name] for name in _ALIKE if name in obeyed}
    if made.seed is not None:
        body["seed"] = made.seed
    if messages and messages[0]["role"] in ("input", "tokens"):
        return _embedding(messages, obeyed)
    if [message["role"] for message in messages] == ["prompt"]:
        return _plain_text(body, str(messages[0]["content"]), obeyed)
    body |= _tools(obeyed)
    if "json_schema" in obeyed:
        body["response_format"] = _format(made.prompt_name, obeyed["json_schema"])
    return Call("/v1/chat/completions", body | {"messages": [_message(each) for each in messages]})


def output_of(reply: Mapping[str, Any]) -> str:
    """The text of a reply; calls of tools follow it on lines of their own, name and arguments, as in the log.

    Of vectors it is the same outline as there.
    """
    if "data" in reply:
        return outline([item["embedding"] for item in reply["data"]])
    choice = reply["choices"][0]
    if "text" in choice:
        return str(choice["text"])
    said = choice["message"]
    calls = [each["function"] for each in said.get("tool_calls") or []]
    lines = [f"{function['name']} {function['arguments']}" for function in calls]
    return "\n".join([said["content"], *lines] if said.get("content") else lines)


def _rendered(
    made: GenerationRecord, prompt: Prompt, place: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Messages and shape of the output as another version of the prompt has them."""
    if not made.variables:
        raise InvalidRequestError(
            f"the log has no variables of the prompt `{prompt.name}` for this request; it can be replayed as it was"
        )
    shape = {"json_schema": prompt.schema, "grammar": prompt.grammar}
    messages = [msgspec.to_builtins(message) for message in prompt.render(**made.variables)]
    if place != "whole":
        messages = _exchanged(made.messages, messages, at=0 if place == "first" else -1)
    return messages, {name: value for name, value in shape.items() if value is not None}


def _exchanged(
    stored: Sequence[Mapping[str, Any]], rendered: Sequence[Mapping[str, Any]], at: int
) -> list[dict[str, Any]]:
    """The stored messages with another text as the first part of the first one (``at`` 0) or the last of the last."""
    messages = [dict(message) for message in stored]
    parts = list(messages[at]["content"])
    parts[at] = {"text": "".join(part["text"] for each in rendered for part in each["content"]).strip()}
    messages[at]["content"] = parts
    return messages


def _plain_text(body: dict[str, Any], text: str, obeyed: Mapping[str, Any]) -> Call:
    if "json_schema" in obeyed:
        body["response_format"] = _format("", obeyed["json_schema"])
    return Call("/v1/completions", {"max_tokens": _REST_OF_CONTEXT, **body, "prompt": text})


def _embedding(messages: Sequence[Mapping[str, Any]], obeyed: Mapping[str, Any]) -> Call:
    texts = [
        msgspec.json.decode(each["content"]) if each["role"] == "tokens" else each["content"]
        for each in messages
    ]
    return Call("/v1/embeddings", {"model": "default", "input": texts, "encoding_format": "float", **obeyed})


def _format(name: str, schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def _tools(obeyed: Mapping[str, Any]) -> dict[str, Any]:
    """Tools and how they are to be called, as OpenAI writes them; nothing without tools."""
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


def _message(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A turn as OpenAI writes it."""
    message = msgspec.convert(stored, Message)
    content = message.content
    text = content if isinstance(content, str) else "".join(part.text for part in content)
    made: dict[str, Any] = {"role": message.role, "content": text}
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": msgspec.json.encode(call.arguments).decode(),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        made["tool_call_id"] = message.tool_call_id
    return made
