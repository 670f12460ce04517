"""Prometheus metrics: one registry per application, and an Inference that measures what passes through it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import cast, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.base.supervised import TaskHealth
from gateway.inference.embedding import Embedder, Embeddings, TextKind
from gateway.inference.interface import (
    GenerateCall,
    GenerationEvent,
    HostHealth,
    HostState,
    Inference,
    KeepAlive,
    ModelInfo,
)
from gateway.models.catalog import ResolvedModel
from gateway.vectors.indexer import IndexHealth
from model_host.protocol import Delta, Finished, Lane, Message, Tool, ToolDelta

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"})
_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_FIRST_TOKEN_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_INTER_TOKEN_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)


class Metrics:
    """The metrics of one application. Seconds everywhere."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "http_requests",
            "HTTP requests by route and status",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "http_request_seconds",
            "Time from a request's head to the end of its reply",
            ["route"],
            buckets=_REQUEST_SECONDS,
            registry=self.registry,
        )
        self.first_token = Histogram(
            "time_to_first_token_seconds",
            "Time from a generation's call to its first text, queue and model start included",
            buckets=_FIRST_TOKEN_SECONDS,
            registry=self.registry,
        )
        self.inter_token = Histogram(
            "inter_token_latency_seconds",
            "Time between the tokens of a generation",
            buckets=_INTER_TOKEN_SECONDS,
            registry=self.registry,
        )
        self.prompt_tokens = self._counter("prompt_tokens", "Prompt tokens, cached ones included")
        self.cached_tokens = self._counter("cached_prompt_tokens", "Prompt tokens found in the KV cache")
        self.generation_tokens = self._counter("generation_tokens", "Generated tokens")
        self.embedding_texts = self._counter("embedding_texts", "Texts that got a vector")
        self.embedding_tokens = self._counter("embedding_tokens", "Tokens of these texts")
        self.records_failed = self._counter(
            "request_records_failed", "Records that could not be written to the request log"
        )
        self.embedding_seconds = Histogram(
            "embedding_seconds",
            "Time from the call to the vectors, queue and model start included, by lane",
            ["lane"],
            buckets=_REQUEST_SECONDS,
            registry=self.registry,
        )

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(name, text, registry=self.registry)

    def request_done(self, route: str, method: str, status: int | None, seconds: float) -> None:
        """Count a request. ``status`` None: it ended before a reply began."""
        known = method if method in _METHODS else "other"  # a client can make up any number of names
        self._requests.labels(route, known, str(status or "none")).inc()
        self._seconds.labels(route).observe(seconds)

    def watch(self, health: Callable[[], HostHealth]) -> None:
        """Report the model host's state, read anew at each scrape."""
        self.registry.register(_HostCollector(health))

    def watch_embedding(
        self, host: Callable[[], HostHealth | None], index: Callable[[], IndexHealth]
    ) -> None:
        """Report the embedding host's state, and how many documents have their vectors."""
        self.registry.register(_EmbeddingCollector(host, index))

    def watch_tasks(self, health: Callable[[], Sequence[TaskHealth]]) -> None:
        """Report how often the tasks that live as long as the server have failed."""
        self.registry.register(_TaskCollector(health))

    def render(self) -> bytes:
        """The text exposition format."""
        return generate_latest(self.registry)


class _HostCollector(Collector):
    def __init__(self, health: Callable[[], HostHealth]) -> None:
        self._health = health

    def collect(self) -> Iterable[Metric]:
        health = self._health()
        size = health.stats.get("kv_size", 0)
        used = health.stats.get("kv_used", 0) / size if size and health.state == "ready" else 0.0
        yield _gauge("num_requests_running", "Requests in the batch", health.running)
        yield _gauge("num_requests_waiting", "Requests waiting for a place in the batch", health.waiting)
        yield _gauge("kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1", used)
        for what in ("saved", "restored"):
            value = health.stats.get(f"snapshots_{what}", 0)
            yield CounterMetricFamily(
                f"kv_snapshots_{what}", f"KV sequences {what} by this host", value=value
            )
        yield _gauge("model_host_resident_memory_bytes", "Resident memory", health.rss_bytes or 0)
        yield from _life("model_host", health)


class _TaskCollector(Collector):
    def __init__(self, health: Callable[[], Sequence[TaskHealth]]) -> None:
        self._health = health

    def collect(self) -> Iterable[Metric]:
        restarts = CounterMetricFamily(
            "background_task_restarts", "Failures of a background task", labels=["task"]
        )
        for task in self._health():
            restarts.add_metric([task.name], task.restarts)
        yield restarts


