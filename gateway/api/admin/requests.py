"""/v1/requests: what the request log has of a client's users, for them to have it erased."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import Endpoint, json_reply
from gateway.api.parsing.paging import query_of
from gateway.api.services import caller_of, services_of
from gateway.base.redact import redact
from gateway.store.request_log import erase_records_of


class EraseQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """DELETE /v1/requests: whose records go."""

    user: Annotated[str, Meta(min_length=1, max_length=256)]


class ErasedRecords(Struct, frozen=True):
    """How many records went."""

    user: str
    requests: int


async def erase(request: Request) -> Response:
    """Erase the records of the caller's requests that named this ``user``, on disk as well."""
    services, owner = services_of(request), caller_of(request).owner
    user = query_of(request, EraseQuery).user
    # As it was stored.
    gone = await services.database.write(lambda c: erase_records_of(c, owner, redact(user)[0]))
    await services.database.truncate_log()
    await services.inference.forget(owner)
    return json_reply(ErasedRecords(user, gone))


ENDPOINTS = (Endpoint("DELETE", "/v1/requests", erase, "user", reply=ErasedRecords, query=EraseQuery),)
