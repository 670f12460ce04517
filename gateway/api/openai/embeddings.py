"""POST /v1/embeddings: vectors of texts."""

from __future__ import annotations

import base64
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gateway.api.http.endpoint import Endpoint
from gateway.api.openai.models import DEFAULT, check_other_model
from gateway.api.parsing.fields import Body, invalid, parse_keep_alive
from gateway.api.recording.requests import logged_embedding
from gateway.api.services import ApiRequest
from gateway.inference.embedding import EmbedCall
from model_host.protocol import TokenId

# OpenAI's limit.
MAX_INPUTS = 2048

Tokens = Annotated[list[TokenId], Meta(min_length=1)]
TextOrTokens = str | Annotated[list[str | TokenId | Tokens], Meta(min_length=1)]


def as_list(value: str | list[str | int | list[int]], field: str) -> list[str | list[int]]:
    """The texts and lists of tokens in a field. Raises InvalidRequestError for a mixed list."""
    if isinstance(value, str):
        return [value]
    if len({type(item) for item in value}) > 1:
        raise invalid(field, "send a list of texts only, of tokens only, or of lists of tokens only")
    tokens = [item for item in value if isinstance(item, int)]
    return [tokens] if tokens else [item for item in value if not isinstance(item, int)]


class EmbeddingsRequest(Body, frozen=True, kw_only=True):
    """``input`` is a text, a list of texts, the tokens of a text, or a list of such lists.

    ``task``, not in OpenAI's API, adds the task prompt for queries or documents that the model was trained with.
    """

    input: TextOrTokens
    model: str = DEFAULT
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Meta(ge=1, le=65_536)] | None = None
    user: Annotated[str, Meta(max_length=512)] | None = None
    # Not in OpenAI's API:
    task: Literal["query", "document"] | None = None
    keep_alive: float | str | None = None

    def __post_init__(self) -> None:
        if len(self.texts) > MAX_INPUTS:
            raise invalid("input", f"it has {len(self.texts)} texts; send at most {MAX_INPUTS} a request")
        if self.task is not None and not isinstance(self.texts[0], str):
            raise invalid("task", "it needs texts: tokens are embedded unchanged")

    @property
    def texts(self) -> list[str | list[int]]:
        return as_list(self.input, "input")


class EmbeddingItem(Struct, frozen=True):
    """One vector: numbers or, for the ``encoding_format`` base64, little-endian float32 in base64."""

    index: int
    embedding: list[float] | str
    object: Literal["embedding"] = "embedding"


class EmbeddingUsage(Struct, frozen=True):
    """Tokens of all texts, or pairs of query and document, including those that the model adds at their ends."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(Struct, frozen=True, kw_only=True):
    """The vectors in the order of the texts; each has length 1."""

    object: Literal["list"] = "list"
    data: list[EmbeddingItem]
    model: str
    usage: EmbeddingUsage


async def embeddings(request: ApiRequest, body: EmbeddingsRequest) -> EmbeddingsReply:
    """The vectors of one or more texts. Loads the embedding model if necessary."""
    services = request.services
    check_other_model(services, body.model, "embedding")
    call = EmbedCall(
        body.texts,
        kind=body.task or "plain",
        owner=request.owner,
        dimensions=body.dimensions,
        keep_alive=parse_keep_alive(body.keep_alive),
        request_id=request.id,
    )
    made = await logged_embedding(request, call, body.user)
    vectors: list[list[float] | str] = [*made.floats()]
    if body.encoding_format == "base64":
        vectors = [base64.b64encode(vector).decode() for vector in made.vectors]
    total = sum(made.tokens)
    return EmbeddingsReply(
        data=[EmbeddingItem(index, vector) for index, vector in enumerate(vectors)],
        model=services.embedding.name or body.model,
        usage=EmbeddingUsage(total, total),
    )


ENDPOINTS = (Endpoint("POST", "/v1/embeddings", embeddings, EmbeddingsRequest, EmbeddingsReply),)
