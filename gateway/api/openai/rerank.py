"""POST /v1/rerank: documents by how well they answer a query, as Cohere's and Jina's clients ask for it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.api.http.endpoint import Endpoint
from gateway.api.openai.embeddings import EmbeddingUsage
from gateway.api.openai.models import DEFAULT, check_other_model
from gateway.api.parsing.fields import Body, User, invalid, parse_keep_alive
from gateway.api.recording.requests import logged_rerank
from gateway.api.services import ApiRequest
from gateway.inference.embedding import RerankCall

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


ENDPOINTS = tuple(
    Endpoint("POST", path, rerank, RerankRequest, RerankReply)
    for path in ("/v1/rerank", "/v2/rerank", "/rerank")
)
