"""Fields and checks that the bodies of OpenAI's generating endpoints share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from gateway.api.parsing.fields import (
    Body,
    HintFields,
    SamplingFields,
    User,
    invalid,
    parse_keep_alive,
    parse_object,
    sampling_of,
    set_field,
    unsupported,
)
from gateway.inference.interface import GenerateCall
from model_host.protocol import Bias, Lane, StopString, TokenId, Tool, ToolName

MaxTokens = Annotated[int, Meta(ge=1, le=1_048_576)]
ChoiceCount = Annotated[int, Meta(ge=1, le=8)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]
Grammar = Annotated[str, Meta(min_length=1, max_length=262_144)]

_SEEDS = 2**32 - 1
_BANNED = -1000.0
# Samplers as llama-server names them, in this server's order, which is that server's too: the values that switch each
# off, its letter, and other names of it.
_SAMPLERS: dict[str, tuple[dict[str, float], str]] = {
    "penalties": ({"repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}, "e"),
    "dry": ({}, "d"),
    "top_n_sigma": ({}, "s"),
    "top_k": ({"top_k": 0}, "k"),
    "typ_p": ({"typical_p": 1.0}, "y"),
    "top_p": ({"top_p": 1.0}, "p"),
    "min_p": ({"min_p": 0.0}, "m"),
    "xtc": ({"xtc_probability": 0.0}, "x"),
    "temperature": ({"temperature": 1.0}, "t"),
}
_SAMPLER_NAMES = {letter: name for name, (_, letter) in _SAMPLERS.items()} | {
    "typical_p": "typ_p",
    "typical": "typ_p",
    "temp": "temperature",
    "top-k": "top_k",
    "top-p": "top_p",
    "min-p": "min_p",
}
# Values with which other servers' clients leave a field at its default.
_DEFAULTS = {"seed": -1, "max_tokens": -1, "max_completion_tokens": -1, "max_output_tokens": -1}


class GenerationFields(SamplingFields, HintFields, frozen=True, kw_only=True):
    """The fields of every body. ``top_k``, ``min_p`` and ``repeat_penalty`` are not in OpenAI's API.

    The sampling defaults are those of ``model_host.protocol.Sampling`` (temperature 0.7, top_p 0.95, top_k 64), not
    OpenAI's (temperature 1): small models ramble at 1.
    """

    model: str = "default"
    stop: StopString | Annotated[list[StopString], Meta(max_length=16)] | None = None
    seed: Annotated[int, Meta(ge=0, le=2**32 - 2)] | None = None
    stream: bool | None = None
    user: User | None = None
    # Not in OpenAI's API:
    priority: Lane | None = None
    keep_alive: float | str | None = None
    penalty_last_n: Annotated[int, Meta(ge=0, le=8192)] | None = None  # tokens that the penalties consider
    logit_bias: Annotated[dict[TokenId, Bias], Meta(max_length=1024)] | None = None
    min_tokens: Annotated[int, Meta(ge=0, le=1_048_576)] | None = None
    aliases: ClassVar[dict[str, str]] = {
        "repetition_penalty": "repeat_penalty",
        "repeat_last_n": "penalty_last_n",
        "n_predict": "max_tokens",
        "max_new_tokens": "max_tokens",
        "sampler_seed": "seed",
        "stopping_strings": "stop",
        "typical": "typical_p",
        "typ_p": "typical_p",
        "guided_grammar": "grammar",
    }
    forms: ClassVar[dict[str, str]] = {"samplers": ""}

    @classmethod
    def prepare(cls, fields: dict[str, Any]) -> None:
        for name, default in _DEFAULTS.items():
            if fields.get(name) == default:
                del fields[name]
        if fields.get("model", "") is None:
            del fields["model"]
        if fields.get("top_k") == -1:  # vLLM's and llama-server's: all tokens
            fields["top_k"] = 0
        if (samplers := fields.pop("samplers", None)) is not None:
            fields |= _switched_off(samplers)
        if fields.get("logit_bias") is not None:
            fields["logit_bias"] = _biases(fields["logit_bias"])


def _switched_off(samplers: Any) -> dict[str, float]:
    """The values that switch off what llama-server's ``samplers`` leaves out. Raises InvalidRequestError."""
    sent = list(samplers) if isinstance(samplers, str | list) else [None]
    named = [_SAMPLER_NAMES.get(each, each) if isinstance(each, str) else None for each in sent]
    if named != [name for name in _SAMPLERS if name in named]:
        raise invalid("samplers", f"send some of {', '.join(_SAMPLERS)}, in this order")
    left_out = (values for name, (values, _) in _SAMPLERS.items() if name not in named)
    return {name: value for values in left_out for name, value in values.items()}


