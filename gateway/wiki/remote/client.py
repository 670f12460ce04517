"""GET requests to one ``api.php``: few at a time, with checked redirects, bounded replies, retries and back-off."""

from __future__ import annotations

import asyncio
import random
import time
import zlib
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx2
import structlog

from gateway import __version__
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.addresses import Rule, api_address, is_plain
from gateway.wiki.remote.transport import PinnedTransport
from gateway.wiki.remote.trouble import TroubleKind, WikiReplyError, WikiUnavailableError

REQUESTS_AT_ONCE = 4
MAX_REPLY_BYTES = 8 * 1024 * 1024

_ATTEMPTS = 3
_MAX_PAUSE = 3600.0  # a longer Retry-After is a mistake of the server
_FIRST_BACKOFF = 0.5
_SPREAD = 0.25  # seconds over which requests resume after a pause
_MAX_REDIRECTS = 3
_CONNECT_SECONDS = 5.0
_RETRY_SECONDS = 10.0  # Retry-After for our clients when the wiki names none
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TOO_MANY = 429
_SERVER_ERROR = 500
# A request's share of the time for a search or fetch: its own timeout names the reason, the outer one could not.
_SHARE_OF_TIMEOUT = 0.9
_GZIP = 16 + zlib.MAX_WBITS

log = structlog.get_logger(__name__)


class WikiResponse(NamedTuple):
    """The body of a reply with status 200, and its Retry-After header in seconds."""

    body: bytes
    retry_after: float | None


class Busy(Exception):  # noqa: N818 - a signal to retry that never leaves this package
    """The wiki did not serve the request; a retry may succeed. ``wait`` is its Retry-After in seconds."""

    def __init__(self, reason: str, wait: float | None, kind: TroubleKind) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait = wait
        self.kind = kind


