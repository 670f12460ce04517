"""GET /v1/models: the model that is served, and the embedding model where there is one."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import json_reply
from gateway.api.services import Services, services_of
from gateway.base.errors import NotFoundError
from gateway.inference.interface import HostHealth
from gateway.models.catalog import ResolvedModel

DEFAULT = "default"


def check_model(services: Services, name: str) -> None:
    """Raises NotFoundError unless ``name`` is the configured model's, or ``default``."""
    if name not in (DEFAULT, services.model.name):
        raise NotFoundError(
            f"the model `{name}` is not served here; use `{services.model.name}` or `default`",
            code="model_not_found",
            param="model",
        )


def check_embedding_model(services: Services, name: str) -> None:
    """Raises NotFoundError for another embedding model than the one there is. That there is none, it says itself."""
    served = services.embedding.name
    if served is not None and name not in (DEFAULT, served):
        raise NotFoundError(
            f"the embedding model `{name}` is not served here; use `{served}` or `{DEFAULT}`",
            code="model_not_found",
            param="model",
        )


def context_length(model: ResolvedModel, health: HostHealth | None) -> int:
    """Tokens that one request may have, its answer included: as the loaded model says, else as its file does."""
    loaded = health.model if health is not None else None
    return loaded.n_ctx if loaded is not None else model.context_length


class ModelReply(Struct, frozen=True, kw_only=True, tag_field="object", tag="model"):
    """A model. ``created`` is its file's time in Unix seconds, 0 before there is one.

    ``context_length`` is how many tokens one request may have, its answer included.

    ``notice`` is a remark about the model worth showing once, from the catalog.
    """

    id: str
    created: int
    owned_by: Literal["hearth"] = "hearth"
    context_length: int
    notice: str | None


class ModelList(Struct, frozen=True, tag_field="object", tag="list"):
    """All models: the one that answers, then the embedding model where there is one."""

    data: list[ModelReply]


async def list_models(request: Request) -> Response:
    """The models that are served."""
    services = services_of(request)
    models = [_model(services.model, services.inference.health())]
    if services.embedding.model is not None:
        models.append(_model(services.embedding.model, services.embedding.health()))
    return json_reply(ModelList(models))


async def get_model(request: Request) -> Response:
    """One model; ``default`` is answered with the model behind it."""
    services, name = services_of(request), request.path_params["id"]
    embedding = services.embedding.model
    if embedding is not None and name == embedding.name:
        return json_reply(_model(embedding, services.embedding.health()))
    check_model(services, name)
    return json_reply(_model(services.model, services.inference.health()))


def _model(model: ResolvedModel, health: HostHealth | None) -> ModelReply:
    try:
        created = int(model.path.stat().st_mtime)
    except OSError:  # not pulled yet
        created = 0
    return ModelReply(
        id=model.name,
        created=created,
        context_length=context_length(model, health),
        notice=model.notice,
    )
