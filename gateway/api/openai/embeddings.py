"""POST /v1/embeddings, vectors of texts, and POST /v1/rerank, as Cohere's and Jina's clients ask for it."""

from __future__ import annotations

import base64
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.api.http.endpoint import Endpoint
from gateway.api.openai.models import DEFAULT, check_other_model
from gateway.api.parsing.fields import Body, User, invalid, parse_keep_alive
from gateway.api.recording.requests import logged_embedding, logged_rerank
from gateway.api.services import ApiRequest
from gateway.inference.embedding import EmbedCall, RerankCall
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


MAX_DOCUMENTS = 1000


class DocumentText(Body, frozen=True):
    text: str


class RerankRequest(Body, frozen=True, kw_only=True):
    """``documents`` are texts or objects with a ``text``. ``top_n`` limits the results.

    Only the first ``max_tokens_per_doc`` tokens of a document are read; without it one that is too long is refused.
    """

    model: str = DEFAULT
    query: str
    documents: Annotated[list[str | DocumentText], Meta(min_length=1)]
    top_n: Annotated[int, Meta(ge=1)] | None = None
    return_documents: bool = False
    max_tokens_per_doc: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None
    user: User | None = None
    # Not in Cohere's and Jina's API:
    keep_alive: float | str | None = None

    def __post_init__(self) -> None:
        if len(self.documents) > MAX_DOCUMENTS:
            raise invalid(
                "documents", f"there are {len(self.documents)}; send at most {MAX_DOCUMENTS} a request"
            )
        if not self.query.strip():
            raise invalid("query", "it is empty")
        for index, text in enumerate(self.texts):
            if not text.strip():
                raise invalid(f"documents[{index}]", "it is empty")

    @property
    def texts(self) -> list[str]:
        return [each if isinstance(each, str) else each.text for each in self.documents]


class RankedText(Struct, frozen=True):
    text: str


class RerankResult(Struct, frozen=True):
    """A document by its ``index`` in the request. ``relevance_score`` is between 0 and 1."""

    index: int
    relevance_score: float
    document: RankedText | UnsetType = UNSET


class RerankTokens(Struct, frozen=True):
    input_tokens: int


class RerankMeta(Struct, frozen=True):
    """``usage`` as Cohere names it."""

    tokens: RerankTokens


class RerankReply(Struct, frozen=True, kw_only=True):
    """The results, best first."""

    id: str
    object: Literal["list"] = "list"
    model: str
    results: list[RerankResult]
    usage: EmbeddingUsage
    meta: RerankMeta


async def rerank(request: ApiRequest, body: RerankRequest) -> RerankReply:
    """Documents by how well they answer a query. Loads the reranker if necessary."""
    services = request.services
    check_other_model(services, body.model, "rerank")
    texts = body.texts
    call = RerankCall(
        body.query,
        texts,
        max_tokens=body.max_tokens_per_doc,
        owner=request.owner,
        keep_alive=parse_keep_alive(body.keep_alive),
        request_id=request.id,
    )
    made = await logged_rerank(request, call, body.user)
    best = sorted(range(len(texts)), key=lambda index: -made.scores[index])[: body.top_n]
    total = sum(made.tokens)
    return RerankReply(
        id=request.id,
        model=services.reranker.name or body.model,
        results=[
            RerankResult(
                index, made.scores[index], RankedText(texts[index]) if body.return_documents else UNSET
            )
            for index in best
        ],
        usage=EmbeddingUsage(total, total),
        meta=RerankMeta(RerankTokens(total)),
    )


ENDPOINTS = (
    Endpoint("POST", "/v1/embeddings", embeddings, EmbeddingsRequest, EmbeddingsReply),
    *(
        Endpoint("POST", path, rerank, RerankRequest, RerankReply)
        for path in ("/v1/rerank", "/v2/rerank", "/rerank")
    ),
)
