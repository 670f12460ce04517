"""Query parameters as types, which validate them and describe them in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request

from gateway.api.parsing.fields import convert
from gateway.base.errors import InvalidRequestError

Limit = Annotated[int, Meta(ge=1, le=200, description="Maximum number of rows.")]
Seq = Annotated[int, Meta(ge=0, le=2**63 - 1, description="`next` of the previous page.")]
ID_CHARACTERS = "1 to 128 letters, digits, dots, underscores, colons and hyphens"
CURSOR = "`next` of the previous page"
ConversationId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}$", description=ID_CHARACTERS)]
_BETWEEN = "~"

Q = TypeVar("Q", bound=Struct)


class Listed(Struct, frozen=True, kw_only=True):
    """A list; subclasses add ``before``, the `next` of the previous page."""

    limit: Limit = 50

    @property
    def cursor(self) -> object:
        """The value of ``before``; None for the first page."""
        raise NotImplementedError


class Paged(Listed, frozen=True, kw_only=True):
    """A list whose cursor is the ``seq`` of a row."""

    before: Seq | UnsetType = UNSET

    @property
    def cursor(self) -> int | None:
        return self.before if isinstance(self.before, int) else None


class PagedByTime(Listed, frozen=True, kw_only=True):
    """A list whose cursor is the time and the id of a row, as :func:`pair` joins them."""

    before: (
        Annotated[str, Meta(pattern=r"^[0-9]{1,12}(\.[0-9]{1,12})?~[^~\n]{1,100}$", description=CURSOR)]
        | UnsetType
    ) = UNSET

    @property
    def cursor(self) -> tuple[float, str] | None:
        found = halves(self.before)
        return (float(found[0]), found[1]) if found else None


def query_of(request: Request, kind: type[Q]) -> Q:
    """The query as a struct. Raises InvalidRequestError for an unknown, repeated or invalid parameter."""
    pairs = request.query_params.multi_items()
    given = dict(pairs)
    for name in given:
        if [pair[0] for pair in pairs].count(name) > 1:
            raise InvalidRequestError(f"`{name}` is repeated; send it once", param=name)
    return convert(given, kind, strict=False)


def pair(first: object, second: str) -> str:
    """The cursor of a list that is ordered by two fields."""
    return f"{first}{_BETWEEN}{second}"


def halves(cursor: str | UnsetType) -> tuple[str, str] | None:
    """The fields of a :func:`pair`; None for the first page."""
    if cursor is UNSET:
        return None
    first, _, second = cursor.partition(_BETWEEN)
    return first, second
