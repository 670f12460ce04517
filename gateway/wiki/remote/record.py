"""How the requests to a wiki's API went, for operators: counted here, read by `/admin/health` and `/metrics`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from gateway.wiki.remote.page_cache import PageCache
from gateway.wiki.remote.trouble import TroubleKind, WikiReplyError, WikiUnavailableError

_KINDS: tuple[TroubleKind, ...] = get_args(TroubleKind)


class Record:
    """How the requests went; trying again is part of a request. A page that does not exist is no failure."""

    def __init__(self) -> None:
        self.requests = 0
        self.seconds = 0.0  # that requests took together
        self.failures: Counter[TroubleKind] = Counter()
        self.retries: Counter[TroubleKind] = Counter()
        self.problem: str | None = None  # of the last one
        self._replied_at: float | None = None

    def add(self, seconds: float, error: WikiUnavailableError | WikiReplyError | None = None) -> None:
        """A request has ended, well when there is no error."""
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
        """Seconds since a request ended well."""
        return None if self._replied_at is None else time.monotonic() - self._replied_at


class WikiCollector(Collector):
    """The record and the page cache as Prometheus metrics. ``paused`` tells the seconds that the wiki asked to wait."""

    def __init__(self, record: Record, cache: PageCache | None, paused: Callable[[], float]) -> None:
        self._record = record
        self._cache = cache
        self._paused = paused

    def collect(self) -> Iterable[Metric]:
        """Values of this moment. Asks nobody."""
        record = self._record
        yield SummaryMetricFamily(
            "wiki_request_seconds",
            "Requests to the wiki's API, and their time, waiting and trying again included",
            count_value=record.requests,
            sum_value=record.seconds,
        )
        yield _by_kind("wiki_errors", "Requests that failed in spite of trying again", record.failures)
        yield _by_kind("wiki_retries", "Times that a request was tried again", record.retries)
        yield GaugeMetricFamily(
            "wiki_paused_seconds", "For which the wiki asked to be left alone", value=self._paused()
        )
        if (cache := self._cache) is not None:
            yield CounterMetricFamily(
                "wiki_cache_hits", "Pages that were not fetched again", value=cache.hits
            )
            yield CounterMetricFamily("wiki_cache_misses", "Pages that were fetched", value=cache.misses)
            yield GaugeMetricFamily("wiki_cached_pages", "Fetched pages that are kept", value=cache.pages)
            yield GaugeMetricFamily("wiki_cached_bytes", "Their size", value=cache.bytes)


def _by_kind(name: str, text: str, counts: Counter[TroubleKind]) -> Metric:
    family = CounterMetricFamily(name, text, labels=["kind"])
    for kind in _KINDS:
        family.add_metric([kind], counts[kind])
    return family
