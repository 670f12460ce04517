"""Rerankers: their interface, and the local host."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.inference.counts import batches
from gateway.inference.embedder import VectorHost
from gateway.inference.embedding import OptionalHost
from gateway.inference.interface import KeepAlive
from model_host.protocol import MAX_TEXTS, Embed, Lane


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


class HostReranker(VectorHost, Reranker):
    """:class:`Reranker` on a model host with a cross encoder."""

    param = "documents[{index}]"
    too_long = (
        "`documents[{index}]` and `query` have {tokens} tokens; the reranker takes {limit}: send shorter ones, or set "
        "`max_tokens_per_doc`"
    )

    async def rerank(self, call: RerankCall) -> Scores:
        scores: list[float] = []
        tokens: list[int] = []
        with self._idle.begin(call.keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            for batch in batches(call.documents, MAX_TEXTS):
                message = Embed(
                    id=self.wire_id(call.request_id),
                    texts=batch,
                    query=call.query,
                    max_tokens=call.max_tokens,
                    lane=call.lane,
                    owner=call.owner,
                )
                answer = await self.embedded(link, message, len(scores), use)
                scores += [
                    logistic(number) for each in answer.embeddings for number in struct.unpack("<f", each)
                ]
                tokens += answer.tokens
        return Scores(scores, tokens)


def outline_scores(scores: Sequence[float]) -> str:
    """Describe scores for the request log, one per line."""
    return "\n".join(f"{score:.3f}" for score in scores)


def logistic(number: float) -> float:
    """The logistic function, in a form that does not overflow."""
    return 0.5 * (1.0 + math.tanh(number / 2.0))
