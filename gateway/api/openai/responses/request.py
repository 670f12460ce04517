"""The body of POST /v1/responses: each field is honoured or refused by name. Requests are stateless."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from gateway.api.openai.bodies import (
    GenerationFields,
    MaxTokens,
    NamedFunction,
    TopLogprobs,
    host_choice,
    host_tools,
    to_call,
)
from gateway.api.openai.responses.items import InputItem, host_messages
from gateway.api.parsing.fields import Neutral, convert, decode_object, invalid, unsupported
from gateway.inference.interface import GenerateCall
from model_host.protocol import ToolName


class TextFormat(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="text"):
    """Any text."""


class JsonObjectFormat(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="json_object"):
    """Any JSON object."""


class JsonSchemaFormat(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="json_schema"
):
    """JSON that follows ``schema``, with or without ``strict``."""

    name: Annotated[str, Meta(max_length=64)]
    schema: dict[str, Any]
    strict: bool | None = None
    description: str | None = None


class TextConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The format of the output."""

    format: TextFormat | JsonObjectFormat | JsonSchemaFormat | None = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the output follows; None for free text."""
        if isinstance(self.format, JsonSchemaFormat):
            return self.format.schema
        return {"type": "object"} if isinstance(self.format, JsonObjectFormat) else None


class ResponsesFunctionTool(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="function"
):
    """A function that the model may call. ``parameters`` is a JSON schema of an object."""

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ResponsesNamedTool(
    NamedFunction, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function"
):
    """The tool that the reply must call."""


ToolChoice = Literal["none", "auto", "required"] | ResponsesNamedTool

# There are no reasoning items, so there is no encrypted content to include.
Include = Literal["message.output_text.logprobs", "reasoning.encrypted_content"]


class ResponsesRequest(GenerationFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields of responses besides those of every generation. The reply repeats ``metadata``."""

    # The fields of `input[]` are those that the official client adds when it sends a reply's output back.
    neutral: ClassVar[Neutral] = {
        "reasoning.effort": ("none",),
        "reasoning.summary": (),
        "reasoning.generate_summary": (),
        "stream_options.include_obfuscation": (False,),
        "text.verbosity": ("medium",),
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
        "input[].async": (),
        "input[].async_": (),
        "input[].caller": (),
        "input[].namespace": (),
        "input[].phase": (),
        "input[].content[].annotations": ([],),
    }

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
        """The number of alternatives per token; None without log-probabilities."""
        wanted = "message.output_text.logprobs" in (self.include or [])
        return (self.top_logprobs or 0) if wanted else None

    @property
    def json_schema(self) -> dict[str, Any] | None:
        return self.text.schema if self.text is not None else None

    def __post_init__(self) -> None:
        if self.top_logprobs is not None and self.logprobs is None:
            raise invalid("top_logprobs", 'it needs `include: ["message.output_text.logprobs"]`')
        if self.json_schema is not None and self.tools and self.tool_choice != "none":
            raise invalid(
                "tools", "`text.format` cannot be combined with it, except with `tool_choice: none`"
            )


def parse_responses(body: bytes) -> ResponsesRequest:
    """Raises InvalidRequestError naming the field at fault."""
    fields = decode_object(body)
    if fields.pop("previous_response_id", None) is not None:
        raise unsupported(
            "previous_response_id",
            ": nothing is stored here; send the earlier items, including the reply's `output`, in `input`",
        )
    items = fields.get("input")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            item.setdefault("type", "message")
    return convert(fields, ResponsesRequest)


def response_call(body: ResponsesRequest, request_id: str, owner: str) -> GenerateCall:
    """The generation that the request asks for. Raises InvalidRequestError."""
    tools = host_tools(body.tools or [], "tools[{}]")
    choice = body.tool_choice
    named = choice.name if isinstance(choice, ResponsesNamedTool) else None
    return to_call(
        body,
        request_id,
        owner,
        messages=host_messages(body.instructions, body.input),
        max_tokens=body.max_output_tokens,
        json_schema=body.json_schema,
        schema_field="text.format",
        tools=tools,
        tool_choice=host_choice(
            choice if isinstance(choice, str) else None, named, tools, "tool_choice.name"
        ),
        parallel_tool_calls=body.parallel_tool_calls is not False,
        logprobs=body.logprobs,
    )
