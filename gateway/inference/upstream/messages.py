"""Calls as requests of OpenAI's API, and the events of its streams as events of a generation."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any

from gateway.base.errors import InvalidRequestError
from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.inference.upstream.abilities import Abilities, with_grammar, with_schema
from model_host.protocol import (
    Delta,
    Finished,
    FinishReason,
    Message,
    Prefill,
    Sampling,
    Started,
    Thought,
    TokenLogprob,
    Tool,
    ToolDelta,
    TopLogprob,
)

TAKES_VARIABLES = ("hearth", "llamacpp", "vllm")  # programs that pass `chat_template_kwargs` to the template
_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}


def request_of(call: GenerateCall, able: Abilities, model: str, seed: int) -> tuple[str, dict[str, Any]]:
    """The path and body for a server. Raises InvalidRequestError for what it cannot do."""
    sampling = call.sampling
    body: dict[str, Any] = {
        "model": model,
        "stream": able.streaming,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": seed,
    }
    if able.streaming and able.usage:
        body["stream_options"] = {"include_usage": True}
    optional: dict[str, Any] = {
        "max_tokens": call.max_tokens,
        "stop": call.stop or None,
        "presence_penalty": sampling.presence_penalty or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "logit_bias": {str(token): bias for token, bias in sampling.logit_bias.items()} or None,
    }
    if able.sampling:
        optional |= {"top_k": sampling.top_k, "min_p": sampling.min_p}
    optional |= _special(call, able)
    if able.program in TAKES_VARIABLES:
        optional["chat_template_kwargs"] = call.template_variables or None
    if able.program == "hearth":
        optional["priority"] = call.lane
    elif able.program == "llamacpp":
        optional["return_progress"] = able.streaming or None
    elif able.program == "vllm" and "stream_options" in body:
        body["stream_options"]["continuous_usage_stats"] = True
    body |= {name: value for name, value in optional.items() if value is not None}
    if call.json_schema is not None:
        body |= with_schema(able.schemas, _object(call.json_schema))
    if call.grammar is not None:
        if able.grammar == "none":
            raise cannot("grammar", "follows no grammar; send a JSON schema instead")
        body |= with_grammar(able.grammar, call.grammar)
    if call.messages is None:
        if call.logprobs is not None:
            raise cannot("logprobs", "reports them for chats only")
        return "/v1/completions", body | {"prompt": call.prompt}
    body["messages"] = chat_messages(call.messages)
    if call.tools and (able.tools or call.tool_choice != "none"):
        if not able.tools:
            raise cannot("tools", "does not show them to this model; start it with a chat template that does")
        body |= {"tools": chat_tools(call.tools), "tool_choice": _choice(call.tool_choice)}
        if not call.parallel_tool_calls:
            body["parallel_tool_calls"] = False
    if call.logprobs is not None:
        if not able.logprobs:
            raise cannot("logprobs", "does not report them")
        body |= {"logprobs": True, "top_logprobs": call.logprobs}
    if call.continue_final:
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return "/v1/chat/completions", body


def cannot(field: str, why: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"`{field}`: the upstream server {why}", code="upstream_incapable", param=field
    )


def _special(call: GenerateCall, able: Abilities) -> dict[str, Any]:
    """Fields that servers name differently. Raises InvalidRequestError where the server is not known to take one."""
    sampling, default = call.sampling, Sampling()
    known = able.program in ("hearth", "llamacpp", "vllm")
    found: dict[str, Any] = {}
    if sampling.repeat_penalty != default.repeat_penalty:
        found["repetition_penalty" if able.program == "vllm" else "repeat_penalty"] = sampling.repeat_penalty
        if able.program == "vllm" and sampling.penalty_last_n != default.penalty_last_n:
            raise cannot("penalty_last_n", "cannot limit penalties to the last tokens")
        if not known:
            raise cannot("repeat_penalty", "is not known to have it; use `presence_penalty`")
    if sampling.penalty_last_n != default.penalty_last_n and able.program in ("hearth", "llamacpp"):
        found["repeat_last_n"] = sampling.penalty_last_n
    rare = {name: getattr(sampling, name) for name in ("typical_p", "xtc_probability", "xtc_threshold")}
    if rare := {name: value for name, value in rare.items() if value != getattr(default, name)}:
        if able.program not in ("hearth", "llamacpp"):
            raise cannot(min(rare), "does not have it")
        found |= rare
    if sampling.min_tokens:
        if able.program not in ("hearth", "vllm"):
            raise cannot("min_tokens", "has no least number of tokens")
        found["min_tokens"] = sampling.min_tokens
    if call.ignore_eos:
        if not known:
            raise cannot("ignore_eos", "is not known to ignore the end")
        found["ignore_eos"] = True
    if call.suffix is not None:
        if able.program != "hearth":
            raise cannot("suffix", "does not fill in")
        found["suffix"] = call.suffix
    if call.prompt_logprobs:
        raise cannot("echo", "reports no log-probabilities of prompts")
    if call.continue_final and not known:
        raise cannot("continue_final_message", "is not known to continue a message")
    if call.max_tokens == 0:
        raise cannot("max_tokens", "generates at least one token")
    if (
        isinstance(call.prompt, list)
        and able.program == "vllm"
        and any(isinstance(x, str) for x in call.prompt)
    ):
        raise cannot("prompt", "does not mix texts with token ids")
    return found


def _object(schema: dict[str, Any] | bool) -> dict[str, Any]:
    return schema if isinstance(schema, dict) else {} if schema else {"not": {}}


def chat_messages(messages: list[Message]) -> list[dict[str, Any]]:
    return [_message(message) for message in messages]


def _message(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        made |= {"tool_call_id": message.tool_call_id or message.name or ""}
        made |= {"name": message.name} if message.name else {}
    return made


def chat_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object", "properties": {}, **tool.parameters},
                **({"strict": True} if tool.strict else {}),
            },
        }
        for tool in tools
    ]


def _choice(choice: str) -> object:
    kind, _, name = choice.partition(":")
    return {"type": "function", "function": {"name": name}} if name else kind


class ReplyEvents:
    """Turns the events of one stream into those of a generation. Times are monotonic seconds."""

    def __init__(self, call: GenerateCall, seed: int) -> None:
        self._call = call
        self._seed = seed
        self._sent = time.monotonic()
        self._first: float | None = None
        self._pieces = 0
        self._started = False
        self._prompt = self._cached = 0
        self._named: dict[int, str] = {}  # ids of tool calls by index
        self._reason: FinishReason | None = None
        self._stop_string: str | None = None
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}

    def read(self, event: dict[str, Any]) -> Iterator[GenerationEvent]:
        """The part of a reply that an event adds."""
        self._usage = event.get("usage") or self._usage
        self._timings = event.get("timings") or self._timings
        if progress := event.get("prompt_progress"):
            self._prompt, self._cached = progress["total"], progress.get("cache", 0)
            yield from self._start()
            yield Prefill(self._call.id, progress["processed"], progress["total"])
        for choice in event.get("choices") or []:
            part = choice.get("delta") or choice.get("message") or {}
            text = part.get("content") or choice.get("text") or ""
            calls = part.get("tool_calls") or []
            tokens = _logprobs(choice.get("logprobs")) if self._call.logprobs is not None else []
            thought = part.get("reasoning_content") or part.get("reasoning") or ""
            if text or calls or tokens or thought:
                self._pieces += 1
                yield from self._output()
            if thought:
                yield Thought(self._call.id, thought, 1)
            if text or tokens:
                yield Delta(self._call.id, text, max(1, len(tokens)), tokens)
            for number, called in enumerate(calls):
                yield self._called(called, number)
            if reason := choice.get("finish_reason"):
                self._reason = _REASONS.get(reason, "stop")
                if choice.get("stop_reason") in self._call.stop:  # vLLM's
                    self._stop_string = choice["stop_reason"]

    def end(self) -> Iterator[GenerationEvent]:
        """The last event; none if the stream gave no finish reason."""
        if self._reason is None:
            return
        now, usage, timings = time.monotonic(), self._usage, self._timings
        details = usage.get("prompt_tokens_details") or {}
        prompt = int(usage.get("prompt_tokens") or self._prompt)
        cached = int(details.get("cached_tokens") or timings.get("cache_n") or self._cached)
        yield from self._start()
        waited = (self._first or now) - self._sent
        prefill = min(waited, timings["prompt_ms"] / 1000) if "prompt_ms" in timings else waited
        yield Finished(
            id=self._call.id,
            reason="tool_calls" if self._named and self._reason == "stop" else self._reason,
            prompt_tokens=prompt,
            cached_tokens=min(cached, prompt),
            completion_tokens=int(usage.get("completion_tokens") or self._pieces),
            queue_seconds=waited - prefill,
            prefill_seconds=prefill,
            decode_seconds=now - (self._first or now),
            seed=self._seed,
            stop_string=self._stop_string,
        )

    def _start(self) -> Iterator[GenerationEvent]:
        if not self._started:
            self._started = True
            prompt = int(self._usage.get("prompt_tokens") or self._prompt)
            yield Started(self._call.id, prompt, min(self._cached, prompt), 0.0)

    def _output(self) -> Iterator[GenerationEvent]:
        if self._first is None:
            self._first = time.monotonic()
        yield from self._start()

    def _called(self, called: dict[str, Any], number: int) -> ToolDelta:
        index = called.get("index", number)
        function = called.get("function") or {}
        arguments = function.get("arguments") or ""
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if index in self._named:
            return ToolDelta(self._call.id, index, None, None, arguments)
        self._named[index] = called.get("id") or f"call_{secrets.token_hex(8)}"
        return ToolDelta(self._call.id, index, self._named[index], str(function.get("name") or ""), arguments)


def _logprobs(found: Any) -> list[TokenLogprob]:
    content = (found or {}).get("content") or []
    try:
        return [
            TokenLogprob(
                each["token"],
                _bytes(each),
                each["logprob"],
                [
                    TopLogprob(top["token"], _bytes(top), top["logprob"])
                    for top in each.get("top_logprobs") or []
                ],
            )
            for each in content
        ]
    except (LookupError, TypeError):
        return []


def _bytes(each: dict[str, Any]) -> list[int]:
    return each.get("bytes") or list(each["token"].encode("utf-8", "surrogatepass"))
