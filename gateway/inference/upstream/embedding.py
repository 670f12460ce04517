"""Embeddings and scores from upstream servers."""

from __future__ import annotations

import array
import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from itertools import groupby
from typing import Any, TypeVar

from msgspec import Struct

from gateway.config.settings import Settings
from gateway.inference.counts import batches
from gateway.inference.embedder import OnEmbedded, digest, logistic, prompted
from gateway.inference.embedding import (
    EmbedCall,
    Embedder,
    Embeddings,
    OptionalHost,
    RerankCall,
    Reranker,
    Scores,
)
from gateway.inference.interface import HostHealth
from gateway.inference.upstream.abilities import listed_model
from gateway.inference.upstream.connection import Connection, malformed
from gateway.inference.upstream.replicas import OnReplicas, Replicas
from gateway.models.catalog import ResolvedModel, TaskPrompts, upstream_model
from model_host.protocol import Lane

T = TypeVar("T")

_TEXTS = 64  # of one request
_TOKEN_CHARACTERS = 4  # where a server cannot cut documents off by tokens


class VectorAbilities(Struct, frozen=True, kw_only=True):
    """Description of a server of vectors or scores; ``dimensions`` of its vectors, 1 for scores."""

    program: str
    dimensions: int


class _Remote(OnReplicas[VectorAbilities], OptionalHost):
    """Requests to servers of one kind; the base of both."""

    def __init__(self, settings: Settings, urls: list[str], model: ResolvedModel) -> None:
        upstream = settings.upstream
        self._replicas = Replicas[VectorAbilities](urls, upstream.key, upstream.silence_seconds, self._probe)
        self._background = asyncio.Semaphore(upstream.background * len(urls))
        self._replicas.start()
        self.model = model
        self._name = self.name = model.name

    def health(self) -> HostHealth:
        return self._replicas.health()

    async def _probe(self, server: Connection) -> VectorAbilities:
        listed = await listed_model(server, self._name)
        dimensions = await self._dimensions(server)
        return VectorAbilities(program=str(listed.get("owned_by") or ""), dimensions=dimensions)

    async def _dimensions(self, server: Connection) -> int:
        raise NotImplementedError

    async def _ask(
        self, lane: Lane, ask: Callable[[Connection, VectorAbilities], Awaitable[T]]
    ) -> tuple[T, VectorAbilities]:
        async with self._background if lane == "background" else nullcontext():
            return await self._replicas.ask(ask)


class UpstreamEmbedder(_Remote, Embedder):
    """:class:`Embedder` on the servers of ``upstream.embedding_urls``."""

    def __init__(self, settings: Settings, on_embedded: OnEmbedded = lambda *_: None) -> None:
        section = settings.embedding
        model = upstream_model(section.model, "embedding", section.context, section.dimensions)
        super().__init__(settings, settings.upstream.embedding_urls, model)
        self._prompts: TaskPrompts = model.prompts
        self._on_embedded = on_embedded

    @property
    def identity(self) -> str:
        return digest(f"upstream\0{self.name}\0{self.model and self.model.dimensions}\0{self._prompts}")

    async def embed(self, call: EmbedCall) -> Embeddings:
        """See :meth:`Embedder.embed`. Servers report tokens by request, of which each text gets an even share."""
        started = time.monotonic()
        vectors: list[bytes] = []
        tokens: list[int] = []
        width = 0
        for _, alike in groupby(prompted(self._prompts, call), type):  # a request has either texts or tokens
            for batch in batches(list(alike), _TEXTS):

                async def ask(server: Connection, _: VectorAbilities, batch: Any = batch) -> tuple[Any, int]:
                    return await _vectors(server, self._name, batch)

                (made, used), able = await self._ask(call.lane, ask)
                width = call.dimensions or able.dimensions
                vectors += [_scaled(vector[:width]) for vector in made]
                tokens += [used // len(made) + (number < used % len(made)) for number in range(len(made))]
        space = f"{digest(f'upstream{self.name}')}:{width}:{digest(str(self._prompts))[:8]}"
        found = Embeddings(vectors, tokens, space)
        self._on_embedded(call.lane, time.monotonic() - started, found)
        return found

    async def _dimensions(self, server: Connection) -> int:
        (vector,), _ = await _vectors(server, self._name, ["hello"])
        return len(vector)


class UpstreamReranker(_Remote, Reranker):
    """:class:`Reranker` on the servers of ``upstream.rerank_urls``."""

    def __init__(self, settings: Settings) -> None:
        model = upstream_model(settings.rerank.model, "rerank", settings.rerank.context)
        super().__init__(settings, settings.upstream.rerank_urls, model)

    async def rerank(self, call: RerankCall) -> Scores:
        """See :meth:`Reranker.rerank`. Other servers than hearth get ``max_tokens`` times four characters."""
        most = call.max_tokens

        async def ask(server: Connection, able: VectorAbilities) -> tuple[list[float], int]:
            sent = list(call.documents)
            body: dict[str, Any] = {"model": self.name, "query": call.query}
            if most is not None and able.program == "hearth":
                body["max_tokens_per_doc"] = most
            elif most is not None:
                sent = [text[: _TOKEN_CHARACTERS * most] for text in sent]
            reply = await server.post("/v1/rerank", body | {"documents": sent})
            scores = {int(each["index"]): float(each["relevance_score"]) for each in reply["results"]}
            used = int((reply.get("usage") or {}).get("total_tokens") or 0)
            ranked = [scores[index] for index in range(len(call.documents))]
            return [logistic(score) for score in ranked] if able.program == "llamacpp" else ranked, used

        (scores, used), _ = await self._ask(call.lane, ask)
        count = len(scores)
        return Scores(scores, [used // count + (number < used % count) for number in range(count)])

    async def _dimensions(self, server: Connection) -> int:
        body = {"model": self.name, "query": "hello", "documents": ["hello"]}
        float((await server.post("/v1/rerank", body))["results"][0]["relevance_score"])
        return 1


async def _vectors(server: Connection, model: str, inputs: list[Any]) -> tuple[list[list[float]], int]:
    body = {"model": model, "input": inputs, "encoding_format": "float"}
    reply = await server.post("/v1/embeddings", body)
    found = sorted(reply["data"], key=lambda each: int(each["index"]))
    if len(found) != len(inputs):
        raise malformed(server.url)
    used = (reply.get("usage") or {}).get("prompt_tokens")
    return [[float(number) for number in each["embedding"]] for each in found], int(used or 0)


def _scaled(vector: list[float]) -> bytes:
    """The vector with length 1, as little-endian float32."""
    length = math.hypot(*vector) or 1.0
    numbers = array.array("f", [number / length for number in vector])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
