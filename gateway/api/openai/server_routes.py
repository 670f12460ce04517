"""llama-server's GET /props and /slots, POST /tokenize and /detokenize; POST /v1/moderations is not served."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated

from msgspec import Meta, Struct

from gateway import __version__
from gateway.api.http.endpoint import JSON, Endpoint
from gateway.api.openai.chat_request import ChatRequest, chat_call
from gateway.api.openai.models import context_length
from gateway.api.parsing.fields import Body, invalid
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import until_disconnect
from gateway.base.errors import HearthError, NotFoundError
from gateway.inference.interface import Inference
from gateway.models.gguf_header import chat_template
from model_host.protocol import Sampling, TokenId

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


# Per request; a text may be as long as a body.
_MAX_TOKENS = 262_144


class TokenizeRequest(Body, frozen=True, kw_only=True):
    """``content`` or ``text`` as plain text: control tokens cannot result from it.

    ``add_special`` adds the tokens that the model wants around a text, such as BOS.
    """

    content: str | None = None
    text: str | None = None
    with_pieces: bool | None = None
    add_special: bool | None = None

    def __post_init__(self) -> None:
        if (self.content is None) == (self.text is None):
            raise invalid("content", "send either `content` or `text`")


class TokenPiece(Struct, frozen=True):
    """A token and the text it adds; its bytes if they are not whole characters."""

    id: int
    piece: str | list[int]


class TokenizeReply(Struct, frozen=True):
    """Ids or, with ``with_pieces``, ids and texts."""

    tokens: list[int | TokenPiece]


class DetokenizeRequest(Body, frozen=True):
    tokens: Annotated[list[TokenId], Meta(max_length=_MAX_TOKENS)]


class DetokenizeReply(Struct, frozen=True):
    """The text. Control tokens add nothing; invalid UTF-8 becomes U+FFFD."""

    content: str


class PromptTokens(Struct, frozen=True, tag_field="object", tag="response.input_tokens"):
    """As llama-server reports it."""

    input_tokens: int


async def tokenize(request: ApiRequest, body: TokenizeRequest) -> TokenizeReply:
    """The tokens of a text. Loads the model if necessary."""
    text = body.content if body.content is not None else body.text or ""
    work = _tokens(
        request.services.inference, text, pieces=bool(body.with_pieces), ends=bool(body.add_special)
    )
    return TokenizeReply(await until_disconnect(request.receive, work))


async def detokenize(request: ApiRequest, body: DetokenizeRequest) -> DetokenizeReply:
    """The text of tokens. Loads the model if necessary."""
    work = request.services.inference.detokenize(body.tokens)
    return DetokenizeReply(await until_disconnect(request.receive, work))


async def count_chat(request: ApiRequest, body: ChatRequest) -> PromptTokens:
    """The tokens of a chat's prompt, template and tools included. Loads the model if necessary."""
    call = chat_call(body, request.id, request.owner)
    work = request.services.inference.count_prompt(call.messages or [], tools=call.tools)
    return PromptTokens(await until_disconnect(request.receive, work))


async def _tokens(inference: Inference, text: str, *, pieces: bool, ends: bool) -> list[int | TokenPiece]:
    tokens = await inference.tokenize(text, ends=ends)
    if not pieces:
        return list(tokens)
    made = await inference.token_bytes(tokens)
    return [TokenPiece(token, _shown(piece)) for token, piece in zip(tokens, made, strict=True)]


def _shown(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)


ENDPOINTS = (
    Endpoint("GET", "/props", props, reply=Props),
    Endpoint("GET", "/slots", slots, reply=list[SlotState], access="admin"),
    Endpoint("POST", "/v1/moderations", moderations, media=(JSON,), described=False),
    Endpoint("POST", "/tokenize", tokenize, TokenizeRequest, TokenizeReply),
    Endpoint("POST", "/v1/chat/completions/input_tokens", count_chat, ChatRequest, PromptTokens),
    Endpoint("POST", "/detokenize", detokenize, DetokenizeRequest, DetokenizeReply),
)
