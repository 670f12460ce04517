"""POST /v1/responses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from gateway.api.generation import (
    Choice,
    Closed,
    LogprobReply,
    More,
    Opened,
    OutputBlock,
    Rendering,
    Status,
    Step,
    answer,
    logprobs_of,
)
from gateway.api.http.endpoint import SSE, Endpoint
from gateway.api.openai.models import check_model
from gateway.api.openai.responses_request import (
    InputItem,
    ResponsesRequest,
    ResponsesTool,
    TextConfig,
    TextFormat,
    ToolChoice,
    response_call,
)
from gateway.api.parsing.fields import convert
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import sse
from gateway.api.thoughts import thought_settings
from gateway.base.errors import HearthError, InvalidRequestError
from gateway.inference.interface import GenerateCall
from gateway.store.responses import StoredResponse, items_of, keep_response
from model_host.protocol import Delta, Finished, ToolDelta


class TextPart(Struct, frozen=True, tag_field="type", tag="output_text"):
    """The text of a message; ``annotations`` is always empty."""

    text: str
    annotations: list[Any] = []
    logprobs: list[LogprobReply] = []


class OutputMessage(Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    id: str
    status: Status
    role: Literal["assistant"] = "assistant"
    content: list[TextPart] = []


class OutputCall(Struct, frozen=True, kw_only=True, tag_field="type", tag="function_call"):
    """A call. ``arguments`` is a JSON object as text, or the beginning of it if the item is incomplete."""

    id: str
    status: Status
    call_id: str
    name: str
    namespace: str | UnsetType = UNSET
    arguments: str = ""


class InputDetails(Struct, frozen=True):
    """``cached_tokens`` of the prompt were in the KV cache."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(Struct, frozen=True):
    reasoning_tokens: int = 0


