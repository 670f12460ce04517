"""POST /api/chat, POST /api/generate, POST /api/embed and its older form, POST /api/embeddings."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from starlette.types import ASGIApp

from gateway.api.generation import (
    Choice,
    Closed,
    LogprobReply,
    More,
    OutputBlock,
    Rendering,
    Step,
    answer,
    logprobs_of,
)
from gateway.api.http.endpoint import MAYBE_JSON, NDJSON, Endpoint
from gateway.api.http.errors import OLLAMA
from gateway.api.ollama.models import LATEST, answering
from gateway.api.ollama.request import (
    ChatBody,
    EmbedBody,
    EmbeddingsBody,
    GenerateBody,
    OllamaOptions,
    chat_fields,
    context_of,
    generate_fields,
)
from gateway.api.openai.models import check_model, check_other_model, context_length
from gateway.api.parsing.fields import parse_keep_alive
from gateway.api.recording.requests import logged_embedding
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import ndjson, ndjson_stream, until_disconnect
from gateway.api.thoughts import thought_settings
from gateway.base.errors import HearthError
from gateway.inference.embedding import EmbedCall, Embeddings
from gateway.inference.interface import GenerateCall, Inference, KeepAlive
from model_host.protocol import Delta, Finished, Message, Thought


class OllamaFunctionReply(Struct, frozen=True, kw_only=True):
    index: int
    name: str
    arguments: dict[str, Any]


class OllamaToolCallReply(Struct, frozen=True, kw_only=True):
    """A complete call; streams do not split it."""

    id: str
    function: OllamaFunctionReply


class OllamaMessageReply(Struct, frozen=True, kw_only=True):
    """A message of the model, or the next piece of it."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    thinking: str | UnsetType = UNSET
    tool_calls: list[OllamaToolCallReply] | UnsetType = UNSET


class Line(Struct, frozen=True, kw_only=True):
    """One line of a stream, or the whole reply. ``model`` is the one that answers.

    Only the last line has the counts and durations (nanoseconds); ``prompt_eval_count`` includes cached tokens.
    """

    model: str
    created_at: datetime
    done: bool
    done_reason: Literal["stop", "length", "load", "unload"] | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    load_duration: int | UnsetType = UNSET
    prompt_eval_count: int | UnsetType = UNSET
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    eval_duration: int | UnsetType = UNSET
    logprobs: list[LogprobReply] | UnsetType = UNSET


class ChatLine(Line, frozen=True, kw_only=True):
    message: OllamaMessageReply


class GenerateLine(Line, frozen=True, kw_only=True):
    """``context``, in the last line, is the conversation so far, for the next request; its numbers are no tokens."""

    response: str
    thinking: str | UnsetType = UNSET
    context: list[int] | UnsetType = UNSET


@dataclass
class _LineRendering(Rendering):
    kind: type[ChatLine | GenerateLine]
    model: str
    request_id: str
    turns: list[Message] | None
    thoughts: bool
    begun: float = field(default_factory=time.monotonic, init=False)

    def line(
        self,
        text: str = "",
        calls: list[OllamaToolCallReply] | None = None,
        *,
        thought: str = "",
        done: bool = False,
        **fields: Any,
    ) -> ChatLine | GenerateLine:
        head = {"model": self.model, "created_at": datetime.now(UTC), "done": done, **fields}
        if self.kind is GenerateLine:
            return GenerateLine(response=text, thinking=thought or UNSET, **head)
        message = OllamaMessageReply(content=text, thinking=thought or UNSET, tool_calls=calls or UNSET)
        return ChatLine(message=message, **head)

    def chunks(self, choice: Choice, step: Step) -> Iterable[bytes]:
        match step:
            case More(_, Delta() as delta):
                return [ndjson(self.line(delta.text, logprobs=logprobs_of(delta.logprobs, []) or UNSET))]
            case More(_, Thought(text=text)):
                return [ndjson(self.line(thought=text))]
            case Closed(block) if block.call is not None:
                call = _call(block)
                return [ndjson(self.line(calls=[call]) if call else self.line(block.as_text))]
            case Finished():
                return [ndjson(self.line(done=True, **self._end(choice)))]
            case _:
                return ()

    def _end(self, choice: Choice) -> dict[str, Any]:
        """The fields of the last line. Loading took the time before the start that was not spent in the queue."""
        end, loading = choice.end, 0.0
        if choice.started is not None:
            loading = max(0.0, choice.started_at - self.begun - choice.started.queue_seconds)
        turns = self.turns if self.kind is GenerateLine else None
        context = {"context": context_of([*turns, Message("assistant", choice.text)])} if turns else {}
        return {
            **context,
            "done_reason": "length" if end.reason == "length" else "stop",
            "total_duration": _nanoseconds(time.monotonic() - self.begun),
            "load_duration": _nanoseconds(loading),
            "prompt_eval_count": end.prompt_tokens,
            "prompt_eval_duration": _nanoseconds(end.prefill_seconds),
            "eval_count": end.completion_tokens,
            "eval_duration": _nanoseconds(end.decode_seconds),
        }

    def failed(self, choices: Sequence[Choice], error: HearthError) -> Iterable[bytes]:
        return [ndjson(OLLAMA.envelope(error, self.request_id))]

    def whole(self, choices: Sequence[Choice]) -> ChatLine | GenerateLine:
        [choice] = choices
        calls = {block.index: _call(block) for block in choice.blocks}
        return self.line(
            "".join(
                block.as_text for block in choice.blocks if calls[block.index] is None and not block.thought
            ),
            [call for call in calls.values() if call is not None],
            thought=choice.thought,
            done=True,
            logprobs=logprobs_of(choice.logprobs, []) or UNSET,
            **self._end(choice),
        )

    def response(self, body: AsyncIterator[bytes]) -> ASGIApp:
        return ndjson_stream(body)


