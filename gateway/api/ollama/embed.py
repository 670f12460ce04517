"""POST /api/embed and its older form, POST /api/embeddings."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import json_reply
from gateway.api.ollama.bodies import EmbedBody, EmbeddingsBody, parse_embed
from gateway.api.ollama.models import LATEST
from gateway.api.ollama.replies import Embedded, Embedding
from gateway.api.openai.models import check_embedding_model
from gateway.api.parsing.fields import parse_keep_alive
from gateway.api.recording.embeddings import logged_embedding
from gateway.api.services import services_of
from gateway.inference.embedding import Embeddings
from gateway.inference.interface import KeepAlive


async def embed(request: Request) -> Response:
    """The vectors of one or more texts."""
    begun = time.monotonic()
    body = parse_embed(await request.body(), EmbedBody)
    texts = [body.input] if isinstance(body.input, str) else body.input
    made = await _embed(request, body.model, texts, body.dimensions, parse_keep_alive(body.keep_alive))
    return json_reply(
        Embedded(
            model=body.model,
            embeddings=made.floats(),
            total_duration=round((time.monotonic() - begun) * 1e9),
            prompt_eval_count=sum(made.tokens),
        )
    )


async def embeddings(request: Request) -> Response:
    """The vector of one text."""
    body = parse_embed(await request.body(), EmbeddingsBody)
    made = await _embed(request, body.model, [body.prompt], None, parse_keep_alive(body.keep_alive))
    return json_reply(Embedding(made.floats()[0]))


async def _embed(
    request: Request, model: str, texts: list[str], dimensions: int | None, keep_alive: KeepAlive
) -> Embeddings:
    services = services_of(request)
    check_embedding_model(services, model.removesuffix(LATEST))
    return await logged_embedding(request, texts, dimensions=dimensions, keep_alive=keep_alive)
