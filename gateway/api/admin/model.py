"""Switching the chat model while the server runs, and loading and unloading the models by hand."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from gateway.api.admin.health import HostStatus, ModelStatus
from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.fields import Body
from gateway.api.services import ApiRequest, Services
from gateway.base.errors import ConfigurationError, InvalidRequestError
from gateway.inference.interface import HostState


class ModelBody(Body, frozen=True):
    """A name from the catalog, ``owner/repository:file`` of a pulled model, or the path of a GGUF file."""

    model: Annotated[str, Meta(min_length=1, max_length=4096)]


class ModelSwitched(Struct, frozen=True):
    """The model that serves now, its host, and the name of the one before."""

    model: ModelStatus
    host: HostStatus
    previous: str


class HostReply(Struct, frozen=True):
    """The hosts after loading or unloading; null without an embedding model or a reranker."""

    host: HostStatus
    embedding_host: HostStatus | None
    rerank_host: HostStatus | None


class TypingReply(Struct, frozen=True):
    """The state of the model host when the request came. If it was not ``ready``, it is starting now."""

    state: HostState


async def use_model(request: ApiRequest, body: ModelBody) -> ModelSwitched:
    """Load a chat model and serve it until the next start; requests in progress end on the old one.

    If it cannot be loaded, the old model keeps serving.
    """
    services = request.services
    previous = services.model.name
    try:
        await services.switch.use(body.model)
    except ConfigurationError as error:
        raise InvalidRequestError(error.message, param="model") from None
    health = services.inference.health()
    return ModelSwitched(ModelStatus.of(services.model, health), HostStatus.of(health), previous)


async def warm_host(request: ApiRequest) -> HostReply:
    """Load the models and wait until they are ready."""
    services = request.services
    for host in services.hosts:
        await host.warm()
    return _hosts(services)


async def unload_host(request: ApiRequest) -> HostReply:
    """Unload the models when the open requests have ended."""
    services = request.services
    for host in services.hosts:
        await host.unload()
    return _hosts(services)


async def typing(request: ApiRequest) -> TypingReply:
    """Signal that a user is typing: an unloaded model starts to load. Returns immediately."""
    state = request.services.inference.health().state
    request.services.waker.wake()
    return TypingReply(state)


def _hosts(services: Services) -> HostReply:
    others = [services.embedding.health(), services.reranker.health()]
    return HostReply(
        HostStatus.of(services.inference.health()),
        *(HostStatus.of(health) if health is not None else None for health in others),
    )


ENDPOINTS = (
    Endpoint("POST", "/admin/model", use_model, ModelBody, ModelSwitched, access="admin"),
    Endpoint("POST", "/admin/host/warm", warm_host, reply=HostReply, access="admin"),
    Endpoint("POST", "/admin/host/unload", unload_host, reply=HostReply, access="admin"),
    Endpoint("POST", "/v1/typing", typing, reply=TypingReply, status=202),
)
