"""Check the IP addresses that a host resolves to: public ones, unless the configuration allows private ones.

The check is on the resolved address, and the connection goes to exactly that address, so DNS rebinding has no effect.
"""

from __future__ import annotations

import ipaddress
import re
import socket

import httpx2

from gateway.base.errors import ConfigurationError
from gateway.base.patterns import any_case
from gateway.config.settings import WikiSettings
from gateway.wiki.remote.trouble import WikiReplyError, WikiUnavailableError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_RETRY_SECONDS = 10.0
REMEDY = "; set wiki.private_address to true to allow it"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# A URL whose host is obvious to a reader: no user name, escapes or non-ASCII letters.
_PLAIN = any_case(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]+)?(?:/[^#\\]*)?", re.ASCII)
# NAT64 prefixes that embed an IPv4 address: RFC 6052, and RFC 8215 with 96 bits.
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
# IETF protocol assignments (RFC 6890); some versions of `ipaddress` know only parts of it.
_PROTOCOLS = ipaddress.IPv4Network("192.0.0.0/24")


def api_address(settings: WikiSettings) -> httpx2.URL:
    """Parse ``wiki.api_url``. Raises ConfigurationError."""
    try:
        url = httpx2.URL(settings.api_url)
        problem = _problem(url)
    except httpx2.InvalidURL as error:
        problem = str(error)
    if problem is None:
        return url
    shown = settings.api_url.rpartition("@")[2]
    raise ConfigurationError(
        f"`wiki.api_url` is {shown!r}, which is not the address of a MediaWiki's api.php: {problem}",
        param="wiki.api_url",
    )


def _problem(url: httpx2.URL) -> str | None:
    if url.scheme not in ("http", "https") or not url.host:
        return "it must begin with https:// or http:// and a host"
    if _literal(url.host) is None and not _NAME.fullmatch(url.raw_host.decode("ascii")):
        return f"`{url.host}` is not a host"
    if url.userinfo:
        return "a user name or password in it would be shown in logs"
    if url.query or url.fragment:
        return "it must end with the path, usually /api.php"
    return None


def is_plain(address: str) -> bool:
    """Whether a reader of the URL sees its host: only then does naming a private host count as intended."""
    return _PLAIN.fullmatch(address) is not None


class Rule:
    """Allowed addresses of ``host``.

    ``meant``: the configuration or the user wrote this host plainly. Then an IP address is allowed as written, and
    ``localhost`` may lead to loopback. Any other name, every host of a redirect, and an IPv4 address embedded in an
    IPv6 one must lead to public addresses, or with ``private`` to anything but link-local (cloud metadata),
    multicast and reserved addresses. ``remedy`` ends the error about an address that is not public.
    """

    def __init__(self, host: str, *, private: bool, meant: bool = True, remedy: str = REMEDY) -> None:
        self.host = host.removesuffix(".").lower()
        self._private = private
        self._remedy = "" if private else remedy
        self.literal = _literal(host)
        self._allow_all = meant and self.literal is not None and _embedded(self.literal) == self.literal
        self._loopback = meant and (self.host == "localhost" or self.host.endswith(".localhost"))

    def addresses(self) -> list[str]:
        """Resolve the host; blocks. The allowed addresses, in the resolver's order.

        Raises WikiReplyError when none is allowed, WikiUnavailableError when the name cannot be resolved.
        """
        found = [str(self.literal)] if self.literal is not None else self._resolve()
        allowed = [
            text for text in found if self._allow_all or self._allows(_embedded(ipaddress.ip_address(text)))
        ]
        if not allowed:
            raise WikiReplyError(
                f"the host `{self.host}` leads to {', '.join(found)}, which is not public{self._remedy}",
                kind="elsewhere",
            )
        return allowed

    def _resolve(self) -> list[str]:
        try:
            found = socket.getaddrinfo(self.host, None, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:  # ValueError: a name that no resolver accepts
            raise WikiUnavailableError(
                f"the host name `{self.host}` cannot be resolved: {error}", retry_after=_RETRY_SECONDS
            ) from None
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def _allows(self, address: IPAddress) -> bool:
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


def _literal(host: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _embedded(address: IPAddress) -> IPAddress:
    """The IPv4 address embedded in an IPv6 one, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if any(address in network for network in _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
