"""Query parameters: ``limit`` and a cursor of the lists, and a speaker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from gateway.errors import InvalidRequestError

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
_BETWEEN = "~"


def limit_of(request: Request) -> int:
    """``limit``, 1 to 200. Raises InvalidRequestError."""
    return _number(request, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT


def before_of(request: Request) -> int | None:
    """``before``, the ``seq`` of the last row seen. Raises InvalidRequestError."""
    return _number(request, "before", 0, 2**63 - 1)


def before_pair_of(request: Request) -> tuple[str, str] | None:
    """``before`` of a list that is ordered by two fields, as :func:`pair` wrote it. Raises InvalidRequestError."""
    text = request.query_params.get("before")
    if text is None:
        return None
    first, mark, second = text.partition(_BETWEEN)
    if not mark:
        raise wrong_cursor()
    return first, second


def pair(first: object, second: str) -> str:
    """A cursor of two fields."""
    return f"{first}{_BETWEEN}{second}"


def wrong_cursor() -> InvalidRequestError:
    """``before`` was made up."""
    return InvalidRequestError("`before` is the `next` of the page before", param="before")


def speaker_of(request: Request) -> str:
    """``speaker``, whose messages are meant. Raises InvalidRequestError."""
    speaker = request.query_params.get("speaker", "")
    if not speaker:
        raise InvalidRequestError("`speaker` names whose messages go: ?speaker=NAME", param="speaker")
    return speaker


def page(rows: Sequence[Any], limit: int, cursor: Any) -> dict[str, Any]:
    """``{"data": […], "next": cursor}``; ``next`` is null on the last page."""
    return {"data": list(rows), "next": cursor if len(rows) == limit else None}


def _number(request: Request, name: str, least: int, most: int) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise InvalidRequestError(f"`{name}` is a whole number from {least} to {most}", param=name)
    return int(text)
