"""Responses and their events in OpenAI's shapes."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from gateway.api.openai.responses.bodies import ResponsesFunctionTool, TextConfig, ToolChoice
from gateway.api.openai.responses.items import Status
from model_host.protocol import Finished


class TopLogprob(Struct, frozen=True):
    """A token that could have been."""

    token: str
    logprob: float
    bytes: list[int]


class Logprob(Struct, frozen=True):
    """A token of the text."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class TextPart(Struct, frozen=True, tag_field="type", tag="output_text"):
    """The text of a message."""

    text: str
    annotations: list[Any] = []  # always empty
    logprobs: list[Logprob] = []


class OutputMessage(Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message of the model."""

    id: str
    status: Status
    role: Literal["assistant"] = "assistant"
    content: list[TextPart] = []


class OutputCall(Struct, frozen=True, kw_only=True, tag_field="type", tag="function_call"):
    """A call. ``arguments`` is the text of a JSON object, or the beginning of it when the item is incomplete."""

    id: str
    status: Status
    call_id: str
    name: str
    arguments: str = ""


OutputItem = OutputMessage | OutputCall


class InputDetails(Struct, frozen=True):
    """``cached_tokens`` of the prompt were in the KV cache; nothing is written there for a price of its own."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(Struct, frozen=True):
    """Of the output."""

    reasoning_tokens: int = 0


class ResponseUsage(Struct, frozen=True):
    """Tokens of one response."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int

    @classmethod
    def of(cls, end: Finished) -> ResponseUsage:
        """From the end of the generation."""
        return cls(
            end.prompt_tokens,
            InputDetails(end.cached_tokens),
            end.completion_tokens,
            OutputDetails(),
            end.prompt_tokens + end.completion_tokens,
        )


class IncompleteDetails(Struct, frozen=True):
    """Why a response ended early: at its token limit, or at the end of the context."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ResponseError(Struct, frozen=True):
    """Why a response failed."""

    code: str
    message: str


class ResponseReply(Struct, frozen=True, kw_only=True, tag_field="object", tag="response"):
    """A response, and the settings it was made with. Nothing is ever stored."""

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
    output: list[OutputItem] = []
    parallel_tool_calls: bool = True
    previous_response_id: None = None
    reasoning: None = None
    service_tier: Literal["default"] = "default"
    store: bool = False
    temperature: float
    text: TextConfig
    tool_choice: ToolChoice = "auto"
    tools: list[ResponsesFunctionTool] = []
    top_logprobs: int = 0
    top_p: float
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    user: str | None = None


class ResponseEvent(Struct, kw_only=True, tag_field="type"):
    """An event of a stream. ``sequence_number`` counts them from 0."""

    sequence_number: int = 0


class Whole(ResponseEvent, kw_only=True):
    """An event with the whole response as it is now."""

    response: ResponseReply


class Created(Whole, kw_only=True, tag="response.created"):
    """The first event."""


class InProgress(Whole, kw_only=True, tag="response.in_progress"):
    """The second event."""


class Completed(Whole, kw_only=True, tag="response.completed"):
    """The last event, if the model ended by itself."""


class Incomplete(Whole, kw_only=True, tag="response.incomplete"):
    """The last event, if a limit ended it."""


class Failed(Whole, kw_only=True, tag="response.failed"):
    """The last event, if something broke."""


class InItem(ResponseEvent, kw_only=True):
    """An event in one item of the output."""

    output_index: int


class ItemAdded(InItem, kw_only=True, tag="response.output_item.added"):
    """An item begins."""

    item: OutputItem


class ItemDone(InItem, kw_only=True, tag="response.output_item.done"):
    """An item is complete."""

    item: OutputItem


class InPart(InItem, kw_only=True):
    """An event in the one text of a message."""

    item_id: str
    content_index: int = 0


class PartAdded(InPart, kw_only=True, tag="response.content_part.added"):
    """The text begins, empty."""

    part: TextPart


class PartDone(InPart, kw_only=True, tag="response.content_part.done"):
    """The text is complete."""

    part: TextPart


class OutputTextDelta(InPart, kw_only=True, tag="response.output_text.delta"):
    """More text."""

    delta: str
    logprobs: list[Logprob]


class TextDone(InPart, kw_only=True, tag="response.output_text.done"):
    """All the text."""

    text: str
    logprobs: list[Logprob]


class ArgumentsDelta(InItem, kw_only=True, tag="response.function_call_arguments.delta"):
    """More of a call's arguments."""

    item_id: str
    delta: str


class ArgumentsDone(InItem, kw_only=True, tag="response.function_call_arguments.done"):
    """All the arguments."""

    item_id: str
    name: str
    arguments: str