def _biases(sent: Any) -> dict[int, Any]:
    """OpenAI's ``{token: bias}`` or llama-server's ``[[token, bias], …]``, where false bans the token."""
    try:
        return {
            int(token): _BANNED if bias is False else bias
            for token, bias in (sent.items() if isinstance(sent, dict) else sent)
        }
    except (TypeError, ValueError):
        raise invalid("logit_bias", "send an object, or pairs, of ids of tokens and numbers") from None


class JsonSchema(Body, frozen=True):
    """A named schema. The output follows it with or without ``strict``."""

    name: Annotated[str, Meta(max_length=64)] = ""
    schema: dict[str, Any] = {}
    strict: bool | None = None


class ResponseFormat(Body, frozen=True):
    """``schema`` next to ``json_object`` is llama-server's."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None
    schema: dict[str, Any] | None = None

    @property
    def wanted(self) -> dict[str, Any] | None:
        """The JSON schema that the output follows; None for free text."""
        if self.type == "text":
            return None
        return self.json_schema.schema if self.json_schema is not None else self.schema or {"type": "object"}


class StreamOptions(Body, frozen=True):
    """``include_usage`` adds a last chunk with the token counts."""

    include_usage: bool | None = None


class PromptFields(GenerationFields, frozen=True, kw_only=True):
    """The fields that chat and text completions share."""

    max_tokens: MaxTokens | None = None
    n: ChoiceCount | None = None
    stream_options: StreamOptions | None = None
    # Not in OpenAI's API, or not for all completions:
    response_format: ResponseFormat | None = None
    grammar: Grammar | None = None
    ignore_eos: bool | None = None
    forms: ClassVar[dict[str, str]] = {
        "structured_outputs": "response_format",
        "guided_json": "response_format",
        "json_schema": "response_format",
        "guided_choice": "grammar",
    }

    @classmethod
    def prepare(cls, fields: dict[str, Any]) -> None:
        """Other servers' names of the output's form become ``response_format`` and ``grammar``."""
        super().prepare(fields)
        for alias, schema in output_form(fields):
            named = {"type": "json_schema", "json_schema": {"schema": schema}}
            set_field(fields, "response_format", named, alias)

    @property
    def json_schema(self) -> dict[str, Any] | None:
        return self.response_format.wanted if self.response_format is not None else None

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def __post_init__(self) -> None:
        wanted = self.response_format
        if wanted is not None and (wanted.type == "json_schema") != (wanted.json_schema is not None):
            raise invalid(
                "response_format", "the type `json_schema`, and no other type, needs the field `json_schema`"
            )
        if wanted is not None and wanted.schema is not None and wanted.type != "json_object":
            raise invalid("response_format.schema", "it needs the type `json_object`")
        if self.json_schema is not None and self.grammar is not None:
            raise invalid("grammar", "send either `grammar` or `response_format`")
        if self.stream_options is not None and not self.stream:
            raise invalid("stream_options", "it needs `stream: true`")


def output_form(fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Take vLLM's and llama-server's names of the output's form from ``fields``, which get their ``grammar``.

    Yields JSON schemas by the field that has them. Raises InvalidRequestError.
    """
    if fields.get("grammar") == "":  # llama-server's: none
        del fields["grammar"]
    wanted = fields.pop("structured_outputs", None)
    if not isinstance(wanted, dict | None):
        raise invalid("structured_outputs", "it must be an object with `json`, `choice` or `grammar`")
    wanted = {name: value for name, value in (wanted or {}).items() if value}
    set_field(fields, "grammar", wanted.pop("grammar", None), "structured_outputs.grammar")
    choices = {
        "structured_outputs.choice": wanted.pop("choice", None),
        "guided_choice": fields.pop("guided_choice", None),
    }
    schemas = {
        "structured_outputs.json": wanted.pop("json", None),
        "structured_outputs.json_object": {"type": "object"} if wanted.pop("json_object", None) else None,
        "guided_json": fields.pop("guided_json", None),
        "json_schema": fields.pop("json_schema", None),
    }
    if wanted:
        raise unsupported(f"structured_outputs.{min(wanted)}", "; send `json`, `choice` or `grammar`")
    for alias, texts in choices.items():
        if texts is not None:
            set_field(fields, "grammar", _one_of(texts, alias), alias)
    for alias, schema in schemas.items():
        if isinstance(schema, str):
            schema = parse_object(schema, alias)
        if schema is not None:
            yield alias, schema