class _EmbeddingCollector(Collector):
    def __init__(self, host: Callable[[], HostHealth | None], index: Callable[[], IndexHealth]) -> None:
        self._host = host
        self._index = index

    def collect(self) -> Iterable[Metric]:
        health = self._host()
        if health is not None:
            yield _gauge("embedding_host_resident_memory_bytes", "Resident memory", health.rss_bytes or 0)
            yield from _life("embedding_host", health)
        families = {
            "total": GaugeMetricFamily(
                "indexed_documents_total", "Documents to be embedded", labels=["kind"]
            ),
            "done": GaugeMetricFamily("indexed_documents_done", "Of these, done", labels=["kind"]),
            "failed": GaugeMetricFamily(
                "indexed_documents_failed", "Of these, without vectors", labels=["kind"]
            ),
        }
        for kind, count in self._index().counts.items():
            for name, family in families.items():
                family.add_metric([kind], getattr(count, name))
        yield from families.values()


def _life(name: str, health: HostHealth) -> Iterable[Metric]:
    states = GaugeMetricFamily(f"{name}_state", "1 for the present state", labels=["state"])
    for state in get_args(HostState):
        states.add_metric([state], float(state == health.state))
    yield states
    yield CounterMetricFamily(
        f"{name}_restarts", "Crashes, hangs and kills of the host", value=health.restarts
    )


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


class MeteredInference:
    """An Inference that measures every generation, whichever flow asked for it."""

    def __init__(self, inner: Inference, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        begun = last = time.monotonic()
        first = True
        # The interface promises an iterator that can be closed; closing it is what cancels the generation.
        source = cast("AsyncGenerator[GenerationEvent, None]", self._inner.generate(call))
        async with aclosing(source) as events:
            async for event in events:
                if isinstance(event, Delta | ToolDelta):
                    now = time.monotonic()
                    if first:
                        self._metrics.first_token.observe(now - begun)
                    elif isinstance(event, Delta) and event.tokens:
                        self._metrics.inter_token.observe((now - last) / event.tokens)
                    first, last = False, now
                elif isinstance(event, Finished):
                    self._count(event)
                yield event

    def _count(self, event: Finished) -> None:
        self._metrics.prompt_tokens.inc(event.prompt_tokens)
        self._metrics.cached_tokens.inc(event.cached_tokens)
        self._metrics.generation_tokens.inc(event.completion_tokens)

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        return await self._inner.count(texts, keep_alive=keep_alive)

    async def count_prompt(
        self, messages: list[Message], *, tools: Sequence[Tool] = (), keep_alive: KeepAlive = None
    ) -> int:
        return await self._inner.count_prompt(messages, tools=tools, keep_alive=keep_alive)

    async def tokenize(self, text: str, *, keep_alive: KeepAlive = None) -> list[int]:
        return await self._inner.tokenize(text, keep_alive=keep_alive)

    async def detokenize(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> str:
        return await self._inner.detokenize(tokens, keep_alive=keep_alive)

    async def token_bytes(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> list[bytes]:
        return await self._inner.token_bytes(tokens, keep_alive=keep_alive)

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        return await self._inner.model_info(keep_alive=keep_alive)

    def health(self) -> HostHealth:
        return self._inner.health()

    async def check(self) -> None:
        await self._inner.check()

    async def refresh_stats(self) -> None:
        await self._inner.refresh_stats()

    async def forget(self, owner: str) -> None:
        await self._inner.forget(owner)

    async def warm(self) -> None:
        await self._inner.warm()

    async def unload(self) -> None:
        await self._inner.unload()

    async def close(self) -> None:
        await self._inner.close()


class MeteredEmbedder:
    """An Embedder that measures what passes through it."""

    def __init__(self, inner: Embedder, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    @property
    def name(self) -> str | None:
        return self._inner.name

    @property
    def model(self) -> ResolvedModel | None:
        return self._inner.model

    @property
    def loaded(self) -> Sequence[ResolvedModel]:
        return self._inner.loaded

    @property
    def identity(self) -> str:
        return self._inner.identity

    async def embed(
        self,
        texts: Sequence[str | list[int]],
        *,
        kind: TextKind = "plain",
        titles: Sequence[str] = (),
        owner: str = "",
        lane: Lane = "interactive",
        dimensions: int | None = None,
        keep_alive: KeepAlive = None,
        request_id: str = "embed",
    ) -> Embeddings:
        begun = time.monotonic()
        made = await self._inner.embed(
            texts,
            kind=kind,
            titles=titles,
            owner=owner,
            lane=lane,
            dimensions=dimensions,
            keep_alive=keep_alive,
            request_id=request_id,
        )
        self._metrics.embedding_seconds.labels(lane).observe(time.monotonic() - begun)
        self._metrics.embedding_texts.inc(len(made.vectors))
        self._metrics.embedding_tokens.inc(sum(made.tokens))
        return made

    def health(self) -> HostHealth | None:
        return self._inner.health()

    async def check(self) -> None:
        await self._inner.check()

    async def refresh_stats(self) -> None:
        await self._inner.refresh_stats()

    async def warm(self) -> None:
        await self._inner.warm()

    async def unload(self) -> None:
        await self._inner.unload()

    async def close(self) -> None:
        await self._inner.close()
