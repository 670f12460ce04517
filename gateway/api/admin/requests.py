"""DELETE /v1/requests and /v1/data: erase a user's records from the request log, and all that an owner has stored."""

from __future__ import annotations

from typing import Annotated

import apsw
from msgspec import Meta, Struct

from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.fields import Body
from gateway.api.services import ApiRequest
from gateway.base.errors import ForbiddenError
from gateway.base.redact import redact
from gateway.store.keys import check_owner
from gateway.store.request_log import erase_records_of
from gateway.store.responses import erase_responses_of


class EraseQuery(Body, frozen=True):
    user: Annotated[str, Meta(min_length=1, max_length=256)]


class OwnerQuery(Body, frozen=True):
    """Named, so that no stray request erases everything."""

    owner: Annotated[str, Meta(min_length=1, max_length=300)]


class ErasedData(Struct, frozen=True):
    """``erased``: rows by table, without those that went with them."""

    owner: str
    erased: dict[str, int]


class ErasedRecords(Struct, frozen=True):
    user: str
    requests: int


async def erase(request: ApiRequest, asked: EraseQuery) -> ErasedRecords:
    """Erase the records of the caller's requests with this ``user``, and its stored responses, also on disk."""
    services, owner, user = request.services, request.owner, asked.user
    # Names are stored redacted.
    stored = redact(user)[0]

    def work(connection: apsw.Connection) -> int:
        erase_responses_of(connection, owner, stored)
        return erase_records_of(connection, owner, stored)

    erased = await services.database.write(work)
    await services.conversations.edits.forget_text(owner)
    return ErasedRecords(user, erased)


async def erase_data(request: ApiRequest, asked: OwnerQuery) -> ErasedData:
    """Erase everything that was stored for the owner: the caller, or, for an admin, anybody. Keys stay."""
    owner = asked.owner
    if owner != request.owner and request.caller.role != "admin":
        raise ForbiddenError(
            "this key may erase only what belongs to it: another owner's data needs an admin's"
        )
    await request.read(lambda c: check_owner(c, owner))
    return ErasedData(owner, await request.services.conversations.edits.erase_owner(owner))


ENDPOINTS = (
    Endpoint("DELETE", "/v1/requests", erase, reply=ErasedRecords, query=EraseQuery),
    Endpoint("DELETE", "/v1/data", erase_data, reply=ErasedData, query=OwnerQuery),
)
