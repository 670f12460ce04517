"""The requests that hearth makes to a MediaWiki's ``api.php``, retried while the wiki is busy."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import get_args

import msgspec
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from gateway.base.errors import NotFoundError
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.client import Busy, WikiClient, WikiResponse
from gateway.wiki.remote.page_cache import PageCache
from gateway.wiki.remote.trouble import TroubleKind, WikiReplyError, WikiUnavailableError
from gateway.wiki.remote.values import Parsed, Problem, QueryReply, Reply

_LAG_SECONDS = 5.0  # the wait for a lagging wiki without a Retry-After header
_MAX_QUOTE = 200
# The last two are CirrusSearch's: its pool is full, or its servers do not answer.
_BUSY_CODES = frozenset(
    {"maxlag", "ratelimited", "readonly", "cirrussearch-too-busy-error", "cirrussearch-backend-error"}
)
_BUSY_PREFIX = "internal_api_error"
_MISSING_CODES = frozenset(
    {"missingtitle", "nosuchpageid", "nosuchrevid", "invalidtitle", "pagecannotexist", "missingcontent"}
)
_CLOSED_CODES = frozenset({"readapidenied", "permissiondenied", "blocked", "autoblocked"})


class ApiError(WikiReplyError):
    """The API refused a request. ``api_code`` is MediaWiki's."""

    def __init__(self, api_code: str, message: str) -> None:
        super().__init__(message, kind="refused")
        self.api_code = api_code


class Api:
    """One wiki's API. Every method raises WikiUnavailableError and WikiReplyError."""

    def __init__(self, settings: WikiSettings) -> None:
        self.client = WikiClient(settings)
        self.record = Record()
        self._common = {"format": "json", "formatversion": "2", "maxlag": str(settings.maxlag_seconds)}

    async def query(self, **parameters: str) -> QueryReply:
        """Pages with their revisions and addresses, redirects resolved."""
        reply = await self._ask(action="query", prop="info", inprop="url", redirects="1", **parameters)
        return reply.query

    async def suggestion(self, words: str, namespaces: str) -> str:
        """The search engine's "did you mean"; empty without one."""
        options = {"srnamespace": namespaces, "srlimit": "1", "srinfo": "suggestion", "srprop": ""}
        reply = await self._ask(action="query", list="search", srsearch=words, **options)
        return reply.query.searchinfo.suggestion

    async def parse(self, title: str) -> Parsed:
        """The page as HTML. Raises NotFoundError when there is none."""
        try:
            hidden = {"disableeditsection": "1", "disabletoc": "1", "disablelimitreport": "1"}
            reply = await self._ask(action="parse", page=title, redirects="1", prop="text|revid", **hidden)
        except ApiError as error:
            if error.api_code in _MISSING_CODES:
                raise NotFoundError(f"the wiki has no page `{title}`") from None
            raise
        if reply.parse is None:
            raise WikiReplyError("the wiki's reply has no text of the page")
        return reply.parse

    async def name(self) -> str:
        query = (await self._ask(action="query", meta="siteinfo", siprop="general")).query
        return query.general.sitename if query.general else ""

    async def site(self) -> tuple[str, int]:
        """The wiki's name with its software and version, and the number of its pages."""
        query = (await self._ask(action="query", meta="siteinfo", siprop="general|statistics")).query
        if query.general is None:
            raise WikiReplyError("the wiki's reply lacks its name and version")
        return f"{query.general.sitename} ({query.general.generator})", query.statistics.pages

    async def _ask(self, **parameters: str) -> Reply:
        started = time.monotonic()
        try:
            reply = await self._ask_until_served({**parameters, **self._common})
        except (WikiUnavailableError, WikiReplyError) as error:
            missing = isinstance(error, ApiError) and error.api_code in _MISSING_CODES
            self.record.add(time.monotonic() - started, None if missing else error)
            raise
        self.record.add(time.monotonic() - started)
        return reply

    async def _ask_until_served(self, parameters: dict[str, str]) -> Reply:
        attempt = 0
        while True:
            try:
                return _decode(await self.client.get(parameters))
            except Busy as busy:
                await self.client.wait(busy, attempt)
                self.record.retries[busy.kind] += 1
            attempt += 1


def _decode(response: WikiResponse) -> Reply:
    """Raises Busy when a retry may help."""
    try:
        reply = msgspec.json.decode(response.body, type=Reply)
    except (msgspec.ValidationError, RecursionError) as error:
        raise WikiReplyError(f"the wiki's reply is not what MediaWiki replies: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        if response.body.lstrip()[:1] == b"{":
            raise Busy("the wiki's reply ended early", None, "connection") from None
        raise WikiReplyError(
            "the wiki's reply is not JSON: wiki.api_url must be the address of its api.php"
        ) from None
    if reply.error is not None:
        raise _refusal(reply.error, response.retry_after)
    return reply


def _refusal(problem: Problem, retry_after: float | None) -> Exception:
    quote = " ".join(problem.info.split())[:_MAX_QUOTE]
    if problem.code in _BUSY_CODES or problem.code.startswith(_BUSY_PREFIX):
        lag = _LAG_SECONDS if problem.code == "maxlag" else None
        return Busy(f"the wiki is busy ({problem.code}): {quote}", retry_after or lag, "overload")
    if problem.code in _CLOSED_CODES:
        return ApiError(problem.code, f"the wiki may not be read without login ({problem.code}): {quote}")
    return ApiError(problem.code, f"the wiki refused the request ({problem.code[:40]}): {quote}")


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
