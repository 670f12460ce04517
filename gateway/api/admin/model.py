"""POST /admin/model: switches the chat model while the server runs."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gateway.api.admin.health import HostStatus, ModelStatus
from gateway.api.http.endpoint import JSON, Endpoint
from gateway.api.parsing.fields import Body, read_body
from gateway.api.services import ApiRequest
from gateway.base.errors import ConfigurationError, InvalidRequestError


class ModelBody(Body, frozen=True):
    """A name from the catalog, ``owner/repository:file`` of a pulled model, or the path of a GGUF file."""

    model: Annotated[str, Meta(min_length=1, max_length=4096)]


class ModelSwitched(Struct, frozen=True):
    """The model that serves now, its host, and the name of the one before."""

    model: ModelStatus
    host: HostStatus
    previous: str


async def use_model(request: ApiRequest) -> ModelSwitched:
    """Load a chat model and serve it until the next start; requests in progress end on the old one.

    If it cannot be loaded, the old model goes on.
    """
    services = request.services
    body = await read_body(request, ModelBody)
    previous = services.model.name
    try:
        await services.switch.use(body.model)
    except ConfigurationError as error:
        raise InvalidRequestError(error.message, param="model") from None
    health = services.inference.health()
    return ModelSwitched(ModelStatus.of(services.model, health), HostStatus.of(health), previous)


ENDPOINTS = (Endpoint("POST", "/admin/model", use_model, "admin", (JSON,), ModelBody, ModelSwitched),)
