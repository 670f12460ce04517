"""The body of POST /v1/responses: every field is honoured or refused by name. Nothing is stored between requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.api.openai.generation import GenerationFields, MaxTokens, TopLogprobs
from gateway.api.openai.responses.items import InputItem
from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.neutral import without_neutral, without_neutral_in
from gateway.base.errors import InvalidRequestError
from model_host.protocol import ToolName


class TextFormat(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="text"):
    """Any text."""


class JsonObjectFormat(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="json_object"):
    """Any JSON object."""


class JsonSchemaFormat(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="json_schema"
):
    """JSON that follows ``schema``, whether ``strict`` or not."""

    name: Annotated[str, Meta(max_length=64)]
    schema: dict[str, Any]
    strict: bool | None = None
    description: str | None = None


class TextConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text must be."""

    format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None


class ResponsesFunctionTool(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="function"
):
    """A function that the model may call. ``parameters`` is a JSON schema of an object."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ResponsesNamedTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function"):
    """The one tool that the reply must call."""

    name: ToolName


ToolChoice = Literal["none", "auto", "required"] | ResponsesNamedTool

# Without reasoning items there is no content of theirs to include.
Include = Literal["message.output_text.logprobs", "reasoning.encrypted_content"]


class ResponsesRequest(GenerationFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that are honoured besides those of every generation. ``metadata`` comes back with the reply."""

    input: str | Annotated[list[InputItem], Meta(min_length=1, max_length=4096)]
    instructions: str | None = None
    max_output_tokens: MaxTokens | None = None
    text: TextConfig | None = None
    tools: Annotated[list[ResponsesFunctionTool], Meta(max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    top_logprobs: TopLogprobs | None = None
    include: list[Include] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]],
            Meta(max_length=16),
        ]
        | None
    ) = None

    @property
    def logprobs(self) -> int | None:
        """How many alternatives of each token to tell; None: nothing of the tokens."""
        wanted = "message.output_text.logprobs" in (self.include or [])
        return (self.top_logprobs or 0) if wanted else None


# OpenAI's fields that we do not have, with the values that ask for nothing. null always asks for nothing.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "context_management": ([],),
    "conversation": (),
    "max_tool_calls": (),
    "moderation": (),
    "prompt": (),
    "prompt_cache_key": (),
    "prompt_cache_options": (),
    "prompt_cache_retention": (),
    "reasoning": ({},),
    "safety_identifier": (),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "stream_options": ({},),
    "truncation": ("disabled",),
}
_UNSUPPORTED_INSIDE: dict[str, dict[str, tuple[Any, ...]]] = {
    "reasoning": {"effort": ("none",), "summary": (), "generate_summary": ()},
    "stream_options": {"include_obfuscation": (False,)},
    "text": {"verbosity": ("medium",)},
}
# What the official client sends along when a reply's output is sent back.
_UNSUPPORTED_IN_ITEM: dict[str, tuple[Any, ...]] = {
    "async": (),
    "async_": (),  # as its models are dumped
    "caller": (),
    "namespace": (),
    "phase": (),
}
_UNSUPPORTED_IN_PART: dict[str, tuple[Any, ...]] = {"annotations": ([],)}


def parse_responses(body: bytes) -> ResponsesRequest:
    """The request in ``body``. Raises InvalidRequestError naming the field at fault."""
    fields = decode_object(body)
    if fields.get("previous_response_id") is not None:
        raise InvalidRequestError(
            "`previous_response_id` is not supported: nothing is stored here; send the earlier items, "
            "the reply's `output` among them, in `input`",
            param="previous_response_id",
            code="unsupported_field",
        )
    fields.pop("previous_response_id", None)
    for name, unsupported in _UNSUPPORTED_INSIDE.items():
        if name in fields:
            fields[name] = without_neutral_in(fields[name], unsupported, f"{name}.")
    fields = without_neutral(fields, _UNSUPPORTED)
    if isinstance(fields.get("input"), list):
        fields["input"] = [_item(item, f"input[{index}].") for index, item in enumerate(fields["input"])]
    request = convert(fields, ResponsesRequest)
    _check(request)
    return request


def _item(item: Any, prefix: str) -> Any:
    """An item as the types know it: a message without a type gets it."""
    if not isinstance(item, dict):
        return item
    item = {"type": "message", **without_neutral(item, _UNSUPPORTED_IN_ITEM, prefix)}
    if isinstance(item.get("content"), list):
        item["content"] = [
            without_neutral_in(part, _UNSUPPORTED_IN_PART, f"{prefix}content[{index}].")
            for index, part in enumerate(item["content"])
        ]
    return item


def _check(request: ResponsesRequest) -> None:
    """Rules over several fields."""
    if request.top_logprobs is not None and request.logprobs is None:
        raise InvalidRequestError(
            '`top_logprobs` needs `include: ["message.output_text.logprobs"]`', param="top_logprobs"
        )
    wanted = request.text.format if request.text is not None else None
    shaped = wanted is not None and not isinstance(wanted, TextFormat)
    if shaped and request.tools and request.tool_choice != "none":
        raise InvalidRequestError(
            "`tools` cannot be combined with `text.format`; send `tool_choice: none` for such a reply",
            param="tools",
        )
