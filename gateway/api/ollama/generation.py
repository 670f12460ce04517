"""POST /api/chat and POST /api/generate."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp

from gateway.api.http.dialect import OLLAMA
from gateway.api.http.endpoint import json_reply
from gateway.api.ollama.bodies import ChatBody, GenerateBody, parse_chat, parse_generate
from gateway.api.ollama.models import check_name
from gateway.api.ollama.options import OllamaOptions, check_options, max_tokens_of, sampling_of
from gateway.api.ollama.prompt import chat_fields, generate_fields
from gateway.api.ollama.replies import Line
from gateway.api.ollama.stream import LineMaker, OllamaDelta, chat_line, generate_line, pieces, whole
from gateway.api.openai.models import context_length
from gateway.api.parsing.fields import parse_keep_alive
from gateway.api.recording.generations import logged_generation
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.ndjson import NdjsonResponse, ndjson
from gateway.api.streaming.streams import Relay, StreamReply, known_error, until_disconnect
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, Inference, KeepAlive, LoadProgress


async def chat(request: Request) -> ASGIApp:
    """The next message of a conversation."""
    body = parse_chat(await request.body())
    return await _reply(request, body, chat_line, chat_fields(body) if body.messages else None)


async def generate(request: Request) -> ASGIApp:
    """The reply to one prompt."""
    body = parse_generate(await request.body())
    return await _reply(request, body, generate_line, generate_fields(body) if body.prompt else None)


async def _reply(
    request: Request, body: ChatBody | GenerateBody, line: LineMaker, prompt: dict[str, Any] | None
) -> ASGIApp:
    """Lines, one reply, or, without a prompt, the model loaded or unloaded."""
    begun = time.monotonic()
    services = services_of(request)
    check_name(services, body.model)
    options = body.options or OllamaOptions()
    context = context_length(services.model, services.inference.health())
    check_options(options, context)
    keep_alive = parse_keep_alive(body.keep_alive)
    if prompt is None:
        work = _load_or_unload(services.inference, keep_alive)
        return json_reply(line(body.model, await until_disconnect(request.receive, work)))
    request_id: str = request.state.request_id
    call = GenerateCall(
        id=request_id,
        max_tokens=max_tokens_of(options),
        sampling=sampling_of(options, context),
        stop=options.stop or [],
        json_schema=body.json_schema,
        logprobs=body.wanted_logprobs,
        schema_field="format",
        owner=caller_of(request).owner,
        keep_alive=keep_alive,
        **prompt,
    )
    relay: Relay[GenerationEvent] = Relay(logged_generation(services, call, None), services.drain)
    if body.stream is False:
        made = await until_disconnect(request.receive, _whole(relay, begun))
        return json_reply(line(body.model, made))
    return StreamReply(
        relay,
        lambda items: _lines(pieces(items, begun), partial(line, body.model), request_id),
        hold=_has_begun,
        response=NdjsonResponse,
    )


async def _load_or_unload(inference: Inference, keep_alive: KeepAlive) -> OllamaDelta:
    """Ollama's convention for a request without a prompt. Unloading waits for open requests to end."""
    if keep_alive == 0:
        await inference.unload()
        return OllamaDelta(last={"done_reason": "unload"})
    await inference.model_info(keep_alive=keep_alive)
    return OllamaDelta(last={"done_reason": "load"})


def _has_begun(event: GenerationEvent) -> bool:
    return not isinstance(event, LoadProgress)


async def _whole(relay: Relay[GenerationEvent], begun: float) -> OllamaDelta:
    async with relay:
        made = await whole(pieces(relay, begun))
    if made is None:
        raise HearthError("the generation ended without a result")
    return made


async def _lines(
    made: AsyncIterator[OllamaDelta], line: Callable[[OllamaDelta], Line], request_id: str
) -> AsyncIterator[bytes]:
    """The lines; an error after the start is the last one."""
    try:
        async for piece in made:
            yield ndjson(line(piece))
    except Exception as error:
        yield ndjson(OLLAMA.envelope(known_error(error), request_id))