def _call(block: OutputBlock) -> OllamaToolCallReply | None:
    """The call; None for text, and for arguments that were cut off or are nested too deeply: they become text."""
    if block.call is None or block.arguments is None:
        return None
    function = OllamaFunctionReply(
        index=block.call.index, name=block.call.name or "", arguments=block.arguments
    )
    return OllamaToolCallReply(id=block.call.call_id or "", function=function)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


async def chat(request: ApiRequest, body: ChatBody) -> object:
    """The next message of a conversation."""
    return await _reply(request, body, ChatLine, chat_fields(body) if body.messages else None)


async def generate(request: ApiRequest, body: GenerateBody) -> object:
    """The reply to one prompt."""
    return await _reply(request, body, GenerateLine, generate_fields(body) if body.prompt else None)


async def _reply(
    request: ApiRequest,
    body: ChatBody | GenerateBody,
    kind: type[ChatLine | GenerateLine],
    prompt: dict[str, Any] | None,
) -> object:
    """The generation or, without a prompt, the model loaded or unloaded."""
    services, request_id = request.services, request.id
    turns = (prompt or {}).get("messages")
    adapter = check_model(services, body.model.removesuffix(LATEST))
    name = answering(body.model, services.model.named(adapter), services.served.aliases)
    rendering = _LineRendering(kind, name, request_id, turns, thoughts=body.think is not False)
    options = body.options or OllamaOptions()
    context = context_length(services.model, services.inference.health())
    options.check(context)
    keep_alive = parse_keep_alive(body.keep_alive)
    if prompt is None:
        work = _load_or_unload(services.inference, keep_alive)
        return rendering.line(done=True, done_reason=await until_disconnect(request.receive, work))
    call = GenerateCall(
        id=request_id,
        max_tokens=options.max_tokens,
        sampling=options.sampling(context),
        stop=options.stop or [],
        json_schema=body.json_schema,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        schema_field="format",
        owner=request.owner,
        adapter=adapter,
        keep_alive=keep_alive,
        **prompt,
        **(await thought_settings(services, body)),
    )
    return await answer(request, [call], rendering, stream=body.stream is not False)


async def _load_or_unload(inference: Inference, keep_alive: KeepAlive) -> Literal["load", "unload"]:
    """Ollama's convention for a request without a prompt. Unloading waits for open requests."""
    if keep_alive == 0:
        await inference.unload()
        return "unload"
    await inference.model_info(keep_alive=keep_alive)
    return "load"


class EmbedReply(Struct, frozen=True, kw_only=True):
    """One vector of length 1 per input; the duration is in nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    prompt_eval_count: int


class OldEmbedReply(Struct, frozen=True):
    embedding: list[float]


async def embed(request: ApiRequest, body: EmbedBody) -> EmbedReply:
    """The vectors of one or more texts."""
    begun = time.monotonic()
    made = await _embed(request, body, [body.input] if isinstance(body.input, str) else body.input)
    served, aliases = request.services.embedding.name, request.services.settings.embedding.aliases
    return EmbedReply(
        model=answering(body.model, served or "", aliases),
        embeddings=made.floats(),
        total_duration=round((time.monotonic() - begun) * 1e9),
        prompt_eval_count=sum(made.tokens),
    )


async def embeddings(request: ApiRequest, body: EmbeddingsBody) -> OldEmbedReply:
    """The vector of one text."""
    return OldEmbedReply((await _embed(request, body, [body.prompt])).floats()[0])


async def _embed(request: ApiRequest, body: EmbedBody | EmbeddingsBody, texts: list[str]) -> Embeddings:
    check_other_model(request.services, body.model.removesuffix(LATEST), "embedding")
    call = EmbedCall(
        texts,
        owner=request.owner,
        dimensions=body.dimensions if isinstance(body, EmbedBody) else None,
        keep_alive=parse_keep_alive(body.keep_alive),
        request_id=request.id,
    )
    return await logged_embedding(request, call)


ENDPOINTS = (
    Endpoint("POST", "/api/chat", chat, ChatBody, ChatLine, NDJSON, media=MAYBE_JSON),
    Endpoint("POST", "/api/generate", generate, GenerateBody, GenerateLine, NDJSON, media=MAYBE_JSON),
    Endpoint("POST", "/api/embed", embed, EmbedBody, EmbedReply, media=MAYBE_JSON),
    Endpoint("POST", "/api/embeddings", embeddings, EmbeddingsBody, OldEmbedReply, media=MAYBE_JSON),
)
