"""Query parameters of the lists as types: they validate, and the OpenAPI document describes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request

from gateway.api.parsing.fields import convert
from gateway.base.errors import InvalidRequestError

Limit = Annotated[int, Meta(ge=1, le=200, description="Rows at most.")]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1, description="The `next` of the page before.")]
_BETWEEN = "~"

Q = TypeVar("Q", bound=Struct)


class Listed(Struct, frozen=True, kw_only=True):
    """A list; each has a cursor ``before`` of its own kind."""

    limit: Limit = 50


class Paged(Listed, frozen=True, kw_only=True):
    """A page of rows in their order of insertion."""

    before: Seq | UnsetType = UNSET

    @property
    def cursor(self) -> int | None:
        """The ``seq`` of the last row seen; None for the first page."""
        return self.before if isinstance(self.before, int) else None


def query_of(request: Request, kind: type[Q]) -> Q:
    """The query as a struct. Raises InvalidRequestError for an unknown, repeated or unusable parameter."""
    pairs = request.query_params.multi_items()
    given = dict(pairs)
    for name in given:
        if [pair[0] for pair in pairs].count(name) > 1:
            raise InvalidRequestError(f"`{name}` is given twice", param=name)
    return convert(given, kind, strict=False)


def pair(first: object, second: str) -> str:
    """A cursor of a list that is ordered by two fields."""
    return f"{first}{_BETWEEN}{second}"


def halves(cursor: str | UnsetType) -> tuple[str, str] | None:
    """What :func:`pair` has joined; None for the first page."""
    if cursor is UNSET:
        return None
    first, _, second = cursor.partition(_BETWEEN)
    return first, second


def page(rows: Sequence[Any], limit: int, cursor: Any) -> dict[str, Any]:
    """``{"data": […], "next": cursor}``; ``next`` is null on the last page."""
    return {"data": list(rows), "next": cursor if len(rows) == limit else None}
