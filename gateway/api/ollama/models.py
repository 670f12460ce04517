"""Ollama's endpoints about models: version, tags, ps, show."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from gateway.api.http.endpoint import MAYBE_JSON, Endpoint
from gateway.api.ollama.request import ShowBody
from gateway.api.openai.models import check_model, context_length
from gateway.api.services import ApiRequest
from gateway.api.thoughts import served_template
from gateway.inference.interface import HostHealth
from gateway.models.catalog import ResolvedModel
from gateway.models.gguf_header import chat_template, header_pairs
from model_host.protocol import Sampling

# The Ollama release whose API these endpoints follow. Clients compare it with the release of a feature.
API_VERSION = "0.14.0"

LATEST = ":latest"
_FOREVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
# general.file_type of a GGUF (llama.cpp's llama_ftype).
_QUANTIZATIONS = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    32: "BF16",
}
# Options that have another name than the field of Sampling.
_OPTION_NAMES = {"penalty_last_n": "repeat_last_n"}


class Version(Struct, frozen=True):
    """The version of Ollama's API, not of this server."""

    version: str


class ModelDetails(Struct, frozen=True, kw_only=True):
    parent_model: str = ""
    format: Literal["gguf"] = "gguf"
    family: str
    families: list[str]
    parameter_size: str
    quantization_level: str


class OllamaModel(Struct, frozen=True, kw_only=True):
    """A model. ``digest`` changes with the file; it is not a checksum of its bytes."""

    name: str
    model: str
    size: int  # bytes of the file, or resident bytes
    digest: str
    details: ModelDetails


class InstalledModel(OllamaModel, frozen=True, kw_only=True):
    modified_at: datetime


class Tags(Struct, frozen=True):
    models: list[InstalledModel]


class LoadedModel(OllamaModel, frozen=True, kw_only=True):
    """A model in memory. ``expires_at`` is in the year 9999 if it is never unloaded."""

    size_vram: int
    expires_at: datetime
    context_length: int


class Processes(Struct, frozen=True):
    models: list[LoadedModel]


class ShowReply(Struct, frozen=True, kw_only=True):
    """Reply of /api/show. ``model_info`` is the file's header without the tokenizer, ``template`` is Jinja."""

    modified_at: datetime
    details: ModelDetails
    model_info: dict[str, Any]
    capabilities: list[str]
    parameters: str  # one option and its default a line
    template: str


async def version(request: ApiRequest) -> Version:
    """The version of the API."""
    return Version(API_VERSION)


async def tags(request: ApiRequest) -> Tags:
    """The models that can be used, the chat model also under its aliases and with its adapters."""
    services = request.services
    names = (
        services.model.name,
        *services.served.aliases,
        *map(services.model.named, services.model.adapters),
    )
    named = [(services.model, name) for name in names]
    if services.embedding.model is not None:
        named.append((services.embedding.model, services.embedding.model.name))
    return Tags(
        [
            InstalledModel(modified_at=_modified(model.path), **_fields(model, model.size_bytes, name))
            for model, name in named
        ]
    )


async def processes(request: ApiRequest) -> Processes:
    """The models in memory. Does not count as use."""
    services, settings = request.services, request.services.settings
    hosts = (
        (services.model, services.inference.health(), settings.model.idle_seconds),
        (services.embedding.model, services.embedding.health(), settings.embedding.idle_seconds),
    )
    return Processes(
        [
            LoadedModel(
                size_vram=0,
                expires_at=_expires_at(health, idle),
                context_length=context_length(model, health),
                **_fields(model, health.rss_bytes or 0, model.name),
            )
            for model, health, idle in hosts
            if model is not None and health is not None and health.state == "ready"
        ]
    )


async def show(request: ApiRequest, body: ShowBody) -> ShowReply:
    """The properties of a model. Does not load it."""
    services = request.services
    name, embedding = body.named.removesuffix(LATEST), services.embedding.model
    if embedding is not None and name == embedding.name:
        return await _shown(embedding, services.embedding.health(), "", ["embedding"])
    check_model(services, name)
    template = await asyncio.to_thread(chat_template, services.model.path) or ""
    health = services.inference.health()
    capabilities = ["completion", "tools"] if template else ["completion"]
    if (await served_template(services)).thinks:
        capabilities.append("thinking")
    return await _shown(services.model, health, template, capabilities)


async def _shown(
    model: ResolvedModel, health: HostHealth | None, template: str, capabilities: list[str]
) -> ShowReply:
    pairs = await asyncio.to_thread(header_pairs, model.path)
    return ShowReply(
        modified_at=_modified(model.path),
        details=_details(pairs),
        model_info=dict(pairs),
        capabilities=capabilities,
        parameters=_parameters(model, health),
        template=template,
    )


def answering(sent: str, served: str, aliases: Sequence[str]) -> str:
    """The model's name in a reply: as it was sent if it is this model's, else its own."""
    return sent if sent.removesuffix(LATEST) in (served, *aliases) else _tagged(served)


def _tagged(name: str) -> str:
    return name if ":" in name else name + LATEST


def _fields(model: ResolvedModel, size: int, name: str) -> dict[str, Any]:
    name = _tagged(name)
    details = _details(header_pairs(model.path))
    return {"name": name, "model": name, "size": size, "digest": _digest(model), "details": details}


def _expires_at(health: HostHealth, idle_seconds: float) -> datetime:
    """When the model is unloaded without further use; with open requests, as if they ended now."""
    left = health.idle_seconds_left
    if left is None and health.open_requests and idle_seconds >= 0:
        left = idle_seconds
    if left is None:
        return _FOREVER
    now = datetime.now(UTC)
    return min(_FOREVER, now + timedelta(seconds=min(left, (_FOREVER - now).total_seconds())))


def _modified(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:  # deleted meanwhile
        return datetime.fromtimestamp(0, UTC)


def _digest(model: ResolvedModel) -> str:
    """64 hexadecimal digits that change with the file. Hashing its gigabytes would take seconds."""
    identity = f"{model.path.name}\0{model.size_bytes}\0{_modified(model.path).isoformat()}"
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()


def _details(pairs: dict[str, Any]) -> ModelDetails:
    family = str(pairs.get("general.architecture", ""))
    kind = pairs.get("general.file_type")
    return ModelDetails(
        family=family,
        families=[family] if family else [],
        parameter_size=str(pairs.get("general.size_label", "")),
        quantization_level=_QUANTIZATIONS.get(kind, "unknown") if isinstance(kind, int) else "unknown",
    )


def _parameters(model: ResolvedModel, health: HostHealth | None) -> str:
    defaults = msgspec.structs.asdict(Sampling()) if model.kind == "chat" else {}
    lines = [f"{'num_ctx':<30} {context_length(model, health)}"]
    lines += [
        f"{_OPTION_NAMES.get(n, n):<30} {v:g}" for n, v in defaults.items() if isinstance(v, int | float)
    ]
    return "\n".join(lines)


ENDPOINTS = (
    Endpoint("GET", "/api/version", version, reply=Version),
    Endpoint("GET", "/api/tags", tags, reply=Tags),
    Endpoint("GET", "/api/ps", processes, reply=Processes),
    Endpoint("POST", "/api/show", show, ShowBody, ShowReply, media=MAYBE_JSON),
)
