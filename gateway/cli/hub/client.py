"""The HTTP client for huggingface-hub: redirects may not lead into a private network."""

from __future__ import annotations

import urllib.request

import httpx2
from huggingface_hub import constants
from huggingface_hub.errors import OfflineModeIsEnabled

from gateway.wiki.remote.transport import CheckedTransport

_REMEDY = "; a hub of your own is named in HF_ENDPOINT and has to hand out its files itself"


class HubTransport(httpx2.BaseTransport):
    """Checks each hop of a request, as :class:`CheckedTransport` does.

    With ``own`` the user has named the hub, and its host may be in a private network. A proxy from the environment
    resolves names itself, so with a proxy only hosts that are given as addresses are checked.
    """

    def __init__(self, endpoint: str, *, own: bool) -> None:
        self._direct = CheckedTransport(endpoint, private=False, own=own, remedy=_REMEDY)
        self._proxied: dict[str, httpx2.HTTPTransport] = {}

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        proxy = _proxy_for(request.url)
        if proxy is None:
            return self._direct.handle_request(request)
        rule = self._direct.rule(request.url)
        if rule.literal is not None:
            rule.addresses()
        if proxy not in self._proxied:
            self._proxied[proxy] = httpx2.HTTPTransport(proxy=httpx2.Proxy(proxy))
        return self._proxied[proxy].handle_request(request)

    def close(self) -> None:
        self._direct.close()
        for transport in self._proxied.values():
            transport.close()


def guarded_client(endpoint: str, *, own: bool) -> httpx2.Client:
    """Make a client that follows redirects and refuses requests while offline, as huggingface-hub's own does."""
    return httpx2.Client(
        transport=HubTransport(endpoint, own=own),
        event_hooks={"request": [_refuse_offline]},
        follow_redirects=True,
        timeout=None,
    )


def _proxy_for(url: httpx2.URL) -> str | None:
    proxies = urllib.request.getproxies()
    found = proxies.get(url.scheme) or proxies.get("all")
    if not found or urllib.request.proxy_bypass(url.host):
        return None
    return found if "://" in found else f"http://{found}"


def _refuse_offline(request: httpx2.Request) -> None:
    if constants.is_offline_mode():
        raise OfflineModeIsEnabled(f"{request.url.host} is not asked: HF_HUB_OFFLINE is set")
