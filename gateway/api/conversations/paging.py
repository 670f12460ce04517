"""Query parameters of the lists: ``limit`` and a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from gateway.errors import InvalidRequestError

DEFAULT_LIMIT = 50
MAX_LIMIT = 200


def limit_of(request: Request) -> int:
    """``limit``, 1 to 200. Raises InvalidRequestError."""
    return _number(request, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT


def before_of(request: Request) -> int | None:
    """``before``, the ``seq`` of the last row seen. Raises InvalidRequestError."""
    return _number(request, "before", 0, 2**63 - 1)


def before_time_of(request: Request) -> float | None:
    """``before``, the ``updated_at`` of the last row seen. Raises InvalidRequestError."""
    text = request.query_params.get("before")
    try:
        return None if text is None else float(text)
    except ValueError:
        raise InvalidRequestError("`before` is the `next` of the page before", param="before") from None


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
