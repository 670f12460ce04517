"""Replies of Ollama's endpoints. Durations are nanoseconds; what is UNSET is left out."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

DoneReason = Literal["stop", "length", "load", "unload"]


class OllamaFunctionReply(Struct, frozen=True, kw_only=True):
    """The function that the model wants called."""

    index: int
    name: str
    arguments: dict[str, Any]


class OllamaToolCallReply(Struct, frozen=True, kw_only=True):
    """A whole call; it is never streamed in pieces."""

    id: str
    function: OllamaFunctionReply


class OllamaMessageReply(Struct, frozen=True, kw_only=True):
    """A message of the model, or the next piece of it."""

    role: Literal["assistant"] = "assistant"
    content: str = ""
    tool_calls: list[OllamaToolCallReply] | UnsetType = UNSET


class OllamaTopLogprobReply(Struct, frozen=True):
    """A token that could have been."""

    token: str
    logprob: float
    bytes: list[int]


class OllamaLogprobReply(OllamaTopLogprobReply, frozen=True):
    """A token of the text."""

    top_logprobs: list[OllamaTopLogprobReply]


class Timings(Struct, frozen=True, kw_only=True):
    """What the last line tells. ``prompt_eval_count`` counts the cached part of the prompt too."""

    total_duration: int | UnsetType = UNSET
    load_duration: int | UnsetType = UNSET
    prompt_eval_count: int | UnsetType = UNSET
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    eval_duration: int | UnsetType = UNSET


class Line(Timings, frozen=True, kw_only=True):
    """One line of a stream, or the whole reply. ``model`` is the name that the request used."""

    model: str
    created_at: datetime
    done: bool
    done_reason: DoneReason | UnsetType = UNSET
    logprobs: list[OllamaLogprobReply] | UnsetType = UNSET


class ChatLine(Line, frozen=True, kw_only=True):
    """A line of /api/chat."""

    message: OllamaMessageReply


class GenerateLine(Line, frozen=True, kw_only=True):
    """A line of /api/generate."""

    response: str


class Version(Struct, frozen=True):
    """The version of Ollama's API that these endpoints follow, not of this server."""

    version: str


class ModelDetails(Struct, frozen=True, kw_only=True):
    """Of the model's file, as far as its header tells."""

    parent_model: str = ""
    format: Literal["gguf"] = "gguf"
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class InstalledModel(Struct, frozen=True, kw_only=True):
    """A model that can be used. ``digest`` changes whenever the file does; it is no checksum of its bytes."""

    name: str
    model: str
    modified_at: datetime
    size: int  # bytes of the file
    digest: str
    details: ModelDetails


class Tags(Struct, frozen=True):
    """Reply of /api/tags."""

    models: list[InstalledModel]


class LoadedModel(Struct, frozen=True, kw_only=True):
    """A model in memory. ``expires_at`` is in the year 9999 when it is kept for ever."""

    name: str
    model: str
    size: int  # resident bytes
    size_vram: int
    digest: str
    details: ModelDetails
    expires_at: datetime
    context_length: int


class Processes(Struct, frozen=True):
    """Reply of /api/ps."""

    models: list[LoadedModel]


class Shown(Struct, frozen=True, kw_only=True):
    """Reply of /api/show. ``model_info`` is the file's header without the tokenizer, ``template`` its Jinja text."""

    modified_at: datetime
    details: ModelDetails
    model_info: dict[str, Any]
    capabilities: list[str]
    parameters: str  # one option and its default a line
    template: str


class Embedded(Struct, frozen=True, kw_only=True):
    """Reply of /api/embed: one vector of unit length an input."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    prompt_eval_count: int


class Embedding(Struct, frozen=True):
    """Reply of /api/embeddings."""

    embedding: list[float]
