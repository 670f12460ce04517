"""POST /v1/chat/completions, as OpenAI's clients know it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.types import ASGIApp

from gateway.api.http.endpoint import json_reply
from gateway.api.http.errors import envelope
from gateway.api.openai.chat.messages import host_messages
from gateway.api.openai.chat.reply import ChatChoice, ChatReply
from gateway.api.openai.chat.request import ChatRequest, parse_chat
from gateway.api.openai.chat.tools import NamedTool, host_choice, host_tools
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
from gateway.inference.interface import GenerateCall
from model_host.protocol import Delta, Finished, ToolDelta

_DONE = b"data: [DONE]\n\n"


async def chat_completions(request: Request) -> ASGIApp:
    """Completions of a conversation, whole or streamed."""
    services = services_of(request)
    chat = parse_chat(await request.body())
    check_model(services, chat.model)
    request_id = request.state.request_id
    calls = choices_of(_to_call(chat, request_id, caller_of(request).owner), chat.n or 1)
    relay: Relay[Numbered] = Relay(
        logged_generations(services, calls, chat.user, keep=chat.store is not False), services.drain
    )
    reply = ChatReply(request_id, services.model.name)
    choices = [ChatChoice(index) for index in range(len(calls))]
    if chat.stream:
        options = chat.stream_options
        with_usage = options is not None and bool(options.include_usage)
        return StreamReply(
            relay, lambda items: _chunks(items, reply, choices, request_id, with_usage), hold=has_begun
        )
    await until_disconnect(request.receive, collect(relay, choices))
    return json_reply(reply.whole(choices))


def _to_call(chat: ChatRequest, request_id: str, owner: str) -> GenerateCall:
    tools = host_tools([tool.function for tool in chat.tools or []], "tools[{}].function")
    choice = chat.tool_choice
    named = choice.function.name if isinstance(choice, NamedTool) else None
    return to_call(
        chat,
        request_id,
        owner,
        messages=host_messages(chat.messages),
        max_tokens=chat.max_completion_tokens or chat.max_tokens,
        grammar=chat.grammar,
        json_schema=schema_of(chat.response_format),
        schema_field="response_format",
        ignore_eos=bool(chat.ignore_eos),
        tools=tools,
        tool_choice=host_choice(
            choice if isinstance(choice, str) else None, named, tools, "tool_choice.function.name"
        ),
        parallel_tool_calls=chat.parallel_tool_calls is not False,
        logprobs=(chat.top_logprobs or 0) if chat.logprobs else None,
    )


async def _chunks(
    relay: Relay[Numbered], reply: ChatReply, choices: list[ChatChoice], request_id: str, with_usage: bool
) -> AsyncIterator[bytes]:
    """Chunks, then ``[DONE]``; an error after the start is an ``{"error": …}`` before it."""
    try:
        for choice in choices:
            yield sse(reply.opening(choice.index))
        async for index, event in relay:
            event = checked(event)
            if isinstance(event, Delta | ToolDelta | Finished):
                yield sse(reply.chunk(index, event))
            if isinstance(event, Finished):
                choices[index].add(event)
        if with_usage:
            yield sse(reply.usage_chunk(choices))
    except Exception as error:
        yield sse(envelope(known_error(error), request_id))
    yield _DONE
