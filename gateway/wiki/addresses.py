"""Where the configured address may lead: public addresses, unless the configuration means a private one.

A name is checked after it was resolved, and the connection is made to the very address that was checked: a
name server that gives another answer to a second question (DNS rebinding) is never asked one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import time

import httpx2

from gateway.errors import ConfigurationError
from gateway.settings import WikiSettings
from gateway.wiki.trouble import WikiReplyError, WikiUnavailableError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_KEPT_SECONDS = 60.0
_RETRY_SECONDS = 10.0
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# IPv6 prefix under which a gateway reaches IPv4 addresses (RFC 6052).
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def api_address(settings: WikiSettings) -> httpx2.URL:
    """``wiki.api_url`` as an address. Raises ConfigurationError that says what is wrong with it."""
    try:
        url = httpx2.URL(settings.api_url)
    except httpx2.InvalidURL as error:
        raise _no_address(settings, str(error)) from None
    if url.scheme not in ("http", "https") or not url.host:
        raise _no_address(settings, "it must begin with https:// or http:// and a host")
    if _literal(url.host) is None and not _NAME.fullmatch(url.raw_host.decode("ascii")):
        raise _no_address(settings, f"`{url.host}` is no host")
    if url.userinfo:
        raise _no_address(settings, "a user name or password in it would be shown in logs")
    if url.query or url.fragment:
        raise _no_address(settings, "it must end with the path, usually /api.php")
    return url


def _no_address(settings: WikiSettings, reason: str) -> ConfigurationError:
    shown = settings.api_url.rpartition("@")[2]
    return ConfigurationError(
        f"`wiki.api_url` is {shown!r}, which is no address of a MediaWiki's api.php: {reason}",
        param="wiki.api_url",
    )


class Addresses:
    """The addresses that one host may be reached at.

    An address given as such is taken as it is, and ``localhost`` may lead to loopback: whoever writes that
    means it. Any other name must lead to public addresses, or with ``private`` to anything but link-local
    (where clouds keep their metadata), multicast and reserved addresses.
    """

    def __init__(self, host: str, *, private: bool) -> None:
        self._host = host.rstrip(".").lower()
        self._private = private
        self._literal = _literal(host)
        self._found: list[str] = []
        self._until = 0.0

    @property
    def is_name(self) -> bool:
        """Whether the host is a name and not an address."""
        return self._literal is None

    async def find(self) -> list[str]:
        """Allowed addresses, in the resolver's order; resolved again after a minute.

        Raises WikiReplyError when all are forbidden, WikiUnavailableError when the name leads nowhere.
        """
        if self._literal is not None:
            return [str(self._literal)]
        if time.monotonic() >= self._until:
            self._found = self._allowed(await self._resolve())
            self._until = time.monotonic() + _KEPT_SECONDS
        return self._found

    def forget(self) -> None:
        """Resolve the name again next time: nobody answers at the addresses."""
        self._until = 0.0

    async def _resolve(self) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(self._host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise WikiUnavailableError(
                f"the name of the wiki's host `{self._host}` cannot be resolved: {error}",
                retry_after=_RETRY_SECONDS,
            ) from None
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def _allowed(self, addresses: list[str]) -> list[str]:
        allowed = [text for text in addresses if self._may(_bare(ipaddress.ip_address(text)))]
        if not allowed:
            remedy = "" if self._private else "; set wiki.private_address to true if that is meant"
            raise WikiReplyError(
                f"the wiki's host `{self._host}` leads to {', '.join(addresses)}, which is not public{remedy}"
            )
        return allowed

    def _may(self, address: IPAddress) -> bool:
        if self._host == "localhost" or self._host.endswith(".localhost"):
            return address.is_loopback
        if self._private:
            return not (
                address.is_link_local
                or address.is_multicast
                or address.is_unspecified
                or (address.is_reserved and not address.is_loopback)
            )
        return address.is_global and not address.is_multicast


def _literal(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _bare(address: IPAddress) -> IPAddress:
    """The IPv4 address inside an IPv6 one that stands for it, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
