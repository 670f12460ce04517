"""Transports that connect to addresses that were checked: of one host and nothing else, or hop by hop."""

from __future__ import annotations

import ssl

import httpx2

from gateway.base.errors import InvalidRequestError
from gateway.wiki.remote.addresses import REMEDY, Addresses, Rule, is_plain, resolve
from gateway.wiki.remote.trouble import WikiReplyError


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
                f"only the wiki's host `{self._host}` may be contacted, not {request.url.host}",
                kind="elsewhere",
            )
        failure: httpx2.TransportError | None = None
        for address in await self._addresses.find():
            try:
                pinned = _pinned(request, address, self._host if self._addresses.is_name else None)
                return await self._inner.handle_async_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = failure or error
        self._addresses.forget()
        assert failure is not None, "there is at least one address"
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()


class CheckedTransport(httpx2.BaseTransport):
    """For a download that may be redirected to other hosts: each hop's host is resolved, checked and pinned.

    ``given`` is the address that the user wrote; what :class:`Rule` grants to a host that is meant, it grants to
    that host alone, and with ``own`` this one host's name may lead into a private network. Raises WikiReplyError for
    forbidden addresses, WikiUnavailableError for names that lead nowhere, InvalidRequestError for a user name in an
    address.
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
        found = resolve(rule.host) if rule.literal is None else [str(rule.literal)]
        failure: httpx2.TransportError | None = None
        for address in rule.allowed(found):
            try:
                pinned = _pinned(request, address, rule.host if rule.literal is None else None)
                return self._inner.handle_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = failure or error
        assert failure is not None, "there is at least one address"
        raise failure

    def rule(self, url: httpx2.URL) -> Rule:
        """Where the host of a hop may lead."""
        meant = url.raw_host == self._meant
        private = self._private or (meant and self._own)
        return Rule(url.raw_host.decode("ascii"), private=private, meant=meant, remedy=self._remedy)

    def close(self) -> None:
        self._inner.close()


def _pinned(request: httpx2.Request, address: str, name: str | None) -> httpx2.Request:
    """The request to that address; a certificate must be for ``name``, if there is one."""
    extensions = dict(request.extensions)
    if name is not None:
        extensions["sni_hostname"] = name
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions=extensions,
    )