class WikiClient:
    """One wiki's API. Raises ConfigurationError for a wrong ``wiki.api_url``."""

    def __init__(self, settings: WikiSettings) -> None:
        self._url = api_address(settings)
        self._timeout = settings.fetch_timeout_seconds * _SHARE_OF_TIMEOUT
        # A longer wait than half the time of a search or fetch would only end in a timeout.
        self._max_wait = settings.fetch_timeout_seconds / 2
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._resume_at = 0.0  # monotonic
        host, meant = self._url.raw_host.decode("ascii"), is_plain(settings.api_url)
        rule = Rule(host, private=settings.private_address, meant=meant)
        self._http = httpx2.AsyncClient(
            transport=PinnedTransport(rule, REQUESTS_AT_ONCE),
            headers={"User-Agent": user_agent(settings), "Accept-Encoding": "gzip"},
            timeout=httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS, pool=None),
            follow_redirects=False,
            trust_env=False,
        )

    async def get(self, parameters: dict[str, str]) -> WikiResponse:
        """Make one attempt, in one of the slots. Raises Busy, WikiUnavailableError and WikiReplyError."""
        async with self._slots:
            await self._wait_for_pause()
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._follow(self._url.copy_merge_params(parameters))
            except (TimeoutError, httpx2.TimeoutException):
                raise WikiUnavailableError(
                    f"{self._url} did not reply within {self._timeout:g} seconds",
                    retry_after=_RETRY_SECONDS,
                    kind="timeout",
                ) from None
            except httpx2.TransportError as error:
                reason = str(error) or type(error).__name__
                raise Busy(f"the connection to {self._url} failed: {reason}", None, "connection") from None

    async def wait(self, busy: Busy, attempt: int) -> None:
        """Wait before the next attempt; raises WikiUnavailableError after the last. ``attempt`` counts from 0."""
        if busy.wait is not None:
            self._resume_at = max(self._resume_at, time.monotonic() + min(busy.wait, _MAX_PAUSE))
        if attempt + 1 >= _ATTEMPTS:
            raise WikiUnavailableError(busy.reason, retry_after=busy.wait or _RETRY_SECONDS, kind=busy.kind)
        log.info("the wiki did not serve a request", reason=busy.reason, asked_to_wait=busy.wait)
        if busy.wait is None:
            await asyncio.sleep(_FIRST_BACKOFF * 2.0**attempt * random.uniform(0.5, 1.0))

    @property
    def address(self) -> str:
        return str(self._url)

    @property
    def paused(self) -> float:
        """Seconds until the wiki accepts requests again."""
        return max(0.0, self._resume_at - time.monotonic())

    async def close(self) -> None:
        await self._http.aclose()

    async def _wait_for_pause(self) -> None:
        while (left := self.paused) > 0:
            if left > self._max_wait:
                raise WikiUnavailableError(
                    f"the wiki is busy and asks to wait {left:.0f} seconds", retry_after=left, kind="overload"
                )
            await asyncio.sleep(left + random.uniform(0, _SPREAD))

    async def _follow(self, url: httpx2.URL) -> WikiResponse:
        for _ in range(_MAX_REDIRECTS + 1):
            async with self._http.stream("GET", url) as response:
                if response.status_code not in _REDIRECTS:
                    return await self._read(response)
                url = self._next(url, response.headers.get("location", ""))
        raise WikiReplyError(
            f"{self._url} redirects in a circle or more than {_MAX_REDIRECTS} times", kind="elsewhere"
        )

    def _next(self, url: httpx2.URL, location: str) -> httpx2.URL:
        """A redirect's target: the same host and port, or https instead of http on the default ports."""
        try:
            target = url.join(location)
        except httpx2.InvalidURL:
            raise WikiReplyError(f"{self._url} redirects to an invalid address", kind="elsewhere") from None
        upgrade = (url.scheme, target.scheme) == ("http", "https")
        same_port = target.port == url.port and (upgrade or target.scheme == url.scheme)
        same_host = target.raw_host == self._url.raw_host and not target.userinfo
        if not (location and same_host and same_port):
            shown = target.copy_with(query=None, fragment=None, username=None, password=None)
            raise WikiReplyError(
                f"{self._url} redirects to {shown}, and only the configured host is contacted: "
                "set wiki.api_url to the address of its api.php",
                kind="elsewhere",
            )
        return target

    async def _read(self, response: httpx2.Response) -> WikiResponse:
        wait = retry_after(response.headers.get("retry-after"))
        if response.status_code == _TOO_MANY or response.status_code >= _SERVER_ERROR:
            raise Busy(f"{self._url} answered with status {response.status_code}", wait, "overload")
        if response.status_code != 200:
            raise WikiReplyError(
                f"{self._url} answered with status {response.status_code}: wiki.api_url must be the address of "
                "a MediaWiki's api.php that may be read without login",
                kind="refused",
            )
        return WikiResponse(await _bounded(response), wait)


async def _bounded(response: httpx2.Response) -> bytes:
    """Read the body and unpack it here, where the size of a decompression bomb can be bounded."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise WikiReplyError(
            f"the wiki's reply has the encoding `{encoding[:40]}`, which hearth did not request"
        )
    unpack = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
    body = bytearray()
    async for chunk in response.aiter_raw():
        try:
            body += unpack.decompress(chunk, MAX_REPLY_BYTES + 1 - len(body)) if unpack else chunk
        except zlib.error:
            raise WikiReplyError("the wiki's reply is damaged: it cannot be unpacked") from None
        if len(body) > MAX_REPLY_BYTES:
            raise WikiReplyError(f"the wiki's reply is larger than {MAX_REPLY_BYTES // 1024**2} MiB")
    if unpack and not unpack.eof:
        raise Busy("the wiki's reply ended early", None, "connection")
    return bytes(body)


def user_agent(settings: WikiSettings) -> str:
    """Program, version, contact and library, as Wikimedia's user-agent policy wants."""
    contact = settings.user_agent_contact or "self-hosted question answering; no contact configured"
    return f"hearth/{__version__} ({contact}) httpx2/{httpx2.__version__}"


def retry_after(header: str | None) -> float | None:
    """Parse a Retry-After header, a number or a date (RFC 9110), to seconds; None when it is neither."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
