"""GET /props and /slots in llama-server's form, and POST /v1/moderations, which is not served."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec import Struct

from gateway import __version__
from gateway.api.http.endpoint import JSON, Endpoint
from gateway.api.openai.models import context_length
from gateway.api.services import ApiRequest
from gateway.base.errors import HearthError, NotFoundError
from gateway.models.gguf_header import chat_template
from model_host.protocol import Sampling

_STATS_SECONDS = 1.0


class GenerationSettings(Struct, frozen=True):
    """``n_ctx`` is the maximum of tokens of a request and its reply; ``params`` are the defaults of sampling."""

    n_ctx: int
    params: Sampling


class Modalities(Struct, frozen=True):
    vision: bool = False
    audio: bool = False


class Props(Struct, frozen=True, kw_only=True):
    """The served model. ``model_path`` is the name of its file without the folder."""

    default_generation_settings: GenerationSettings
    total_slots: int
    model_alias: str
    model_path: str
    chat_template: str
    modalities: Modalities = Modalities()
    build_info: str = f"hearth-{__version__}"


class SlotState(Struct, frozen=True):
    """A place for a request. Places are not tied to conversations, so their numbers mean nothing."""

    id: int
    n_ctx: int
    is_processing: bool


async def props(request: ApiRequest) -> Props:
    """The served model and the defaults of a generation. Does not load it."""
    services = request.services
    model = services.model
    template = await asyncio.to_thread(chat_template, model.path)
    return Props(
        default_generation_settings=GenerationSettings(
            context_length(model, services.inference.health()), Sampling()
        ),
        total_slots=services.settings.model.parallel,
        model_alias=model.name,
        model_path=model.path.name,
        chat_template=template or "",
    )


async def slots(request: ApiRequest) -> list[SlotState]:
    """How many requests the model works on, without their content. Does not load it."""
    services = request.services
    with suppress(HearthError, TimeoutError):
        async with asyncio.timeout(_STATS_SECONDS):
            await services.inference.refresh_stats()
    health = services.inference.health()
    context = context_length(services.model, health)
    return [
        SlotState(place, context, place < health.running) for place in range(services.settings.model.parallel)
    ]


async def moderations(request: ApiRequest) -> None:
    """Refused: there is no moderation model."""
    raise NotFoundError(
        "`/v1/moderations` is not served: hearth has no moderation model; ask the chat model to classify a text",
        code="moderations_not_supported",
    )


ENDPOINTS = (
    Endpoint("GET", "/props", props, reply=Props),
    Endpoint("GET", "/slots", slots, reply=list[SlotState], access="admin"),
    Endpoint("POST", "/v1/moderations", moderations, media=(JSON,), described=False),
)
