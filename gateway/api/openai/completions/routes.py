"""POST /v1/completions: text that goes on where a prompt ends, without a chat template."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.types import ASGIApp

from gateway.api.http.endpoint import JSON, SSE, Endpoint, json_reply
from gateway.api.http.errors import envelope
from gateway.api.openai.completions.bodies import CompletionRequest, Prompt, parse_completion
from gateway.api.openai.completions.replies import Completion, CompletionChoice, CompletionReply
from gateway.api.openai.generation import (
    Numbered,
    checked,
    choices_of,
    collect,
    has_begun,
    schema_of,
    to_call,
)
from gateway.api.openai.models import check_model
from gateway.api.recording.generations import logged_generations
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import Relay, StreamReply, known_error, sse, until_disconnect
from gateway.base.errors import InvalidRequestError
from gateway.inference.interface import GenerateCall, Inference
from model_host.protocol import Delta, Finished

_DONE = b"data: [DONE]\n\n"
_MAX_TOKENS = 16


async def completions(request: Request) -> ASGIApp:
    """Text that goes on where each prompt ends, without a chat template; whole or streamed."""
    services = services_of(request)
    body = parse_completion(await request.body())
    check_model(services, body.model)
    request_id = request.state.request_id
    prompts = await until_disconnect(request.receive, _texts(services.inference, body.prompts))
    calls = _to_calls(body, prompts, request_id, caller_of(request).owner)
    n = body.n or 1
    relay: Relay[Numbered] = Relay(
        logged_generations(services, calls, body.user, kind="generate"), services.drain
    )
    reply = CompletionReply(request_id, services.model.name, n)
    choices = [
        CompletionChoice(index, (call.prompt or "") if body.echo else "") for index, call in enumerate(calls)
    ]
    if body.stream:
        with_usage = body.stream_options is not None and bool(body.stream_options.include_usage)
        return StreamReply(
            relay, lambda items: _chunks(items, reply, choices, request_id, with_usage), hold=has_begun
        )
    await until_disconnect(request.receive, collect(relay, choices))
    return json_reply(reply.whole(choices))


def _to_calls(body: CompletionRequest, prompts: list[str], request_id: str, owner: str) -> list[GenerateCall]:
    """The generations in the order of the choices: all of the first prompt, then all of the second."""
    return [
        call
        for prompt in prompts
        for call in choices_of(
            to_call(
                body,
                request_id,
                owner,
                prompt=prompt,
                max_tokens=body.max_tokens or _MAX_TOKENS,
                grammar=body.grammar,
                json_schema=schema_of(body.response_format),
                schema_field="response_format",
                ignore_eos=bool(body.ignore_eos),
                logprobs=body.logprobs,
            ),
            body.n or 1,
        )
    ]


async def _texts(inference: Inference, prompts: list[Prompt]) -> list[str]:
    """The prompts as text. Raises InvalidRequestError for tokens that are not what their text would be read as."""
    texts: list[str] = []
    for prompt in prompts:
        if isinstance(prompt, list):
            text = await inference.detokenize(prompt)
            if await inference.tokenize(text) != prompt:
                raise InvalidRequestError(
                    "`prompt`: this model reads the text of these tokens as other tokens (control tokens, for "
                    "example, cannot be sent); send the text itself, or tokens as POST /tokenize makes them",
                    param="prompt",
                )
            texts.append(text)
        else:
            texts.append(prompt)
    return texts


async def _chunks(
    relay: Relay[Numbered],
    reply: CompletionReply,
    choices: list[CompletionChoice],
    request_id: str,
    with_usage: bool,
) -> AsyncIterator[bytes]:
    """Chunks, then ``[DONE]``; an error after the start is an ``{"error": …}`` before it."""
    try:
        for choice in choices:
            if (first := choice.first_piece()) is not None:
                yield sse(reply.chunk(first))
        async for index, event in relay:
            event = checked(event)
            if isinstance(event, Delta | Finished):
                yield sse(reply.chunk(choices[index].piece(event)))
        if with_usage:
            yield sse(reply.usage_chunk(choices))
    except Exception as error:
        yield sse(envelope(known_error(error), request_id))
    yield _DONE


ENDPOINTS = (
    Endpoint("POST", "/v1/completions", completions, "user", (JSON,), CompletionRequest, Completion, SSE),
)
