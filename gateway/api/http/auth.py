"""Who is calling: API keys from the headers, and what a caller may do."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import apsw

from gateway.base.errors import ConfigurationError, ForbiddenError, UnauthorizedError
from gateway.store.db import Database
from gateway.store.keys import KeyInfo, Role, any_keys, needs_touch, touch_key, verify_key

Access = Literal["public", "user", "admin"]

LOCAL_OWNER = "local"


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. ``owner`` fences its part of the model's KV cache."""

    owner: str
    role: Role


class Authenticator:
    """Decides from the headers who calls. Keys that the command line makes or revokes count at once."""

    def __init__(self, database: Database, host: str) -> None:
        self._database = database
        self._loopback = is_loopback(host)
        self._has_keys = False  # once a key was made, keys are needed for good

    async def check_bind(self, host: str) -> None:
        """Raises ConfigurationError when a server that others can reach would be open to everybody."""
        if not self._loopback and not await self._database.read(any_keys):
            raise ConfigurationError(
                f"{host} can be reached from other machines, and no API key exists: make one with "
                "`hearth key create NAME`, or listen on 127.0.0.1",
                code="public_without_key",
            )

    async def authenticate(self, headers: Mapping[str, str], access: Access) -> Caller:
        """The caller of an endpoint with this access.

        Raises UnauthorizedError (no key or an unknown one) and ForbiddenError (a user's key on an admin endpoint).
        """
        if access == "public":
            return Caller("", "user")
        token = presented_key(headers)
        needed, key = await self._database.read(lambda connection: self._look_up(connection, token))
        if not needed:
            return Caller(LOCAL_OWNER, "admin")
        if key is None:
            raise UnauthorizedError(
                "this key is unknown or revoked"
                if token
                else "an API key is needed: Authorization: Bearer KEY"
            )
        if access == "admin" and key.role != "admin":
            raise ForbiddenError("this needs a key with the role `admin`")
        if needs_touch(key):
            await self._database.write(lambda connection: touch_key(connection, key))
        return Caller(key.owner, key.role)

    def _look_up(self, connection: apsw.Connection, token: str | None) -> tuple[bool, KeyInfo | None]:
        """Whether a key is needed, and the key of ``token``."""
        self._has_keys = self._has_keys or any_keys(connection)
        if self._loopback and not self._has_keys:
            return False, None
        return True, verify_key(connection, token) if token else None


def presented_key(headers: Mapping[str, str]) -> str | None:
    """The key of ``Authorization: Bearer KEY`` or ``x-api-key: KEY``; None when neither is there."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    return headers.get("x-api-key", "").strip() or None


def is_loopback(host: str) -> bool:
    """Whether a server bound to ``host`` is reachable from this machine alone. A name other than localhost: no."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
