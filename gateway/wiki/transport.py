"""A transport that can reach one host and nothing else, at addresses that were checked."""

from __future__ import annotations

import ssl

import httpx2

from gateway.wiki.addresses import Addresses
from gateway.wiki.trouble import WikiReplyError


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Connects to the checked address; the name stays in the Host header and is what certificates must be for.

    No proxy of the environment is used: it would resolve the name itself. Raises WikiReplyError for any other
    host and for forbidden addresses, WikiUnavailableError when the name cannot be resolved.
    """

    def __init__(self, host: str, addresses: Addresses, connections: int, tls: ssl.SSLContext) -> None:
        self._host = host
        self._addresses = addresses
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._inner = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.raw_host.decode("ascii") != self._host:
            raise WikiReplyError(
                f"only the wiki's host `{self._host}` may be contacted, not {request.url.host}"
            )
        failure: httpx2.TransportError | None = None
        for address in await self._addresses.find():
            try:
                return await self._inner.handle_async_request(self._pinned(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = failure or error
        self._addresses.forget()
        assert failure is not None, "there is at least one address"
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _pinned(self, request: httpx2.Request, address: str) -> httpx2.Request:
        extensions = dict(request.extensions)
        if self._addresses.is_name:
            extensions["sni_hostname"] = self._host
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions=extensions,
        )
