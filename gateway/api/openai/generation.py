"""What OpenAI's endpoints that generate have in common: fields of their bodies, choices, and how they are filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.api.parsing.fields import User, parse_keep_alive
from gateway.api.streaming.streams import Relay
from gateway.base.errors import HearthError, InvalidRequestError
from gateway.inference.interface import GenerateCall, GenerationEvent, LoadProgress
from model_host.protocol import Finished, Lane, Penalty, Sampling, StopString, Unit

# Events of the choices, each with its choice's index.
Numbered = tuple[int, GenerationEvent]

MaxTokens = Annotated[int, Meta(ge=1, le=1_048_576)]
ChoiceCount = Annotated[int, Meta(ge=1, le=8)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]
Grammar = Annotated[str, Meta(min_length=1, max_length=262_144)]

_SEEDS = 2**32 - 1


class GenerationFields(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The fields that every body has. None leaves the default in force, as if the field were absent.

    The sampling defaults are those of ``model_host.protocol.Sampling`` (temperature 0.7, top_p 0.95,
    top_k 64), not OpenAI's (temperature 1): small models ramble at 1.
    """

    model: str = "default"
    stop: StopString | Annotated[list[StopString], Meta(max_length=16)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**32 - 2)] | None = None
    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_p: Unit | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    stream: bool | None = None
    user: User | None = None
    # Ours.
    priority: Lane | None = None
    keep_alive: float | str | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    min_p: Unit | None = None
    repeat_penalty: Annotated[float, Meta(ge=0.1, le=5.0)] | None = None
    # How many tokens the penalties look back on.
    penalty_last_n: Annotated[int, Meta(ge=0, le=8192)] | None = None


class JsonSchema(Struct, frozen=True, forbid_unknown_fields=True):
    """A named schema. The output follows it whether ``strict`` or not."""

    name: Annotated[str, Meta(max_length=64)] = ""
    schema: dict[str, Any] = {}
    strict: bool | None = None


class ResponseFormat(Struct, frozen=True, forbid_unknown_fields=True):
    """What the output must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """``include_usage`` adds a last chunk with the token counts."""

    include_usage: bool | None = None


def check_format(wanted: ResponseFormat | None, grammar: str | None) -> None:
    """Raises InvalidRequestError for a format that contradicts itself or a grammar."""
    if wanted is None:
        return
    if (wanted.type == "json_schema") != (wanted.json_schema is not None):
        raise InvalidRequestError(
            "`response_format.json_schema` belongs to the type `json_schema`, and to it alone",
            param="response_format",
        )
    if wanted.type != "text" and grammar is not None:
        raise InvalidRequestError("`grammar` and `response_format` exclude each other", param="grammar")


def schema_of(wanted: ResponseFormat | None) -> dict[str, Any] | None:
    """The JSON schema that the output must follow; None for any text."""
    if wanted is None or wanted.type == "text":
        return None
    return wanted.json_schema.schema if wanted.json_schema is not None else {"type": "object"}


def to_call(body: GenerationFields, request_id: str, owner: str, **rest: Any) -> GenerateCall:
    """The generation that ``body`` asks for; ``rest`` is what its endpoint alone knows. Raises InvalidRequestError."""
    given = {
        name: value for name in Sampling.__struct_fields__ if (value := getattr(body, name, None)) is not None
    }
    return GenerateCall(
        id=request_id,
        sampling=Sampling(**given),
        stop=[body.stop] if isinstance(body.stop, str) else (body.stop or []),
        lane=body.priority or "interactive",
        owner=owner,
        keep_alive=parse_keep_alive(body.keep_alive),
        **rest,
    )


def choices_of(call: GenerateCall, count: int) -> list[GenerateCall]:
    """The same generation ``count`` times. With a ``seed`` each one has the next seed."""
    seed = call.sampling.seed
    if seed is None:
        return [call] * count
    return [
        replace(call, sampling=replace(call.sampling, seed=(seed + number) % _SEEDS))
        for number in range(count)
    ]


class Growing(Protocol):
    """A choice that takes in the events of its generation; ``end`` is the last one."""

    end: Finished | None

    def add(self, event: GenerationEvent) -> None: ...


async def collect(relay: Relay[Numbered], choices: Sequence[Growing]) -> None:
    """Fill the choices. Raises what ended one of them early."""
    async with relay:
        async for index, event in relay:
            choices[index].add(checked(event))
    check_ended(choices)


def check_ended(choices: Sequence[Growing]) -> None:
    """Raises unless every choice has come to its end."""
    if any(choice.end is None for choice in choices):
        raise HearthError("the generation ended without a result")


def checked(event: GenerationEvent) -> GenerationEvent:
    """Raises when the model host cut the generation off, which no client asked for."""
    if isinstance(event, Finished) and event.reason == "cancelled":
        raise HearthError(
            "the generation was cut off; try again", code="cancelled", status=503, retry_after=1.0
        )
    return event


def has_begun(item: Numbered) -> bool:
    """Whether the model is at work: before that, failures are plain HTTP errors."""
    return not isinstance(item[1], LoadProgress)
