"""Ollama's view of the models here: what is installed, what is loaded, what a model is."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import json_reply
from gateway.api.ollama.bodies import parse_show
from gateway.api.ollama.replies import (
    InstalledModel,
    LoadedModel,
    ModelDetails,
    Processes,
    Shown,
    Tags,
    Version,
)
from gateway.api.openai.models import check_model, context_length
from gateway.api.services import Services, services_of
from gateway.inference.interface import HostHealth
from gateway.models.catalog import ResolvedModel
from gateway.models.gguf_header import chat_template, header_pairs
from model_host.protocol import Sampling

# The Ollama release whose API these endpoints follow. Clients compare it with the release a feature came with.
API_VERSION = "0.12.0"

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
# Options whose name or meaning differs from the field of Sampling.
_OPTION_NAMES = {"penalty_last_n": "repeat_last_n"}


def check_name(services: Services, name: str) -> None:
    """Raises NotFoundError unless ``name``, with or without the tag ``latest``, is the model that is served."""
    check_model(services, name.removesuffix(LATEST))


async def version(request: Request) -> Response:
    """The version of the API."""
    return json_reply(Version(API_VERSION))


async def tags(request: Request) -> Response:
    """The models that can be asked."""
    services = services_of(request)
    models = [services.model, services.embedding.model]
    return json_reply(Tags([_installed(model) for model in models if model is not None]))


async def processes(request: Request) -> Response:
    """The models in memory. Looking does not count as use."""
    services = services_of(request)
    settings = services.settings
    hosts = (
        (services.model, services.inference.health(), settings.model.idle_seconds),
        (services.embedding.model, services.embedding.health(), settings.embedding.idle_seconds),
    )
    return json_reply(
        Processes(
            [
                _loaded(model, health, idle)
                for model, health, idle in hosts
                if model is not None and health is not None and health.state == "ready"
            ]
        )
    )


async def show(request: Request) -> Response:
    """What is known of a model. Does not load it."""
    services = services_of(request)
    name = parse_show(await request.body())
    embedding = services.embedding.model
    if embedding is not None and name.removesuffix(LATEST) == embedding.name:
        return json_reply(await _shown(embedding, services.embedding.health(), "", ["embedding"]))
    check_name(services, name)
    template = await asyncio.to_thread(chat_template, services.model.path) or ""
    health = services.inference.health()
    # Whether the template's format of calls is understood, the host knows once it is loaded.
    tools = health.model.tools if health.model is not None else "tools" in template
    capabilities = ["completion", "tools"] if tools else ["completion"]
    return json_reply(await _shown(services.model, health, template, capabilities))


async def _shown(
    model: ResolvedModel, health: HostHealth | None, template: str, capabilities: list[str]
) -> Shown:
    pairs = await asyncio.to_thread(header_pairs, model.path)
    return Shown(
        modified_at=_modified(model.path),
        details=_details(pairs),
        model_info=dict(pairs),
        capabilities=capabilities,
        parameters=_parameters(model, health),
        template=template,
    )


def _installed(model: ResolvedModel) -> InstalledModel:
    name = _tagged(model.name)
    return InstalledModel(
        name=name,
        model=name,
        modified_at=_modified(model.path),
        size=model.size_bytes,
        digest=_digest(model),
        details=_details(header_pairs(model.path)),
    )


def _loaded(model: ResolvedModel, health: HostHealth, idle_seconds: float) -> LoadedModel:
    name = _tagged(model.name)
    return LoadedModel(
        name=name,
        model=name,
        size=health.rss_bytes or 0,
        size_vram=0,
        digest=_digest(model),
        details=_details(header_pairs(model.path)),
        expires_at=_expires_at(health, idle_seconds),
        context_length=context_length(model, health),
    )


def _expires_at(health: HostHealth, idle_seconds: float) -> datetime:
    """When the model goes unless it is used again; one in use goes the configured time after its last use."""
    left = health.idle_seconds_left
    if left is None and health.open_requests and idle_seconds >= 0:
        left = idle_seconds
    if left is None:
        return _FOREVER
    now = datetime.now(UTC)
    return min(_FOREVER, now + timedelta(seconds=min(left, (_FOREVER - now).total_seconds())))


def _tagged(name: str) -> str:
    return name if ":" in name else name + LATEST


def _modified(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:  # not there any more
        return datetime.fromtimestamp(0, UTC)


def _digest(model: ResolvedModel) -> str:
    """64 hexadecimal digits that change with the file. Hashing gigabytes for a list would take seconds."""
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
    lines += [f"{_OPTION_NAMES.get(n, n):<30} {v:g}" for n, v in defaults.items() if v is not None]
    return "\n".join(lines)
