"""POST /api/embed and its older form, POST /api/embeddings."""

from __future__ import annotations

import time

from msgspec import Struct

from gateway.api.http.endpoint import MAYBE_JSON, Endpoint
from gateway.api.ollama.models import LATEST, answering
from gateway.api.ollama.request import EmbedBody, EmbeddingsBody
from gateway.api.openai.models import check_embedding_model
from gateway.api.parsing.fields import parse_keep_alive
from gateway.api.recording.requests import logged_embedding
from gateway.api.services import ApiRequest
from gateway.inference.embedding import EmbedCall, Embeddings


class EmbedReply(Struct, frozen=True, kw_only=True):
    """One vector of length 1 per input; the duration is in nanoseconds."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    prompt_eval_count: int


class OldEmbedReply(Struct, frozen=True):
    embedding: list[float]


async def embed(request: ApiRequest, body: EmbedBody) -> EmbedReply:
    """The vectors of one or more texts."""
    begun = time.monotonic()
    made = await _embed(request, body, [body.input] if isinstance(body.input, str) else body.input)
    served, aliases = request.services.embedding.name, request.services.settings.embedding.aliases
    return EmbedReply(
        model=answering(body.model, served or "", aliases),
        embeddings=made.floats(),
        total_duration=round((time.monotonic() - begun) * 1e9),
        prompt_eval_count=sum(made.tokens),
    )


async def embeddings(request: ApiRequest, body: EmbeddingsBody) -> OldEmbedReply:
    """The vector of one text."""
    return OldEmbedReply((await _embed(request, body, [body.prompt])).floats()[0])


async def _embed(request: ApiRequest, body: EmbedBody | EmbeddingsBody, texts: list[str]) -> Embeddings:
    check_embedding_model(request.services, body.model.removesuffix(LATEST))
    call = EmbedCall(
        texts,
        owner=request.owner,
        dimensions=body.dimensions if isinstance(body, EmbedBody) else None,
        keep_alive=parse_keep_alive(body.keep_alive),
        request_id=request.id,
    )
    return await logged_embedding(request, call)


ENDPOINTS = (
    Endpoint("POST", "/api/embed", embed, EmbedBody, EmbedReply, media=MAYBE_JSON),
    Endpoint("POST", "/api/embeddings", embeddings, EmbeddingsBody, OldEmbedReply, media=MAYBE_JSON),
)
