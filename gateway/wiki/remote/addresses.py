"""Where a configured or given address may lead: public addresses, unless the configuration means a private one.

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

from gateway.base.errors import ConfigurationError
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.trouble import WikiReplyError, WikiUnavailableError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_KEPT_SECONDS = 60.0
_RETRY_SECONDS = 10.0
REMEDY = "; set wiki.private_address to true if that is meant"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# An address in which every reader sees the same host: no user name, escapes, or letters of other scripts.
_PLAIN = re.compile(
    r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]+)?(?:/[^#\\]*)?", re.ASCII | re.IGNORECASE
)
# IPv6 prefixes under which a gateway reaches IPv4 addresses: RFC 6052, and RFC 8215 as it is used with 96 bits.
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
# IETF protocol assignments (RFC 6890); not all versions of `ipaddress` know the whole of it.
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")


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


def is_plain(address: str) -> bool:
    """Whether the address shows its host to everybody who reads it, which is what it takes to mean a private one."""
    return _PLAIN.fullmatch(address) is not None


class Rule:
    """Which addresses a host may lead to.

    ``meant``: the configuration or the user names this host, plainly. An address given as such is then taken as it is,
    and ``localhost`` may lead to loopback: whoever writes that means it. Any other name, every host that a
    redirect brings in, and an IPv4 address dressed up as another one must lead to public addresses, or with
    ``private`` to anything but link-local (where clouds keep their metadata), multicast and reserved addresses.
    """

    def __init__(self, host: str, *, private: bool, meant: bool = True, remedy: str = REMEDY) -> None:
        """``remedy`` ends the error about an address that is not public."""
        self.host = host.removesuffix(".").lower()
        self._private = private
        self._remedy = "" if private else remedy
        self.literal = _literal(host)
        plain = self.literal is not None and _bare(self.literal) == self.literal
        self._taken = meant and plain
        self._loopback = meant and (self.host == "localhost" or self.host.endswith(".localhost"))

    def allowed(self, found: list[str]) -> list[str]:
        """Those of the addresses that may be connected to. Raises WikiReplyError when none may."""
        allowed = [text for text in found if self._taken or self._may(_bare(ipaddress.ip_address(text)))]
        if not allowed:
            raise WikiReplyError(
                f"the host `{self.host}` leads to {', '.join(found)}, which is not public{self._remedy}",
                kind="elsewhere",
            )
        return allowed

    def _may(self, address: IPAddress) -> bool:
        if self._loopback:
            return address.is_loopback
        if self._private:
            return not (
                address.is_link_local
                or address.is_multicast
                or address.is_unspecified
                or (address.is_reserved and not address.is_loopback)
            )
        special = address.is_multicast or address.is_reserved or address in _PROTOCOLS
        return address.is_global and not special


class Addresses:
    """The addresses that the configured host may be reached at; ``meant`` as in :class:`Rule`."""

    def __init__(self, host: str, *, private: bool, meant: bool = True) -> None:
        self._rule = Rule(host, private=private, meant=meant)
        self._found: list[str] = []
        self._until = 0.0

    @property
    def is_name(self) -> bool:
        """Whether the host is a name and not an address."""
        return self._rule.literal is None

    async def find(self) -> list[str]:
        """Allowed addresses, in the resolver's order; resolved again after a minute.

        Raises WikiReplyError when all are forbidden, WikiUnavailableError when the name leads nowhere.
        """
        if self._rule.literal is not None:
            return self._rule.allowed([str(self._rule.literal)])
        if time.monotonic() >= self._until:
            self._found = self._rule.allowed(await self._resolve())
            self._until = time.monotonic() + _KEPT_SECONDS
        return self._found

    def forget(self) -> None:
        """Resolve the name again next time: nobody answers at the addresses."""
        self._until = 0.0

    async def _resolve(self) -> list[str]:
        return await asyncio.to_thread(resolve, self._rule.host)


def resolve(host: str) -> list[str]:
    """Addresses of a name, in the resolver's order. Raises WikiUnavailableError."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: a name that no resolver takes
        raise WikiUnavailableError(
            f"the name of the host `{host}` cannot be resolved: {error}", retry_after=_RETRY_SECONDS
        ) from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _literal(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _bare(address: IPAddress) -> IPAddress:
    """The IPv4 address inside an IPv6 one that stands for it, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in network for network in _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
