"""The interfaces of an embedding model, texts in and vectors out, and of a reranker."""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.inference.interface import HostHealth, KeepAlive
from gateway.models.catalog import ResolvedModel
from model_host.protocol import Lane

# For models trained with task prompts, queries and documents get the catalog's prompt; "plain" text gets none.
TextKind = Literal["plain", "query", "document"]

_OUTLINED = 6  # values of a vector in the request log


class Embeddings(Struct, frozen=True):
    """Vectors of length 1 in the order of their texts: little-endian float32, as in sqlite-vec and OpenAI's base64.

    ``tokens`` has the count of each text, control tokens included. ``space`` identifies weights, dimensions and task
    prompts: only vectors of one space can be compared.
    """

    vectors: list[bytes]
    tokens: list[int]
    space: str

    def floats(self) -> list[list[float]]:
        return [to_floats(vector) for vector in self.vectors]


class EmbedCall(Struct, frozen=True):
    """Texts to embed, any number of them. Token IDs are embedded as they are.

    Documents may have ``titles``, one per text, "" for none. ``dimensions`` truncates the vectors and normalizes them
    again, for models with Matryoshka training.
    """

    texts: Sequence[str | list[int]]
    kind: TextKind = "plain"
    titles: Sequence[str] = ()
    owner: str = ""
    lane: Lane = "interactive"
    dimensions: int | None = None
    keep_alive: KeepAlive = None
    request_id: str = "embed"


class OptionalHost:
    """The host of an optional model. These methods are those of an installation without it; a host overrides all."""

    name: str | None = None  # of the configured model
    model: ResolvedModel | None = None

    @property
    def loaded(self) -> Sequence[ResolvedModel]:
        """The models that the host has in memory."""
        return ()

    def health(self) -> HostHealth | None:
        """Return the host's state without starting it; None without a configured model."""
        return None

    async def check(self) -> None:
        """As :meth:`gateway.inference.interface.Inference.check`."""

    async def refresh_stats(self) -> None:
        """Ask a running host for its counters. Does not count as use."""

    async def warm(self) -> None:
        """Start the host and wait until it is ready."""

    async def unload(self) -> None:
        """Stop the host once its open requests have ended."""

    async def close(self) -> None:
        """Stop the host now."""


class Embedder(OptionalHost):
    """An embedding model; an instance of this class itself stands for none. Errors are HearthError subclasses."""

    @property
    def identity(self) -> str:
        """Changes whenever vectors may change. Reads the model file's metadata; does not start the host."""
        return ""

    async def embed(self, call: EmbedCall) -> Embeddings:
        """Embed the texts; starts the host when needed. Cancelling the caller cancels the work.

        Raises PromptTooLongError (``details`` has ``index``, ``tokens`` and ``limit``), InvalidRequestError
        (``dimensions``, an empty text), ModelUnavailableError, OverloadedError, and NotFoundError without a configured
        model.
        """
        raise NotFoundError(
            "no embedding model is configured: run `hearth pull embeddinggemma`, set `embedding.model` to "
            "embeddinggemma, and start again",
            code="embedding_not_configured",
            param="model",
        )


class Scores(Struct, frozen=True):
    """The score (0 to 1) and tokens of each document in order; the query's tokens are included."""

    scores: list[float]
    tokens: list[int]


class RerankCall(Struct, frozen=True):
    """Documents to score by how well they answer the query. Only the first ``max_tokens`` of each one are read."""

    query: str
    documents: Sequence[str]
    max_tokens: int | None = None
    owner: str = ""
    lane: Lane = "interactive"
    keep_alive: KeepAlive = None
    request_id: str = "rerank"


class Reranker(OptionalHost):
    """A reranker; an instance of this class itself stands for none."""

    async def rerank(self, call: RerankCall) -> Scores:
        """Score the documents; starts the host when needed. Cancelling the caller cancels the work.

        Raises PromptTooLongError (``details`` has ``index``, ``tokens`` and ``limit``), ModelUnavailableError,
        OverloadedError, and NotFoundError without a configured reranker.
        """
        raise NotFoundError(
            "no reranker is configured, and an embedding model cannot replace one: run `hearth pull "
            "bge-reranker-v2-m3`, set `rerank.model` to bge-reranker-v2-m3, and start again",
            code="rerank_not_configured",
            param="model",
        )


def outline(vectors: Sequence[Sequence[float]]) -> str:
    """Describe vectors for the request log, one per line. The last digit may differ between runs due to batching."""
    return "\n".join(
        f"{len(vector)} numbers: {' '.join(f'{number:.2f}' for number in vector[:_OUTLINED])} …"
        for vector in vectors
    )


def to_floats(vector: bytes) -> list[float]:
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def outline_scores(scores: Sequence[float]) -> str:
    """Describe scores for the request log, one per line."""
    return "\n".join(f"{score:.3f}" for score in scores)
