"""GET requests to the hosts that the configuration lists."""

from __future__ import annotations

from typing import Annotated

import httpx2
from msgspec import Meta, Struct

from gateway.base.errors import DeadlineError, HearthError, InvalidRequestError
from gateway.runs.tool import Calling, Risk, RunTool, ToolOutput
from gateway.wiki.remote.addresses import is_plain
from gateway.wiki.remote.transport import pinned_client

_MAX_BYTES = 1024 * 1024
_SECONDS = 30.0
_REMEDY = "; tasks fetch from public addresses only"


class HttpGetArgs(Struct, frozen=True, forbid_unknown_fields=True):
    url: Annotated[str, Meta(min_length=8, max_length=2000)]


class FetchError(HearthError, status=502, code="fetch_failed"):
    """The address did not answer with a text."""


def web_tools(hosts: list[str]) -> list[RunTool]:
    """None if no host is allowed."""

    async def http_get(calling: Calling, asked: HttpGetArgs) -> ToolOutput:
        """Fetch a text from an address of a host that the configuration allows."""
        url = _checked(asked.url, hosts)
        headers = {"Accept-Encoding": "identity", "User-Agent": "hearth"}
        try:
            async with (
                pinned_client(url, _REMEDY, _SECONDS) as client,
                client.stream("GET", url, headers=headers) as response,
            ):
                return ToolOutput(await _text(response, asked.url))
        except httpx2.TimeoutException:
            raise DeadlineError(f"{asked.url} did not reply within {_SECONDS:g} seconds") from None
        except httpx2.TransportError as error:
            raise FetchError(f"the connection to {asked.url} failed: {error}") from None

    risks: frozenset[Risk] = frozenset({"untrusted", "effect"})
    return [RunTool(HttpGetArgs, http_get, risks)] if hosts else []


def _checked(address: str, hosts: list[str]) -> httpx2.URL:
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        raise InvalidRequestError(f"`url` is {address!r}, which is no address", param="url") from None
    if not is_plain(address) or url.netloc.decode() not in hosts:
        raise InvalidRequestError(
            f"`url` is {address!r}, and tasks may only fetch from: {', '.join(hosts)}; tasks.http_hosts lists them",
            param="url",
        )
    return url


async def _text(response: httpx2.Response, address: str) -> str:
    if response.status_code != 200:
        raise FetchError(f"{address} answered with status {response.status_code}")
    kind = response.headers.get("content-type", "text/plain")
    if not kind.startswith("text/") and "json" not in kind and "xml" not in kind:
        raise FetchError(f"{address} answered with {kind}, not with a text")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise FetchError(f"{address} answered with more than {_MAX_BYTES // 1024**2} MiB")
    return body.decode(response.charset_encoding or "utf-8", "replace")
