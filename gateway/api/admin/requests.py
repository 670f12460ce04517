"""DELETE /v1/requests: erases a user's records from the request log."""

from __future__ import annotations

from typing import Annotated

import apsw
from msgspec import Meta, Struct

from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.fields import Body
from gateway.api.parsing.paging import query_of
from gateway.api.services import ApiRequest
from gateway.base.redact import redact
from gateway.store.request_log import erase_records_of
from gateway.store.responses import erase_responses_of


class EraseQuery(Body, frozen=True):
    user: Annotated[str, Meta(min_length=1, max_length=256)]


class ErasedRecords(Struct, frozen=True):
    user: str
    requests: int


async def erase(request: ApiRequest) -> ErasedRecords:
    """Erase the records of the caller's requests with this ``user``, and its stored responses, also on disk."""
    services, owner = request.services, request.owner
    user = query_of(request, EraseQuery).user
    # Names are stored redacted.
    stored = redact(user)[0]

    def work(connection: apsw.Connection) -> int:
        erase_responses_of(connection, owner, stored)
        return erase_records_of(connection, owner, stored)

    erased = await services.database.write(work)
    await services.conversations.edits.forget_text(owner)
    return ErasedRecords(user, erased)


ENDPOINTS = (Endpoint("DELETE", "/v1/requests", erase, "user", reply=ErasedRecords, query=EraseQuery),)
