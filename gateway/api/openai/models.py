"""GET /v1/models: the model that is served, and the embedding model where there is one."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import json_reply
from gateway.api.services import Services, services_of
from gateway.base.errors import NotFoundError
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


class ModelReply(Struct, frozen=True, kw_only=True, tag_field="object", tag="model"):
    """A model. ``created`` is its file's time in Unix seconds, 0 before there is one.

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
    models = [services.model, services.embedding.model]
    return json_reply(ModelList([_model(model) for model in models if model is not None]))


async def get_model(request: Request) -> Response:
    """One model; ``default`` is answered with the model behind it."""
    services, name = services_of(request), request.path_params["id"]
    embedding = services.embedding.model
    if embedding is not None and name == embedding.name:
        return json_reply(_model(embedding))
    check_model(services, name)
    return json_reply(_model(services.model))


def _model(model: ResolvedModel) -> ModelReply:
    try:
        created = int(model.path.stat().st_mtime)
    except OSError:  # not pulled yet
        created = 0
    return ModelReply(id=model.name, created=created, context_length=model.context, notice=model.notice)
