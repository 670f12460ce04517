"""GET /v1/models: the one model that is served."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

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


async def list_models(request: Request) -> JSONResponse:
    """``{"object": "list", "data": [model]}``."""
    return JSONResponse({"object": "list", "data": [_model(services_of(request))]})


async def get_model(request: Request) -> JSONResponse:
    """One model; ``default`` is answered with the model behind it."""
    services = services_of(request)
    check_model(services, request.path_params["id"])
    return JSONResponse(_model(services))


def _model(services: Services) -> dict[str, Any]:
    model = services.model
    try:
        created = int(model.path.stat().st_mtime)
    except OSError:  # not pulled yet
        created = 0
    return {
        "id": model.name,
        "object": "model",
        "created": created,
        "owned_by": "hearth",
        "context_length": model.context,
    }
