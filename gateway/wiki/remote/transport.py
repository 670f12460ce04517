"""HTTP transports that connect only to checked addresses: of one host, or of every hop of a download."""

from __future__ import annotations

import asyncio
import ssl
import time

import httpx2

from gateway.base.errors import InvalidRequestError
from gateway.wiki.remote.addresses import REMEDY, Rule, is_plain
from gateway.wiki.remote.trouble import WikiReplyError

_RESOLVE_SECONDS = 60.0  # how long resolved addresses are reused


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Connects to the checked addresses of one host; the Host header and the certificate check use its name.

    Ignores the environment's proxies: a proxy would resolve the name itself. Raises WikiReplyError for any other
    host and for forbidden addresses, WikiUnavailableError when the name cannot be resolved.
    """

    def __init__(self, rule: Rule, connections: int) -> None:
        self._rule = rule
        self._addresses: list[str] = []
        self._resolve_at = 0.0
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
        tls = ssl.create_default_context()
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.raw_host.decode("ascii").removesuffix(".") != self._rule.host:
            raise WikiReplyError(
                f"only the wiki's host `{self._rule.host}` may be contacted, not {request.url.host}",
                kind="elsewhere",
            )
        if time.monotonic() >= self._resolve_at:
            self._addresses = await asyncio.to_thread(self._rule.addresses)
            self._resolve_at = time.monotonic() + _RESOLVE_SECONDS
        failure: httpx2.TransportError | None = None
        for address in self._addresses:
            try:
                return await self._inner.handle_async_request(_pinned(request, address, self._rule))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = failure or error
        self._resolve_at = 0.0
        assert failure is not None, "there is at least one address"
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()


def pinned_client(url: httpx2.URL, remedy: str, seconds: float) -> httpx2.AsyncClient:
    """A client for one request at a time to the host of ``url``, which the configuration names, and to no other."""
    rule = Rule(url.raw_host.decode("ascii"), private=False, meant=True, remedy=remedy)
    return httpx2.AsyncClient(transport=PinnedTransport(rule, 1), timeout=seconds, trust_env=False)


class CheckedTransport(httpx2.BaseTransport):
    """For a download that may be redirected to other hosts: resolves, checks and pins the host of each hop.

    ``given`` is the URL that the user wrote; only its host counts as meant in :class:`Rule`, and with ``own`` only
    its name may lead into a private network. Raises WikiReplyError for forbidden addresses, WikiUnavailableError
    for names that cannot be resolved, InvalidRequestError for a user name in a URL.
    """

    def __init__(self, given: str, *, private: bool, own: bool = False, remedy: str = REMEDY) -> None:
        self._meant = httpx2.URL(given).raw_host if is_plain(given) else None
        self._private = private
        self._own = own
        self._remedy = remedy
        self._inner = httpx2.HTTPTransport(verify=ssl.create_default_context(), trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme not in ("http", "https"):
            raise httpx2.UnsupportedProtocol("an address begins with https:// or http://")
        if request.url.userinfo:
            raise InvalidRequestError(
                "an address with a user name or password is not taken: it would be shown in logs",
                param="source",
            )
        rule = self.rule(request.url)
        failure: httpx2.TransportError | None = None
        for address in rule.addresses():
            try:
                return self._inner.handle_request(_pinned(request, address, rule))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = failure or error
        assert failure is not None, "there is at least one address"
        raise failure

    def rule(self, url: httpx2.URL) -> Rule:
        meant = url.raw_host == self._meant
        private = self._private or (meant and self._own)
        return Rule(url.raw_host.decode("ascii"), private=private, meant=meant, remedy=self._remedy)

    def close(self) -> None:
        self._inner.close()


def _pinned(request: httpx2.Request, address: str, rule: Rule) -> httpx2.Request:
    """The request sent to ``address``; a certificate must be for the name, if the host is one."""
    extensions = dict(request.extensions)
    if rule.literal is None:
        extensions["sni_hostname"] = rule.host
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions=extensions,
    )
