"""GET /v1/models: the chat model, and the embedding model and the reranker if they are configured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from gateway.api.http.endpoint import Endpoint
from gateway.api.services import ApiRequest, Services
from gateway.base.errors import NotFoundError
from gateway.inference.interface import HostHealth
from gateway.models.catalog import ResolvedModel

DEFAULT = "default"


def model_not_found(problem: str, param: str = "model") -> NotFoundError:
    return NotFoundError(problem, code="model_not_found", param=param)


def check_model(services: Services, name: str) -> str:
    """The LoRA adapter that ``name`` asks for as ``MODEL:ADAPTER`` or ``ADAPTER``, and "" for the model alone.

    Raises NotFoundError for an adapter that the model does not have, and for the name of another model, if
    ``server.unknown_models`` says so.
    """
    model, names = services.model, (DEFAULT, services.model.name, *services.served.aliases)
    base, _, adapter = name.rpartition(":")
    if name in names or not model.adapters:
        adapter = ""
    elif base in names and adapter != "latest" and adapter not in model.adapters:  # Ollama's usual tag
        raise model_not_found(
            f"the model `{base}` has no adapter `{adapter}`; `model.adapters` has {', '.join(model.adapters)}"
        )
    if adapter in model.adapters and base in (*names, ""):
        return adapter
    _check(services, name, model.name, services.served.aliases)
    return ""


def check_other_model(services: Services, name: str, kind: Literal["embedding", "rerank"]) -> None:
    """As :func:`check_model` for the embedding model or the reranker; without one, a call of it itself raises."""
    host = services.embedding if kind == "embedding" else services.reranker
    if host.name is not None:
        _check(services, name, host.name, getattr(services.settings, kind).aliases, f"{kind} ")


def _check(services: Services, name: str, served: str, aliases: Sequence[str], kind: str = "") -> None:
    if services.settings.server.unknown_models == "refuse" and name not in (DEFAULT, served, *aliases):
        raise model_not_found(
            f"the {kind}model `{name}` is not served here; use `{served}` or `{DEFAULT}`, or set "
            'server.unknown_models = "serve"'
        )


def context_length(model: ResolvedModel, health: HostHealth | None) -> int:
    """Maximum tokens of a request and its answer, according to the loaded model or else to its file."""
    loaded = health.model if health is not None else None
    return loaded.n_ctx if loaded is not None else model.context_length


class ModelReply(Struct, frozen=True, kw_only=True, tag_field="object", tag="model"):
    """A model. ``created`` is the time of its file in Unix seconds, 0 without a file.

    ``context_length`` is the maximum of tokens of a request and its answer. ``notice`` is the catalog's remark about
    the model, worth showing once.
    """

    id: str
    created: int
    owned_by: Literal["hearth"] = "hearth"
    context_length: int
    notice: str | None


class ModelList(Struct, frozen=True, tag_field="object", tag="list"):
    """The chat model, the same with each adapter, then the embedding model and the reranker if they are configured."""

    data: list[ModelReply]


async def list_models(request: ApiRequest) -> ModelList:
    """The models that are served."""
    services = request.services
    health = services.inference.health()
    models = [_model(services.model, health, adapter) for adapter in ("", *services.model.adapters)]
    for other in (services.embedding, services.reranker):
        if other.model is not None:
            models.append(_model(other.model, other.health()))
    return ModelList(models)


async def get_model(request: ApiRequest) -> ModelReply:
    """One model; ``default`` is the chat model."""
    services, name = request.services, request.path_params["id"]
    for other in (services.embedding, services.reranker):
        if other.model is not None and name == other.name:
            return _model(other.model, other.health())
    adapter = check_model(services, name)
    if not adapter and name not in (DEFAULT, services.model.name, *services.served.aliases):
        raise model_not_found(f"there is no model `{name}` here")
    return _model(services.model, services.inference.health(), adapter)


def _model(model: ResolvedModel, health: HostHealth | None, adapter: str = "") -> ModelReply:
    try:
        created = int(model.adapters.get(adapter, model.path).stat().st_mtime)
    except OSError:  # not downloaded yet
        created = 0
    return ModelReply(
        id=model.named(adapter),
        created=created,
        context_length=context_length(model, health),
        notice=model.notice,
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/models", list_models, reply=ModelList),
    Endpoint("GET", "/v1/models/{id:path}", get_model, reply=ModelReply),
)
