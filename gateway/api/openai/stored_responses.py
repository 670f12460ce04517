"""GET and DELETE /v1/responses/{id}."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.api.http.endpoint import Endpoint
from gateway.api.openai.responses import ResponseReply
from gateway.api.parsing.fields import Body, invalid
from gateway.api.parsing.paging import query_of
from gateway.api.services import ApiRequest
from gateway.base.errors import NotFoundError
from gateway.store.responses import StoredResponse, erase_response, get_response, items_of


class ResponseQuery(Body, frozen=True):
    """No parameters."""


class ItemsQuery(Body, frozen=True):
    order: Literal["asc", "desc"] = "desc"
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    after: Annotated[str, Meta(min_length=1, description="`last_id` of the previous page.")] | None = None


class DeletedResponse(Struct, frozen=True):
    id: str
    object: Literal["response"] = "response"
    deleted: bool = True


class ItemList(Struct, frozen=True, kw_only=True):
    """Items, those of earlier responses included, the last one first unless ``order`` is ``asc``."""

    object: Literal["list"] = "list"
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


def _missing(response: str) -> NotFoundError:
    return NotFoundError(
        f"Response with id '{response[:256]}' not found.", code="response_not_found", param="id"
    )


async def _found(request: ApiRequest) -> StoredResponse:
    found = await request.read(lambda c: get_response(c, request.owner, request.path_id))
    if found is None:
        raise _missing(request.path_id)
    return found


async def show(request: ApiRequest) -> dict[str, Any]:
    """A stored response."""
    query_of(request, ResponseQuery)
    return (await _found(request)).response


async def erase(request: ApiRequest) -> DeletedResponse:
    """Erase a stored response and the record of its request, also on disk."""
    services, response = request.services, request.path_id
    if not await request.write(lambda c: erase_response(c, request.owner, response)):
        raise _missing(response)
    await services.conversations.edits.forget_text(request.owner)
    return DeletedResponse(response)


async def input_items(request: ApiRequest, asked: ItemsQuery) -> ItemList:
    """The items that a stored response answers, with those of the responses before it."""
    stored = await _found(request)
    before = stored.previous
    earlier = await request.read(lambda c: items_of(c, request.owner, before)) if before else []
    items = [*(earlier if isinstance(earlier, list) else []), *stored.input]
    if asked.order == "desc":
        items.reverse()
    ids = [item["id"] for item in items]
    if asked.after is not None and asked.after not in ids:
        raise invalid("after", "the response has no item with this id")
    start = ids.index(asked.after) + 1 if asked.after is not None else 0
    page = items[start : start + asked.limit]
    return ItemList(
        data=page,
        first_id=page[0]["id"] if page else None,
        last_id=page[-1]["id"] if page else None,
        has_more=start + asked.limit < len(items),
    )


_ONE = "/v1/responses/{id}"
ENDPOINTS = (
    Endpoint("GET", _ONE, show, reply=ResponseReply),
    Endpoint("DELETE", _ONE, erase, reply=DeletedResponse),
    Endpoint("GET", f"{_ONE}/input_items", input_items, reply=ItemList, query=ItemsQuery),
)
