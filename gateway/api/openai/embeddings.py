"""POST /v1/embeddings: vectors of texts, in OpenAI's shapes."""

from __future__ import annotations

import base64
from typing import Annotated, Literal

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import JSON, Endpoint, json_reply
from gateway.api.openai.models import check_embedding_model
from gateway.api.parsing.fields import convert, decode_object, parse_keep_alive
from gateway.api.recording.embeddings import logged_embedding
from gateway.api.services import services_of
from gateway.base.errors import InvalidRequestError
from gateway.inference.embedding import TextKind
from model_host.protocol import TokenId

# As many as OpenAI takes.
MAX_INPUTS = 2048

Tokens = Annotated[list[TokenId], Meta(min_length=1)]


class EmbeddingsRequest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``input`` is a text, a list of texts, the tokens of a text, or a list of such lists.

    Ours: ``task`` puts the words around the texts that the model was trained with for queries or documents.
    """

    model: str
    input: str | Annotated[list[str | TokenId | Tokens], Meta(min_length=1)]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    user: Annotated[str, Meta(max_length=512)] | None = None
    # Ours.
    task: Literal["query", "document"] | None = None
    keep_alive: float | str | None = None

    @property
    def texts(self) -> list[str | list[int]]:
        """The texts in their order. Raises InvalidRequestError for a list of several kinds of things."""
        if isinstance(self.input, str):
            return [self.input]
        kinds = {type(item) for item in self.input}
        if len(kinds) > 1:
            raise InvalidRequestError(
                "`input`: a list has texts alone, tokens alone, or lists of tokens alone", param="input"
            )
        if kinds == {int}:
            return [[item for item in self.input if isinstance(item, int)]]
        if len(self.input) > MAX_INPUTS:
            raise InvalidRequestError(
                f"`input` has {len(self.input)} texts; at most {MAX_INPUTS} fit one request", param="input"
            )
        return [item for item in self.input if not isinstance(item, int)]


class EmbeddingItem(Struct, frozen=True):
    """One vector: numbers, or with ``encoding_format`` base64 little-endian float32 in base64."""

    index: int
    embedding: list[float] | str
    object: Literal["embedding"] = "embedding"


class EmbeddingUsage(Struct, frozen=True):
    """Tokens of all texts, those that the model wants at their ends included."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(Struct, frozen=True, kw_only=True):
    """The vectors in the order of the texts; each has length 1."""

    object: Literal["list"] = "list"
    data: list[EmbeddingItem]
    model: str
    usage: EmbeddingUsage


async def embeddings(request: Request) -> Response:
    """The vectors of one or more texts. Starts the embedding model when it is not loaded."""
    services = services_of(request)
    body = convert(decode_object(await request.body()), EmbeddingsRequest)
    check_embedding_model(services, body.model)
    kind: TextKind = body.task or "plain"
    texts = body.texts
    if kind != "plain" and not isinstance(texts[0], str):
        raise InvalidRequestError("`task` needs texts: tokens are embedded as they are", param="task")
    keep_alive = parse_keep_alive(body.keep_alive)
    made = await logged_embedding(
        request, texts, kind=kind, dimensions=body.dimensions, keep_alive=keep_alive, user=body.user
    )
    vectors: list[list[float] | str] = [*made.floats()]
    if body.encoding_format == "base64":
        vectors = [base64.b64encode(vector).decode() for vector in made.vectors]
    total = sum(made.tokens)
    reply = EmbeddingsReply(
        data=[EmbeddingItem(index, vector) for index, vector in enumerate(vectors)],
        model=services.embedding.name or body.model,
        usage=EmbeddingUsage(total, total),
    )
    return json_reply(reply)


ENDPOINTS = (
    Endpoint("POST", "/v1/embeddings", embeddings, "user", (JSON,), EmbeddingsRequest, EmbeddingsReply),
)