class ResponseUsage(Struct, frozen=True):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class IncompleteDetails(Struct, frozen=True):
    """The response reached its token limit or the end of the context."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ResponseError(Struct, frozen=True):
    code: str
    message: str


class ResponseReply(Struct, frozen=True, kw_only=True, tag_field="object", tag="response"):
    """A response with the settings of its request."""

    id: str
    created_at: int
    completed_at: int | None = None
    status: Literal["in_progress", "completed", "incomplete", "failed"] = "in_progress"
    background: bool = False
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: None = None
    metadata: dict[str, str] = {}
    model: str
    output: list[OutputMessage | OutputCall] = []
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    reasoning: None = None
    service_tier: Literal["default"] = "default"
    store: bool = True
    temperature: float
    text: TextConfig
    tool_choice: ToolChoice = "auto"
    tools: list[ResponsesTool] = []
    top_logprobs: int = 0
    top_p: float
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    user: str | None = None


class _ResponseRendering(Rendering):
    """Events of items that open, grow and close. ``beginning`` is the response before its output.

    ``namespaces`` are those of functions, by the function's name.
    """

    def __init__(self, request_id: str, beginning: ResponseReply, namespaces: dict[str, str]) -> None:
        self._request_id = request_id
        self._beginning = beginning
        self._namespaces = namespaces
        self._sent = 0

    def _event(self, kind: str, **fields: Any) -> bytes:
        event = {"type": f"response.{kind}", "sequence_number": self._sent, **fields}
        self._sent += 1
        return sse(event, f"response.{kind}")

    def opening(self, choices: Sequence[Choice]) -> Iterator[bytes]:
        yield self._event("created", response=self._beginning)
        yield self._event("in_progress", response=self._beginning)

    def chunks(self, choice: Choice, step: Step) -> Iterable[bytes]:
        match step:
            case Opened(block):
                return self._opened(block)
            case More(block, Delta() as delta):
                new = logprobs_of(delta.logprobs, [])
                return [
                    self._event("output_text.delta", **self._part_at(block), delta=delta.text, logprobs=new)
                ]
            case More(block, ToolDelta(arguments=arguments)) if arguments:
                at = {"output_index": block.index, "item_id": self._id(block)}
                return [self._event("function_call_arguments.delta", **at, delta=arguments)]
            case Closed(block):
                return self._closed(block)
            case Finished() if not choice.blocks:
                block = _empty(step)
                return [*self._opened(block), *self._closed(block)]
            case _:
                return ()

    def _opened(self, block: OutputBlock) -> Iterator[bytes]:
        item = self._item(OutputBlock(block.index, block.call))
        if isinstance(item, OutputMessage):
            item = replace(item, content=[])
        yield self._event("output_item.added", output_index=block.index, item=item)
        if block.call is None:
            yield self._event("content_part.added", **self._part_at(block), part=TextPart(""))

    def _closed(self, block: OutputBlock) -> Iterator[bytes]:
        item = self._item(block)
        if isinstance(item, OutputMessage):
            [part] = item.content
            at = self._part_at(block)
            yield self._event("output_text.done", **at, text=part.text, logprobs=part.logprobs)
            yield self._event("content_part.done", **at, part=part)
        else:
            at = {"output_index": block.index, "item_id": item.id}
            yield self._event("function_call_arguments.done", **at, name=item.name, arguments=item.arguments)
        yield self._event("output_item.done", output_index=block.index, item=item)

    def _id(self, block: OutputBlock) -> str:
        return f"{'msg' if block.call is None else 'fc'}_{self._request_id}_{block.index}"

    def _part_at(self, block: OutputBlock) -> dict[str, Any]:
        return {"output_index": block.index, "item_id": self._id(block), "content_index": 0}

    def _item(self, block: OutputBlock) -> OutputMessage | OutputCall:
        if block.call is None:
            part = TextPart(block.text, logprobs=logprobs_of(block.logprobs, []))
            return OutputMessage(id=self._id(block), status=block.status, content=[part])
        name = block.call.name or ""
        return OutputCall(
            id=self._id(block),
            status=block.status,
            call_id=block.call.call_id or "",
            name=name,
            namespace=self._namespaces.get(name, UNSET),
            arguments=block.text,
        )

    def closing(self, choices: Sequence[Choice]) -> Iterator[bytes]:
        whole = self.whole(choices)
        yield self._event(whole.status, response=whole)

    def failed(self, choices: Sequence[Choice], error: HearthError) -> Iterator[bytes]:
        [choice] = choices
        if choice.blocks and choice.blocks[-1].status == "in_progress":
            choice.blocks[-1].status = "incomplete"
        response = replace(
            self._beginning,
            status="failed",
            error=ResponseError(error.code, error.message),
            output=[self._item(block) for block in choice.blocks],
        )
        yield self._event("failed", response=response)

    def whole(self, choices: Sequence[Choice]) -> ResponseReply:
        [choice] = choices
        end, cut = choice.end, choice.end.reason == "length"
        return replace(
            self._beginning,
            completed_at=int(time.time()),
            status="incomplete" if cut else "completed",
            incomplete_details=IncompleteDetails() if cut else None,
            output=[self._item(block) for block in choice.blocks or [_empty(end)]],
            usage=ResponseUsage(
                end.prompt_tokens,
                InputDetails(end.cached_tokens),
                end.completion_tokens,
                OutputDetails(),
                end.prompt_tokens + end.completion_tokens,
            ),
        )


def _empty(end: Finished) -> OutputBlock:
    """The only block of a generation without text."""
    return OutputBlock(0, status="incomplete" if end.reason == "length" else "completed")


async def responses(request: ApiRequest, body: ResponsesRequest) -> object:
    """A response to text, messages and results of tools, after an earlier response or not; whole or streamed."""
    services, request_id = request.services, request.id
    adapter = check_model(services, body.model)
    keep, previous = body.store is not False, body.previous_response_id
    earlier = await earlier_items(request, previous) if previous is not None else []
    call = response_call(body, earlier, request_id, request.owner)
    call = replace(call, adapter=adapter, **await thought_settings(services, body))
    beginning = _beginning(body, call, services.model.named(adapter))
    rendering = _ResponseRendering(request_id, beginning, body.namespaces)
    items = body.items

    async def store(made: Struct) -> None:
        assert isinstance(made, ResponseReply)
        reply = msgspec.to_builtins(made)
        row = StoredResponse(
            id=made.id,
            owner=request.owner,
            user=body.user,
            created_at=made.created_at,
            previous=previous,
            input=[_stored(msgspec.to_builtins(item), request_id, at) for at, item in enumerate(items)],
            response=reply,
        )
        await request.write(lambda connection: keep_response(connection, row))

    return await answer(
        request,
        [call],
        rendering,
        stream=bool(body.stream),
        user=body.user,
        keep=keep,
        store=store if keep else None,
    )


def _stored(item: dict[str, Any], request_id: str, at: int) -> dict[str, Any]:
    """An item of the input with an id, and its content as parts."""
    item["id"] = item.get("id") or f"{item['type']}_{request_id}_in{at}"
    if isinstance(text := item.get("content"), str):
        item["content"] = [
            {"type": f"{'out' if item['role'] == 'assistant' else 'in'}put_text", "text": text}
        ]
    return item


async def earlier_items(request: ApiRequest, previous: str) -> list[InputItem]:
    """The items before a request that continues a stored response. Raises InvalidRequestError."""
    found = await request.read(lambda connection: items_of(connection, request.owner, previous))
    if isinstance(found, str):
        raise InvalidRequestError(
            f"Previous response with id '{found[:256]}' not found. It may have been deleted, or have been too old; "
            "send the earlier items in `input`.",
            param="previous_response_id",
            code="previous_response_not_found",
        )
    return convert({"input": found}, ResponsesRequest).items if found else []


def _beginning(body: ResponsesRequest, call: GenerateCall, model: str) -> ResponseReply:
    text = body.text if body.text is not None and body.text.format is not None else TextConfig(TextFormat())
    return ResponseReply(
        id=f"resp_{call.id}",
        created_at=int(time.time()),
        instructions=body.instructions,
        max_output_tokens=body.max_output_tokens,
        metadata=body.metadata or {},
        model=model,
        parallel_tool_calls=call.parallel_tool_calls,
        previous_response_id=body.previous_response_id,
        store=body.store is not False,
        temperature=call.sampling.temperature,
        text=text,
        tool_choice=body.tool_choice or "auto",
        tools=body.tools or [],
        top_logprobs=body.top_logprobs or 0,
        top_p=call.sampling.top_p,
        user=body.user,
    )


ENDPOINTS = (Endpoint("POST", "/v1/responses", responses, ResponsesRequest, ResponseReply, SSE),)
