"""Prometheus metrics: one registry per application, and an Inference that measures its generations."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gateway.base.supervised import TaskHealth
from gateway.inference.embedding import Embeddings
from gateway.inference.interface import (
    GenerateCall,
    GenerationEvent,
    HostHealth,
    HostState,
    Inference,
)
from gateway.vectors.indexer import IndexHealth
from model_host.protocol import Delta, Finished, Lane, Thought, ToolDelta

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"})
_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_FIRST_TOKEN_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_INTER_TOKEN_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)


class Metrics:
    """The metrics of one application. Durations are in seconds."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = self._counter("http_requests", "HTTP requests by route and status", labels)
        self._seconds = self._histogram(
            "http_request_seconds",
            "Time from the head of a request to the end of its reply",
            _REQUEST_SECONDS,
            ["route"],
        )
        self.first_token = self._histogram(
            "time_to_first_token_seconds",
            "Time from a generation's call to its first text, queue and model start included",
            _FIRST_TOKEN_SECONDS,
        )
        self.inter_token = self._histogram(
            "inter_token_latency_seconds", "Time between the tokens of a generation", _INTER_TOKEN_SECONDS
        )
        self.prompt_tokens = self._counter("prompt_tokens", "Prompt tokens, cached ones included")
        self.cached_tokens = self._counter("cached_prompt_tokens", "Prompt tokens found in the KV cache")
        self.generation_tokens = self._counter("generation_tokens", "Generated tokens")
        self._embedding_texts = self._counter("embedding_texts", "Embedded texts")
        self._embedding_tokens = self._counter("embedding_tokens", "Tokens of embedded texts")
        self.records_failed = self._counter(
            "request_records_failed", "Records that could not be written to the request log"
        )
        self._embedding_seconds = self._histogram(
            "embedding_seconds",
            "Time from the call to the vectors, queue and model start included, by lane",
            _REQUEST_SECONDS,
            ["lane"],
        )

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, buckets: Sequence[float], labels: Sequence[str] = ()
    ) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)

    def request_done(self, route: str, method: str, status: int | None, seconds: float) -> None:
        """Count a request. ``status`` is None if the request ended before its reply began."""
        known = method if method in _METHODS else "other"  # clients can invent any number of names
        self._requests.labels(route, known, str(status or "none")).inc()
        self._seconds.labels(route).observe(seconds)

    def embedded(self, lane: Lane, seconds: float, made: Embeddings) -> None:
        """Count a successful call of the embedding model."""
        self._embedding_seconds.labels(lane).observe(seconds)
        self._embedding_texts.inc(len(made.vectors))
        self._embedding_tokens.inc(sum(made.tokens))

    def scrape(self, read: Callable[[], Iterable[Metric]]) -> None:
        """Report what ``read`` returns at each scrape."""
        self.registry.register(_Scraped(read))

    def render(self) -> bytes:
        """The text exposition format."""
        return generate_latest(self.registry)


class _Scraped(Collector):
    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        return self._read()


def model_host(health: HostHealth) -> Iterable[Metric]:
    """Describe the model host, its queue and its upstream servers."""
    size = health.stats.get("kv_size", 0)
    used = health.stats.get("kv_used", 0) / size if size and health.state == "ready" else 0.0
    yield _gauge("num_requests_running", "Requests in the batch", health.running)
    yield _gauge("num_requests_waiting", "Requests waiting for a slot in the batch", health.waiting)
    yield _gauge("kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1", used)
    for what in ("saved", "restored"):
        value = health.stats.get(f"snapshots_{what}", 0)
        yield CounterMetricFamily(f"kv_snapshots_{what}", f"KV sequences {what} by this host", value=value)
    yield from life("model_host", health)
    ready = GaugeMetricFamily("upstream_ready", "1 while an upstream server is used", labels=["url"])
    for each in health.replicas:
        ready.add_metric([each.url], float(each.state == "ready"))
    yield ready


def tasks(found: Sequence[TaskHealth]) -> Iterable[Metric]:
    """Count the failures of each background task."""
    restarts = CounterMetricFamily(
        "background_task_restarts", "Failures of a background task", labels=["task"]
    )
    for task in found:
        restarts.add_metric([task.name], task.restarts)
    yield restarts


def embedding(host: HostHealth | None, index: IndexHealth) -> Iterable[Metric]:
    """Describe the embedding host, and the progress of the index."""
    yield from life("embedding_host", host)
    for name, text in (
        ("total", "Documents to be embedded"),
        ("done", "Of these, done"),
        ("failed", "Of these, without vectors"),
    ):
        family = GaugeMetricFamily(f"indexed_documents_{name}", text, labels=["kind"])
        for kind, count in index.counts.items():
            family.add_metric([kind], getattr(count, name))
        yield family


def life(name: str, health: HostHealth | None) -> Iterable[Metric]:
    """Describe the state, memory and restarts of a host, if there is one."""
    if health is None:
        return
    yield _gauge(f"{name}_resident_memory_bytes", "Resident memory", health.rss_bytes or 0)
    states = GaugeMetricFamily(f"{name}_state", "1 for the current state", labels=["state"])
    for state in get_args(HostState):
        states.add_metric([state], float(state == health.state))
    yield states
    yield CounterMetricFamily(
        f"{name}_restarts", "Crashes, hangs and kills of the host", value=health.restarts
    )


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


class MeteredInference:
    """An Inference whose generations are measured; all other methods are those of ``inner``."""

    def __init__(self, inner: Inference, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics
        self.count = inner.count
        self.count_prompt = inner.count_prompt
        self.tokenize = inner.tokenize
        self.detokenize = inner.detokenize
        self.token_bytes = inner.token_bytes
        self.model_info = inner.model_info
        self.health = inner.health
        self.check = inner.check
        self.refresh_stats = inner.refresh_stats
        self.forget = inner.forget
        self.warm = inner.warm
        self.unload = inner.unload
        self.close = inner.close

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        metrics = self._metrics
        begun = last = time.monotonic()
        first = True
        async with aclosing(self._inner.generate(call)) as events:
            async for event in events:
                if isinstance(event, Delta | Thought | ToolDelta):
                    now = time.monotonic()
                    if first:
                        metrics.first_token.observe(now - begun)
                    elif isinstance(event, Delta | Thought) and event.tokens:
                        metrics.inter_token.observe((now - last) / event.tokens)
                    first, last = False, now
                elif isinstance(event, Finished):
                    metrics.prompt_tokens.inc(event.prompt_tokens)
                    metrics.cached_tokens.inc(event.cached_tokens)
                    metrics.generation_tokens.inc(event.completion_tokens)
                yield event
