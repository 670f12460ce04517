"""GET /v1/models: the one model that is served."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.endpoint import JSON
from gateway.api.services import Services, services_of
from gateway.errors import NotFoundError

DEFAULT = "default"


def check_model(services: Services, name: str) -> None:
    """Raises NotFoundError unless ``name`` is the configured model's, or ``default``."""
    if name not in (DEFAULT, services.model.name):
        raise NotFoundError(
            f"the model `{name}` is not served here; use `{services.model.name}` or `default`",
            code="model_not_found",
            param="model",
        )


class ModelReply(Struct, frozen=True, kw_only=True, tag_field="object", tag="model"):
    """A model. ``created`` is its file's time in Unix seconds, 0 before there is one."""

    id: str
    created: int
    owned_by: Literal["hearth"] = "hearth"
    context_length: int


class ModelList(Struct, frozen=True, tag_field="object", tag="list"):
    """All models: one."""

    data: list[ModelReply]


async def list_models(request: Request) -> Response:
    """The models that are served."""
    return _json(ModelList([_model(services_of(request))]))


async def get_model(request: Request) -> Response:
    """One model; ``default`` is answered with the model behind it."""
    services = services_of(request)
    check_model(services, request.path_params["id"])
    return _json(_model(services))


def _model(services: Services) -> ModelReply:
    model = services.model
    try:
        created = int(model.path.stat().st_mtime)
    except OSError:  # not pulled yet
        created = 0
    return ModelReply(id=model.name, created=created, context_length=model.context)


def _json(value: Struct) -> Response:
    return Response(msgspec.json.encode(value), media_type=JSON)
