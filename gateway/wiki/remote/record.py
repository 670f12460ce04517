"""Statistics of the requests to a wiki's API, for `/admin/health` and `/metrics`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from gateway.wiki.remote.page_cache import PageCache
from gateway.wiki.remote.trouble import TroubleKind, WikiReplyError, WikiUnavailableError

_KINDS: tuple[TroubleKind, ...] = get_args(TroubleKind)


class Record:
    """A request with its retries counts once. A missing page is not a failure."""

    def __init__(self) -> None:
        self.requests = 0
        self.seconds = 0.0  # sum over all requests
        self.failures: Counter[TroubleKind] = Counter()
        self.retries: Counter[TroubleKind] = Counter()
        self.problem: str | None = None  # of the last request
        self._replied_at: float | None = None

    def add(self, seconds: float, error: WikiUnavailableError | WikiReplyError | None = None) -> None:
        self.requests += 1
        self.seconds += seconds
        self.problem = None
        if error is not None:
            self.failures[error.kind] += 1
            self.problem = error.message
        else:
            self._replied_at = time.monotonic()

    @property
    def last_reply_seconds(self) -> float | None:
        return None if self._replied_at is None else time.monotonic() - self._replied_at


def wiki_metrics(record: Record, cache: PageCache | None, paused: float) -> Iterable[Metric]:
    """The record and the page cache as Prometheus metrics. ``paused`` are the seconds until the pause ends."""
    yield SummaryMetricFamily(
        "wiki_request_seconds",
        "Requests to the wiki's API and their duration, waits and retries included",
        count_value=record.requests,
        sum_value=record.seconds,
    )
    yield _by_kind("wiki_errors", "Requests that failed after all retries", record.failures)
    yield _by_kind("wiki_retries", "Retries", record.retries)
    yield GaugeMetricFamily("wiki_paused_seconds", "Time until the wiki accepts requests again", value=paused)
    if cache is not None:
        yield CounterMetricFamily("wiki_cache_hits", "Fetches served from the cache", value=cache.hits)
        yield CounterMetricFamily("wiki_cache_misses", "Fetches from the wiki", value=cache.misses)
        yield GaugeMetricFamily("wiki_cached_pages", "Pages in the cache", value=cache.pages)
        yield GaugeMetricFamily("wiki_cached_bytes", "Size of the cache", value=cache.bytes)


def _by_kind(name: str, text: str, counts: Counter[TroubleKind]) -> Metric:
    family = CounterMetricFamily(name, text, labels=["kind"])
    for kind in _KINDS:
        family.add_metric([kind], counts[kind])
    return family
