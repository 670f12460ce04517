"""Anthropic's Messages API: POST /v1/messages and its token count."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from sse_starlette import ServerSentEvent
from starlette.types import ASGIApp

from gateway.api.anthropic.request import (
    CountTokensBody,
    MessagesBody,
    host_messages,
    host_tools,
    tool_settings,
)
from gateway.api.generation import (
    Choice,
    Closed,
    More,
    Opened,
    OutputBlock,
    Rendering,
    Step,
    answer,
)
from gateway.api.http.endpoint import SSE, Endpoint
from gateway.api.http.errors import ANTHROPIC
from gateway.api.openai.models import check_model
from gateway.api.parsing.fields import ignore, invalid, sampling_of
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import event_stream, sse, until_disconnect
from gateway.api.thoughts import thinks, thought_settings
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall
from model_host.protocol import Delta, Finished, FinishReason, Started, Thought, ToolDelta

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use"]

_REASONS: dict[FinishReason, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
}
_PING = ServerSentEvent(event="ping", data='{"type":"ping"}', sep="\n")


class Text(Struct, frozen=True, tag_field="type", tag="text"):
    text: str


class Thinking(Struct, frozen=True, tag_field="type", tag="thinking"):
    """The model's thoughts; nothing signs them here."""

    thinking: str
    signature: str = ""


class ToolUse(Struct, frozen=True, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: dict[str, Any]


class AnthropicUsage(Struct, frozen=True, kw_only=True):
    """Tokens. ``input_tokens`` of the prompt were not in the KV cache."""

    input_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int
    output_tokens: int


class AnthropicMessageReply(Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A whole reply, or its empty beginning in ``message_start``."""

    id: str
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[Text | Thinking | ToolUse] = []
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    usage: AnthropicUsage


class TokenCount(Struct, frozen=True):
    """Tokens of a prompt, including the chat template."""

    input_tokens: int


def _usage(counted: Started | Finished) -> AnthropicUsage:
    return AnthropicUsage(
        input_tokens=counted.prompt_tokens - counted.cached_tokens,
        cache_read_input_tokens=counted.cached_tokens,
        output_tokens=counted.completion_tokens if isinstance(counted, Finished) else 0,
    )


def _ending(end: Finished) -> dict[str, Any]:
    reason = "stop_sequence" if end.stop_string is not None else _REASONS[end.reason]
    return {"stop_reason": reason, "stop_sequence": end.stop_string}


def _content(block: OutputBlock) -> Text | Thinking | ToolUse:
    """The complete block. A call whose input was cut off, or is nested too deeply, becomes text."""
    if block.thought:
        return Thinking(block.text)
    if block.call is None or block.arguments is None:
        return Text(block.as_text)
    return ToolUse(block.call.call_id or "", block.call.name or "", block.arguments)


class _MessageRendering(Rendering):
    def __init__(self, request_id: str, model: str, *, thoughts: bool) -> None:
        self._request_id = request_id
        self.thoughts = thoughts
        usage = AnthropicUsage(input_tokens=0, cache_read_input_tokens=0, output_tokens=0)
        self._message = AnthropicMessageReply(id=f"msg_{request_id}", model=model, usage=usage)

    def chunks(self, choice: Choice, step: Step) -> Iterable[bytes]:
        match step:
            case Started():
                message = replace(self._message, usage=_usage(step))
                return _event("message_start", message=message), _event("ping")
            case Opened(OutputBlock(index=index, thought=True)):
                return [_event("content_block_start", index=index, content_block=Thinking(""))]
            case Opened(OutputBlock(index=index, call=None)):
                return [_event("content_block_start", index=index, content_block=Text(""))]
            case Opened(OutputBlock(index=index, call=call)):
                block = ToolUse((call and call.call_id) or "", (call and call.name) or "", {})
                return [_event("content_block_start", index=index, content_block=block)]
            case More(block, Delta(text=text)):
                return [_more(block, "text_delta", text=text)]
            case More(block, Thought(text=text)):
                return [_more(block, "thinking_delta", thinking=text)]
            case More(block, ToolDelta(arguments=arguments)) if arguments:
                return [_more(block, "input_json_delta", partial_json=arguments)]
            case Closed(block):
                return [_event("content_block_stop", index=block.index)]
            case Finished():
                end = _event("message_delta", delta=_ending(step), usage=_usage(step))
                return end, _event("message_stop")
            case _:
                return ()

    def failed(self, choices: Sequence[Choice], error: HearthError) -> Iterable[bytes]:
        return [sse(ANTHROPIC.envelope(error, self._request_id), "error")]

    def whole(self, choices: Sequence[Choice]) -> AnthropicMessageReply:
        [choice] = choices
        content = [_content(block) for block in choice.blocks]
        return replace(self._message, content=content, usage=_usage(choice.end), **_ending(choice.end))

    def response(self, body: AsyncIterator[bytes]) -> ASGIApp:
        return event_stream(body, _PING)


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _more(block: OutputBlock, kind: str, **piece: str) -> bytes:
    return _event("content_block_delta", index=block.index, delta={"type": kind, **piece})


async def messages(request: ApiRequest, body: MessagesBody) -> object:
    """The next message of a conversation, whole or streamed."""
    services, request_id = request.services, request.id
    adapter = check_model(services, body.model)
    turns = host_messages(body)
    if turns[-1].role == "assistant" and not turns[-1].continuable:
        raise invalid("messages", "the beginning of a reply, its last message, must be text")
    call = GenerateCall(
        id=request_id,
        messages=turns,
        continue_final=turns[-1].role == "assistant",
        max_tokens=body.max_tokens,
        sampling=sampling_of(body),
        stop=body.stop_sequences or [],
        json_schema=body.json_schema,
        schema_field="output_config.format",
        owner=request.owner,
        **tool_settings(body),
    )
    call = replace(call, adapter=adapter, **await thought_settings(services, body))
    user = body.metadata.user_id if body.metadata is not None else None
    rendering = _MessageRendering(request_id, services.model.named(adapter), thoughts=thinks(body))
    return await answer(request, [call], rendering, stream=bool(body.stream), user=user)


async def count_tokens(request: ApiRequest, body: CountTokensBody) -> TokenCount:
    """The tokens of a prompt, including the chat template. Loads the model if necessary."""
    services = request.services
    check_model(services, body.model)
    for name in ("chat_template_kwargs", "think", "thinking", "reasoning", "reasoning_effort"):
        if getattr(body, name):
            ignore(name)
    if body.effort:
        ignore("output_config.effort")
    counting = services.inference.count_prompt(host_messages(body), tools=host_tools(body))
    return TokenCount(await until_disconnect(request.receive, counting))


ENDPOINTS = (
    Endpoint("POST", "/v1/messages", messages, MessagesBody, AnthropicMessageReply, SSE),
    Endpoint("POST", "/v1/messages/count_tokens", count_tokens, CountTokensBody, TokenCount),
)
