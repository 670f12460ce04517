"""Rerankers: their interface, and the local host."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from msgspec import Struct

from gateway.base.errors import NotFoundError, PromptTooLongError
from gateway.config.settings import ModelSettings
from gateway.inference.client import HostClient, wrong_reply
from gateway.inference.counts import batches
from gateway.inference.embedding import OptionalHost
from gateway.inference.interface import KeepAlive
from gateway.models.catalog import ResolvedModel
from model_host.protocol import MAX_TEXTS, Embed, Embedded, Lane


class Scores(Struct, frozen=True):
    """The score (0 to 1) and tokens of each document in order; the query's tokens are included."""

    scores: list[float]
    tokens: list[int]


class Reranker(OptionalHost):
    """A reranker; an instance of this class itself stands for none."""

    async def rerank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        max_tokens: int | None = None,
        owner: str = "",
        lane: Lane = "interactive",
        keep_alive: KeepAlive = None,
        request_id: str = "rerank",
    ) -> Scores:
        """Score documents by how well they answer the query; starts the host when needed.

        Only the first ``max_tokens`` of each document are read. Cancelling the caller cancels the work. Raises
        PromptTooLongError (``details`` has ``index``, ``tokens`` and ``limit``), ModelUnavailableError,
        OverloadedError, and NotFoundError without a configured reranker.
        """
        raise NotFoundError(
            "no reranker is configured, and an embedding model cannot replace one: run `hearth pull "
            "bge-reranker-v2-m3`, set `rerank.model` to bge-reranker-v2-m3, and start again",
            code="rerank_not_configured",
            param="model",
        )


class HostReranker(HostClient, Reranker):
    """:class:`Reranker` on a model host with a cross encoder. ``resolve`` is called again at each start."""

    def __init__(
        self,
        resolve: Callable[[], ResolvedModel],
        settings: ModelSettings,
        *,
        beside: Callable[[], Sequence[ResolvedModel]] = tuple,
    ) -> None:
        super().__init__(resolve, settings, beside=beside)
        self.model = resolve()
        self.name = self.model.name

    async def rerank(
        self,
        query: str,
        documents: Sequence[str],
        *,
        max_tokens: int | None = None,
        owner: str = "",
        lane: Lane = "interactive",
        keep_alive: KeepAlive = None,
        request_id: str = "rerank",
    ) -> Scores:
        scores: list[float] = []
        tokens: list[int] = []
        with self._idle.begin(keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            for batch in batches(documents, MAX_TEXTS):
                message = Embed(
                    id=self.wire_id(request_id),
                    texts=batch,
                    query=query,
                    max_tokens=max_tokens,
                    lane=lane,
                    owner=owner,
                )
                try:
                    answer = await self.answer(link, message, Embedded, use)
                except PromptTooLongError as error:
                    raise _too_long(error, len(scores)) from None
                if len(answer.embeddings) != len(batch):
                    raise wrong_reply(answer)
                scores += [
                    logistic(number) for each in answer.embeddings for number in struct.unpack("<f", each)
                ]
                tokens += answer.tokens
        return Scores(scores, tokens)


def outline_scores(scores: Sequence[float]) -> str:
    """Describe scores for the request log, one per line."""
    return "\n".join(f"{score:.3f}" for score in scores)


def _too_long(error: PromptTooLongError, first: int) -> PromptTooLongError:
    """Make the caller's error; ``first`` is the index of the batch's first document."""
    index = int(error.details.get("index", 0)) + first
    return PromptTooLongError(
        f"`documents[{index}]` and `query` have {error.details.get('tokens')} tokens; the reranker takes "
        f"{error.details.get('limit')}: send shorter ones, or set `max_tokens_per_doc`",
        param=f"documents[{index}]",
        details={**error.details, "index": index},
    )


def logistic(number: float) -> float:
    """The logistic function, in a form that does not overflow."""
    return 0.5 * (1.0 + math.tanh(number / 2.0))
