"""DELETE /v1/requests: erases a user's records from the request log."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request

from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.paging import query_of
from gateway.api.services import caller_of, services_of
from gateway.base.redact import redact
from gateway.store.request_log import erase_records_of


class EraseQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """DELETE /v1/requests: the user whose records are erased."""

    user: Annotated[str, Meta(min_length=1, max_length=256)]


class ErasedRecords(Struct, frozen=True):
    """How many records were erased."""

    user: str
    requests: int


async def erase(request: Request) -> ErasedRecords:
    """Erase the records of the caller's requests with this ``user``, also on disk."""
    services, owner = services_of(request), caller_of(request).owner
    user = query_of(request, EraseQuery).user
    # The log stores names redacted.
    erased = await services.database.write(lambda c: erase_records_of(c, owner, redact(user)[0]))
    await services.database.truncate_log()
    await services.inference.forget(owner)
    return ErasedRecords(user, erased)


ENDPOINTS = (Endpoint("DELETE", "/v1/requests", erase, "user", reply=ErasedRecords, query=EraseQuery),)
