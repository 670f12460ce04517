"""API keys. A token is 32 random bytes; the database stores only its hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import Literal

import apsw
from msgspec import Struct

from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.store.rows import exists, insert, select, select_existing, select_one

Role = Literal["user", "admin"]

TOKEN_PREFIX = "hk_"
_TOKEN_BYTES = 32
_MAX_NAME = 64
_TOUCH_SECONDS = 60.0
_OWNED = ("keys", "conversations", "facts", "tasks", "assistants", "responses", "requests")


class KeyInfo(Struct, frozen=True, kw_only=True):
    """A key without its secret. Times are Unix seconds; ``owner`` fences the key's data and KV cache."""

    id: str
    name: str
    role: Role
    owner: str
    created_at: float
    last_used_at: float | None
    revoked_at: float | None


def create_key(
    connection: apsw.Connection, name: str, role: Role, owner: str | None = None
) -> tuple[KeyInfo, str]:
    """Create a key; its token (``hk_…``) is returned only here.

    Keys with the same ``owner`` share that owner's data; by default each key is an owner of its own. Raises
    InvalidRequestError when the name is empty, too long, unprintable, or taken by an active key.
    """
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or name != name.strip():
        raise InvalidRequestError(
            f"a key's name has 1 to {_MAX_NAME} printable characters, without spaces at its ends",
            param="name",
        )
    if role not in ("user", "admin"):
        raise InvalidRequestError(f"`{role}` is not a role: use `user` or `admin`", param="role")
    key_id, token = secrets.token_hex(4), TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
    try:
        row = {"id": key_id, "name": name, "role": role, "owner": owner or f"key-{key_id}"}
        insert(connection, "keys", row | {"hash": _digest(token), "created_at": time.time()})
    except apsw.ConstraintError:
        raise InvalidRequestError(
            f"a key named `{name}` exists: revoke it first, or choose another name", param="name"
        ) from None
    return _get_key(connection, key_id), token


def verify_key(connection: apsw.Connection, token: str) -> KeyInfo | None:
    """The active key of this token, or None. Only reads; :func:`touch_key` notes the use.

    The search is by the token's hash, so its timing reveals nothing about a token.
    """
    digest = _digest(token)
    row = connection.execute("SELECT id, hash FROM keys WHERE hash = ? AND revoked_at IS NULL", (digest,)).get
    if row is None or not hmac.compare_digest(row[1], digest):
        return None
    return _get_key(connection, row[0])


def touch_key(connection: apsw.Connection, key: KeyInfo) -> None:
    """Store the time of last use; call it only when :func:`needs_touch`."""
    connection.execute("UPDATE keys SET last_used_at = ? WHERE id = ?", (time.time(), key.id))


def needs_touch(key: KeyInfo) -> bool:
    """Whether the stored time of last use is older than a minute; saves a disk write per request."""
    return key.last_used_at is None or time.time() - key.last_used_at > _TOUCH_SECONDS


def list_keys(connection: apsw.Connection) -> list[KeyInfo]:
    """All keys, including revoked ones, oldest first."""
    return select(connection, KeyInfo, "keys ORDER BY created_at, rowid")


def revoke_key(connection: apsw.Connection, which: str) -> KeyInfo:
    """Revoke the active key with this id or name. Raises NotFoundError."""
    source = "keys WHERE revoked_at IS NULL AND (id = ?1 OR name = ?1) ORDER BY id = ?1 DESC LIMIT 1"
    missing = f"no active key has the id or name `{which}`: `hearth key list` shows them"
    key = select_existing(connection, KeyInfo, source, (which,), missing, None)
    connection.execute("UPDATE keys SET revoked_at = ? WHERE id = ?", (time.time(), key.id))
    return _get_key(connection, key.id)


def any_keys(connection: apsw.Connection) -> bool:
    """Whether a key was ever created.

    Revoked keys count: revoking the last one must close the server to everybody, not open it.
    """
    return exists(connection, "keys")


def check_owner(connection: apsw.Connection, owner: str) -> None:
    """Raise NotFoundError for an owner without a key and without data; `local` is everybody without keys."""
    if owner == "local" or any(exists(connection, f"{table} WHERE owner = ?", (owner,)) for table in _OWNED):
        return
    named = select(
        connection, KeyInfo, "keys WHERE id = ?1 OR name = ?1 ORDER BY created_at, rowid", (owner,)
    )
    remedy = (
        f"what requests with the key {named[-1].name} store belongs to {named[-1].owner}"
        if named
        else "an owner is `local`, or `key-ID` with an ID of `hearth key list`"
    )
    raise NotFoundError(f"there is no owner `{owner}`: {remedy}", param="owner")


def _get_key(connection: apsw.Connection, key: str) -> KeyInfo:
    found = select_one(connection, KeyInfo, "keys WHERE id = ?", (key,))
    assert found is not None
    return found


def _digest(token: str) -> bytes:
    # A fast hash is enough: a token has 256 random bits and cannot be guessed.
    return hashlib.blake2b(
        token.encode("utf-8", "surrogatepass"), digest_size=32, person=b"hearth key"
    ).digest()
