"""SQL of approvals: calls of tools that an owner has approved for every run."""

from __future__ import annotations

import re
from typing import Any

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.store.rows import select

ANY = "{{*}}"


class Pattern(Struct, frozen=True, kw_only=True):
    """Calls of a tool, as its description was (``version``): the arguments, with :data:`ANY` for any text."""

    tool: str
    version: str
    arguments: dict[str, Any]

    def matches(self, tool: str, version: str, arguments: dict[str, Any]) -> bool:
        return (
            (tool, version) == (self.tool, self.version)
            and arguments.keys() == self.arguments.keys()
            and all(_matches(self.arguments[name], value) for name, value in arguments.items())
        )


class Approval(Struct, frozen=True, kw_only=True):
    """An owner's approval of every call that matches."""

    id: int
    tool: str
    version: str
    pattern: dict[str, Any]
    created_at: float

    @property
    def calls(self) -> Pattern:
        return Pattern(tool=self.tool, version=self.version, arguments=self.pattern)


def add_approval(connection: apsw.Connection, owner: str, pattern: Pattern, now: float) -> None:
    """Approve every call that matches, once."""
    arguments = msgspec.json.encode(pattern.arguments, order="sorted").decode()
    connection.execute(
        "INSERT INTO approvals (owner, tool, version, pattern, created_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (owner, pattern.tool, pattern.version, arguments, now),
    )


def list_approvals(connection: apsw.Connection, owner: str) -> list[Approval]:
    return select(connection, Approval, "approvals WHERE owner = ? ORDER BY id", (owner,))


def revoke_approval(connection: apsw.Connection, owner: str, number: int) -> None:
    """Raises NotFoundError."""
    connection.execute("DELETE FROM approvals WHERE owner = ? AND id = ?", (owner, number))
    if not connection.changes():
        raise NotFoundError(f"there is no approval {number}", param="id")


def _matches(pattern: Any, value: Any) -> bool:
    if not isinstance(pattern, str) or not isinstance(value, str):
        return bool(pattern == value)
    return re.fullmatch(".*".join(map(re.escape, pattern.split(ANY))), value, re.S) is not None
