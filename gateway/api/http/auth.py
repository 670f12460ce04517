"""Authentication by API key, and access rights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal

import apsw

from gateway.base.errors import ConfigurationError, ForbiddenError, InvalidRequestError, UnauthorizedError
from gateway.store.db import Database
from gateway.store.keys import KeyInfo, Role, any_keys, needs_touch, touch_key, verify_key

Access = Literal["public", "user", "admin"]

LOCAL_OWNER = "local"
# A program that serves several people names the one whose data a request is about.
PERSON = "X-Hearth-Person"
_PERSON = re.compile(r"[!-~]{1,200}")


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. ``owner`` separates its data and its part of the KV cache from others."""

    owner: str
    role: Role

    def of(self, person: str | None) -> Caller:
        """The caller as one of the people that it serves; each is an owner below it."""
        return self if person is None else Caller(f"{self.owner}/{person}", "user")


class Authenticator:
    """Identifies callers by their headers. Keys created or revoked on the command line take effect immediately."""

    def __init__(self, database: Database, host: str) -> None:
        self._database = database
        self._loopback = is_loopback(host)
        self._has_keys = False  # after the first key, the server always requires one

    async def check_bind(self, host: str) -> None:
        """Raises ConfigurationError if the server is reachable from other machines and no key exists."""
        if not self._loopback and not await self._database.read(any_keys):
            raise ConfigurationError(
                f"{host} is reachable from other machines, and no API key exists. Create one with "
                "`hearth key create NAME`, or listen on 127.0.0.1.",
                code="public_without_key",
            )

    async def authenticate(self, headers: Mapping[str, str], access: Access) -> Caller:
        """Identify the caller of an endpoint.

        Raises UnauthorizedError (no key, or an unknown one) and ForbiddenError (a user's key on an admin endpoint).
        """
        if access == "public":
            return Caller("", "user")
        token = presented_key(headers)
        required, key = await self._database.read(lambda connection: self._look_up(connection, token))
        person = headers.get(PERSON.lower())
        if person is not None and not _PERSON.fullmatch(person):
            raise InvalidRequestError(f"{PERSON} has 1 to 200 ASCII characters without spaces", param=PERSON)
        if not required:
            return Caller(LOCAL_OWNER, "admin").of(person)
        if key is None:
            raise UnauthorizedError(
                "this key is unknown or revoked"
                if token
                else "an API key is needed: Authorization: Bearer KEY"
            )
        if access == "admin" and key.role != "admin":
            raise ForbiddenError("this requires a key with the role `admin`")
        if needs_touch(key):
            await self._database.write(lambda connection: touch_key(connection, key))
        return Caller(key.owner, key.role).of(person)

    def _look_up(self, connection: apsw.Connection, token: str | None) -> tuple[bool, KeyInfo | None]:
        """Whether a key is required, and the key of ``token``."""
        self._has_keys = self._has_keys or any_keys(connection)
        if self._loopback and not self._has_keys:
            return False, None
        return True, verify_key(connection, token) if token else None


def presented_key(headers: Mapping[str, str]) -> str | None:
    """The key of ``Authorization: Bearer KEY`` or ``x-api-key: KEY``, if any."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    return headers.get("x-api-key", "").strip() or None


def is_loopback(host: str) -> bool:
    """Whether a server bound to ``host`` is reachable only from this machine. Names other than localhost are not."""
    address = address_of(host.strip("[]"))
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def address_of(text: str) -> IPv4Address | IPv6Address | None:
    """The IP address that a text is, if it is one."""
    try:
        return ip_address(text)
    except ValueError:
        return None