def _one_of(texts: Any, alias: str) -> str:
    """A grammar whose outputs are ``texts``. Raises InvalidRequestError."""
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts) or not texts:
        raise invalid(alias, "send a list of texts")
    literals = ("".join(map(_literal, text)) for text in texts)
    return "root ::= " + " | ".join(f'"{literal}"' for literal in literals)


def _literal(character: str) -> str:
    plain = character.isprintable() and character not in '"\\'
    return character if plain else f"\\U{ord(character):08x}"


class Function(Body, frozen=True):
    """A function that the model may call. ``parameters`` is a JSON schema of an object.

    Constrained calls follow the schema as far as it can be enforced; ``strict`` refuses a schema that cannot.
    """

    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedFunction(Body, frozen=True):
    name: ToolName


def host_tools(functions: Mapping[str, Function]) -> list[Tool]:
    """The tools in the host's form, from functions by their paths in the body. Raises InvalidRequestError."""
    made: dict[str, Tool] = {}
    for here, function in functions.items():
        if function.name in made:
            raise invalid(f"{here}.name", f"another tool has the name {function.name}; rename one of them")
        parameters = function.parameters or {}
        if parameters.get("type", "object") != "object":
            raise invalid(f"{here}.parameters", "the `type` of a function's parameters must be `object`")
        made[function.name] = Tool(
            function.name, function.description or "", parameters, bool(function.strict)
        )
    return list(made.values())


def host_choice(choice: str | None, named: str | None, tools: list[Tool], place: str) -> str:
    """``auto``, ``none``, ``required`` or ``function:NAME``. Raises InvalidRequestError; ``place`` is NAME's path."""
    if named is not None:
        if all(tool.name != named for tool in tools):
            raise invalid(place, f"`tools` has no {named}")
        return f"function:{named}"
    if choice == "required" and not tools:
        raise invalid("tool_choice", "`required` needs `tools`")
    return choice or "auto"


def to_call(body: GenerationFields, request_id: str, owner: str, **rest: Any) -> GenerateCall:
    """The generation that ``body`` asks for, with the fields in ``rest``. Raises InvalidRequestError."""
    return GenerateCall(
        id=request_id,
        sampling=sampling_of(body),
        stop=[body.stop] if isinstance(body.stop, str) else (body.stop or []),
        lane=body.priority or "interactive",
        owner=owner,
        keep_alive=parse_keep_alive(body.keep_alive),
        **rest,
    )


def choices_of(call: GenerateCall, count: int) -> list[GenerateCall]:
    """The generation ``count`` times, with consecutive seeds if it has a ``seed``."""
    seed = call.sampling.seed
    if seed is None:
        return [call] * count
    return [
        replace(call, sampling=replace(call.sampling, seed=(seed + number) % _SEEDS))
        for number in range(count)
    ]
