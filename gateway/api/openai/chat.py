"""POST /v1/chat/completions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gateway.api.generation import (
    Choice,
    LogprobReply,
    More,
    Step,
    answer,
    logprobs_of,
)
from gateway.api.http.endpoint import SSE, Endpoint
from gateway.api.openai.bodies import choices_of
from gateway.api.openai.chat_request import ChatRequest, chat_call
from gateway.api.openai.models import check_model
from gateway.api.openai.replies import Completion, CompletionRendering
from gateway.api.services import ApiRequest
from gateway.api.thoughts import thought_settings
from model_host.protocol import Delta, Finished, FinishReason, Thought, TokenLogprob, ToolDelta


class FunctionReply(Struct, frozen=True):
    """The function to call; ``arguments`` is a JSON object as text."""

    name: str
    arguments: str


class ToolCallReply(Struct, frozen=True, tag_field="type", tag="function"):
    id: str
    function: FunctionReply


class ChatLogprobs(Struct, frozen=True):
    content: list[LogprobReply]
    refusal: None = None


class ChatMessageReply(Struct, frozen=True, kw_only=True):
    """The model's message. ``content`` is null if it only calls tools; ``reasoning_content`` are its thoughts."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCallReply] | UnsetType = UNSET


class ChatChoiceReply(Struct, frozen=True, kw_only=True):
    index: int
    message: ChatMessageReply
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason


class ChatCompletion(Completion, frozen=True, kw_only=True, tag_field="object", tag="chat.completion"):
    choices: list[ChatChoiceReply]


class _ChatRendering(CompletionRendering):
    prefix = "chatcmpl"
    object = "chat.completion.chunk"
    thoughts = True

    def opening(self, choices: Sequence[Choice]) -> Iterator[bytes]:
        for choice in choices:
            yield self._chunk(choice, {"role": "assistant", "content": ""})

    def chunks(self, choice: Choice, step: Step) -> Iterator[bytes]:
        match step:
            case Finished():
                yield self._chunk(choice, {}, finish_reason=step.reason)
            case More(_, ToolDelta() as call):
                yield self._chunk(choice, {"tool_calls": [_call_piece(call)]})
            case More(_, Thought(text=text)):
                yield self._chunk(choice, {"reasoning_content": text})
            case More(_, Delta() as delta):
                yield self._chunk(choice, {"content": delta.text}, logprobs=_logprobs(delta.logprobs))

    def _chunk(self, choice: Choice, delta: dict[str, Any], **fields: Any) -> bytes:
        piece = {"index": choice.index, "delta": delta, "logprobs": None, "finish_reason": None}
        return self.chunk([piece | fields])

    def whole(self, choices: Sequence[Choice]) -> ChatCompletion:
        return ChatCompletion(
            **self.head, choices=[_whole(each) for each in choices], usage=self.usage(choices)
        )


def _whole(choice: Choice) -> ChatChoiceReply:
    calls = [
        ToolCallReply(call.call_id or "", FunctionReply(call.name or "", block.text))
        for block in choice.blocks
        if (call := block.call) is not None
    ]
    message = ChatMessageReply(
        content=None if calls and not choice.text else choice.text,
        reasoning_content=choice.thought or UNSET,
        tool_calls=calls or UNSET,
    )
    return ChatChoiceReply(
        index=choice.index,
        message=message,
        logprobs=_logprobs(choice.logprobs),
        finish_reason=choice.end.reason,
    )


def _call_piece(delta: ToolDelta) -> dict[str, Any]:
    if delta.name is None:
        return {"index": delta.index, "function": {"arguments": delta.arguments}}
    function = {"name": delta.name, "arguments": delta.arguments}
    return {"index": delta.index, "id": delta.call_id, "type": "function", "function": function}


def _logprobs(tokens: Sequence[TokenLogprob]) -> ChatLogprobs | None:
    return ChatLogprobs(logprobs_of(tokens)) if tokens else None


async def chat_completions(request: ApiRequest, chat: ChatRequest) -> object:
    """Completions of a conversation, whole or streamed."""
    services, request_id = request.services, request.id
    adapter = check_model(services, chat.model)
    call = chat_call(chat, request_id, request.owner)
    call = replace(call, adapter=adapter, **await thought_settings(services, chat))
    calls = choices_of(call, chat.n or 1)
    rendering = _ChatRendering(request_id, services.model.named(adapter), len(calls), chat.include_usage)
    return await answer(
        request, calls, rendering, stream=bool(chat.stream), user=chat.user, keep=chat.store is not False
    )


ENDPOINTS = (Endpoint("POST", "/v1/chat/completions", chat_completions, ChatRequest, ChatCompletion, SSE),)
