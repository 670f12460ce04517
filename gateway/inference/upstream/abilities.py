"""The abilities of an upstream server: as it reports them, or else probed with short requests."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, Literal

from msgspec import Struct

from gateway.base.errors import HearthError, InvalidRequestError, ModelUnavailableError
from gateway.inference.upstream.connection import MALFORMED, Connection, LostError, malformed

Schemas = Literal["response_format", "structured_outputs", "guided_json", "checked"]
Grammars = Literal["grammar", "structured_outputs", "guided_grammar", "none"]
Counting = Literal["content", "prompt", "gguf", "none"]
PromptCounting = Literal["input_tokens", "messages", "gguf", "generation"]

# No model says this unless it is held to it.
_WORD = "zq7"
_HELD = f'"{_WORD}"'
_SCHEMA: dict[str, Any] = {"type": "string", "enum": [_WORD]}
_GRAMMAR = f'root ::= "\\"{_WORD}\\""'
_MESSAGES = [{"role": "user", "content": "Say hello."}]
_TOOLS = [
    {"type": "function", "function": {"name": _WORD, "parameters": {"type": "object", "properties": {}}}}
]
# Fields beyond OpenAI's that shape the sampling.
EXTENDED: dict[str, Any] = {"top_k": 1, "min_p": 0.0}


class Abilities(Struct, frozen=True, kw_only=True):
    """Abilities of a server. ``schemas`` is how it is held to a JSON schema; ``checked``: it cannot be, so replies are
    checked here and asked for again. ``sampling``: it takes ``top_k`` and ``min_p``."""

    program: str  # hearth, llamacpp, vllm, as it calls itself; "": unknown
    context: int  # tokens of a request with its reply
    streaming: bool
    usage: bool  # it reports token counts
    sampling: bool
    logprobs: bool
    schemas: Schemas
    grammar: Grammars
    tokens: Counting
    prompts: PromptCounting
    tools: bool  # its template shows tools to the model; True if that cannot be told

    @property
    def lacking(self) -> list[str]:
        """The missing abilities, each with what the gateway does instead."""
        found = {
            "no streaming: replies come whole": not self.streaming,
            "no token counts in replies: they are counted by pieces": not self.usage,
            "top_k and min_p are not sent": not self.sampling,
            "logprobs are refused": not self.logprobs,
            "replies under a JSON schema are checked and asked for again": self.schemas == "checked",
            "grammars are refused": self.grammar == "none",
            "tools are refused, because its template does not show them to the model": not self.tools,
            "prompts are counted by a generation of one token": self.prompts == "generation",
        }
        return [text for text, holds in found.items() if holds]


def with_schema(way: Schemas, schema: object) -> dict[str, Any]:
    """The fields that hold a reply to ``schema``."""
    match way:
        case "response_format":
            return {
                "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
            }
        case "structured_outputs":
            return {"structured_outputs": {"json": schema}}
        case "guided_json":
            return {"guided_json": schema}
        case "checked":
            return {}


def with_grammar(way: Grammars, grammar: str) -> dict[str, Any]:
    return {"structured_outputs": {"grammar": grammar}} if way == "structured_outputs" else {way: grammar}


async def probe(server: Connection, model: str, context: int, tokenizer: bool) -> Abilities:
    """Ask the server. ``context`` overrides what it reports; ``tokenizer``: tokens are counted without it.

    Raises HearthError if it cannot be reached or cannot serve the model.
    """
    try:
        return await _probe(server, model, context, tokenizer)
    except MALFORMED:
        raise malformed(server.url) from None


async def _probe(server: Connection, model: str, context: int, tokenizer: bool) -> Abilities:
    listed = await listed_model(server, model)
    known = context or await _context(server, listed)
    if not known:
        raise ModelUnavailableError(
            f"the upstream server {server.url} does not report its context: set upstream.context",
            code="upstream_incapable",
        )
    streaming, usage, sampling, logprobs = await _streams(server, model)
    tokens: Counting = "gguf" if tokenizer else await _tokens(server, model)
    if tokens == "none":
        # Without counts no prompt could be fitted to the context.
        raise ModelUnavailableError(
            f"the upstream server {server.url} does not count tokens (no /tokenize): set upstream.tokenizer to a GGUF "
            "file of the model",
            code="upstream_incapable",
        )
    prompts: PromptCounting = "gguf" if tokenizer else await _prompts(server, model)
    return Abilities(
        program=str(listed.get("owned_by") or ""),
        context=known,
        streaming=streaming,
        usage=usage,
        sampling=sampling,
        logprobs=logprobs,
        schemas=await _schemas(server, model),
        grammar=await _grammars(server, model),
        tokens=tokens,
        prompts=prompts,
        tools=await _shows_tools(server, model, prompts),
    )


async def listed_model(server: Connection, model: str) -> dict[str, Any]:
    """The server's entry for the model; its only one if it has another name there."""
    entries = (await server.get("/v1/models")).get("data")
    found = [each for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    named = [each for each in found if each.get("id") == model] or found
    return named[0] if named else {}


async def _context(server: Connection, listed: dict[str, Any]) -> int:
    meta = listed.get("meta")
    given = [listed.get("max_model_len"), listed.get("context_length")]
    try:  # per request in llama-server, where the list has all slots
        given.insert(0, (await server.get("/props"))["default_generation_settings"]["n_ctx"])
    except LostError:
        raise
    except (HearthError, LookupError, TypeError):
        pass
    given.append(meta.get("n_ctx") if isinstance(meta, dict) else None)
    return next((each for each in given if isinstance(each, int) and each > 0), 0)


async def _streams(server: Connection, model: str) -> tuple[bool, bool, bool, bool]:
    """Whether it streams, reports usage, takes the extended fields of sampling, and reports log-probabilities."""
    wishes: list[dict[str, Any]] = [{"logprobs": True, "top_logprobs": 1}]
    for extra in ({**EXTENDED, **wishes[0]}, wishes[0], EXTENDED, {}):
        body = {"max_tokens": 1, "stream": True, "stream_options": {"include_usage": True}, **extra}
        try:
            events = await _ask(server, model, body)
        except InvalidRequestError:
            if extra:
                continue
            raise
        choices = [choice for event in events for choice in event.get("choices") or []]
        return (
            any("delta" in choice for choice in choices),
            any(event.get("usage") for event in events),
            "top_k" in extra,
            any(choice.get("logprobs") for choice in choices),
        )
    raise AssertionError("the last one either returned or raised")


async def _ask(server: Connection, model: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    fixed = {"model": model, "messages": _MESSAGES, "temperature": 0}
    async with aclosing(server.events("/v1/chat/completions", fixed | body)) as events:
        return [event async for event in events]


async def _holds(server: Connection, model: str, fields: dict[str, Any]) -> bool:
    """Whether ``fields`` make the reply what it never is otherwise."""
    try:
        events = await _ask(server, model, {"max_tokens": 16, "stream": False, **fields})
    except LostError:
        raise
    except HearthError:
        return False
    choices = events[0].get("choices") or [{}]
    message = choices[0].get("message") or {}
    return str(message.get("content")).strip() == _HELD


async def _schemas(server: Connection, model: str) -> Schemas:
    ways: tuple[Schemas, ...] = ("response_format", "structured_outputs", "guided_json")
    for way in ways:
        if await _holds(server, model, with_schema(way, _SCHEMA)):
            return way
    return "checked"


async def _grammars(server: Connection, model: str) -> Grammars:
    ways: tuple[Grammars, ...] = ("grammar", "structured_outputs", "guided_grammar")
    for way in ways:
        if await _holds(server, model, with_grammar(way, _GRAMMAR)):
            return way
    return "none"


async def _tokens(server: Connection, model: str) -> Counting:
    ways: tuple[Counting, ...] = ("content", "prompt")
    for way in ways:
        if await _answers(server, "/tokenize", tokenize_body(way, model, "hello"), "tokens"):
            return way
    return "none"


async def _prompts(server: Connection, model: str) -> PromptCounting:
    body = {"model": model, "messages": _MESSAGES}
    if await _answers(server, "/v1/chat/completions/input_tokens", body, "input_tokens"):
        return "input_tokens"
    return "messages" if await _answers(server, "/tokenize", body, "count") else "generation"


async def _shows_tools(server: Connection, model: str, way: PromptCounting) -> bool:
    """Whether tools make a prompt longer: llama-server drops them for templates without tools."""
    if way == "gguf":
        return True
    body = {"model": model, "messages": _MESSAGES}
    bare = await prompt_tokens(server, way, body)
    try:
        return await prompt_tokens(server, way, body | {"tools": _TOOLS}) > bare
    except LostError:
        raise
    except HearthError:
        return False


async def prompt_tokens(server: Connection, way: PromptCounting, body: dict[str, Any]) -> int:
    """The tokens of a chat's prompt. Raises LookupError, TypeError, ValueError for a reply in another form."""
    match way:
        case "input_tokens":
            return int((await server.post("/v1/chat/completions/input_tokens", body))["input_tokens"])
        case "messages":
            return int((await server.post("/tokenize", body))["count"])
        case _:
            found = await server.post("/v1/chat/completions", body | {"max_tokens": 1})
            return int(found["usage"]["prompt_tokens"])


def tokenize_body(way: Counting, model: str, text: str, *, ends: bool = False) -> dict[str, Any]:
    """The request for the tokens of plain text: in llama-server's and hearth's form, or in vLLM's."""
    if way == "content":
        return {"content": text, "add_special": ends, "parse_special": False}
    return {"model": model, "prompt": text, "add_special_tokens": ends}


async def _answers(server: Connection, path: str, body: dict[str, Any], field: str) -> bool:
    try:
        return field in await server.post(path, body)
    except LostError:
        raise
    except HearthError:
        return False
