"""/v1/facts: what was learned about the caller, to look at, correct, forget, and restore."""

from __future__ import annotations

import time
from typing import Annotated

import apsw
import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import JSON, Endpoint, json_reply
from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.paging import Paged, page, query_of
from gateway.api.services import caller_of, services_of
from gateway.base.errors import InvalidRequestError
from gateway.base.redact import redact
from gateway.store.memory.facts import (
    Fact,
    NewFact,
    Scope,
    end_fact,
    get_fact,
    list_facts,
    put_fact,
    undo_fact,
)

Key = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{1,40}(: [a-z0-9_]{1,60})?$", max_length=104)]
Text = Annotated[str, Meta(min_length=1, max_length=1000)]


class NewFactBody(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/facts: a fact that the user enters."""

    key: Key
    text: Text


class FactChange(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/facts/{id}: a new text."""

    text: Text


class FactQuery(Paged, frozen=True, kw_only=True):
    """GET /v1/facts."""

    ended: bool = False


class FactReply(Struct, frozen=True, kw_only=True):
    """A fact in its last version. ``seq`` is the cursor of the list."""

    seq: int
    id: str
    scope: Scope
    scope_id: str
    key: str
    text: str
    quote: str
    conversation: str | None
    message: int | None
    reason: str
    valid_from: float
    ended_at: float | None
    redactions: int

    @classmethod
    def of(cls, fact: Fact) -> FactReply:
        """As its owner sees it."""
        return cls(**{name: getattr(fact, name) for name in cls.__struct_fields__})


class FactPage(Struct, frozen=True):
    """A page of facts, newest first; ``next`` is the cursor of the page after it."""

    data: list[FactReply]
    next: int | None


class Undone(Struct, frozen=True):
    """The fact as it is now; null when its creation was undone."""

    id: str
    fact: FactReply | None


async def list_all(request: Request) -> Response:
    """The caller's facts, the newest first; ``ended=true`` shows all versions."""
    asked, owner = query_of(request, FactQuery), caller_of(request).owner
    rows = await services_of(request).database.read(
        lambda c: list_facts(c, owner, limit=asked.limit, before=asked.cursor, ended=asked.ended)
    )
    return json_reply(page([FactReply.of(row) for row in rows], asked.limit, rows[-1].seq if rows else None))


async def show(request: Request) -> Response:
    """One fact."""
    name, owner = request.path_params["id"], caller_of(request).owner
    return json_reply(
        FactReply.of(await services_of(request).database.read(lambda c: get_fact(c, name, owner)))
    )


async def create(request: Request) -> Response:
    """A fact that the user enters; one of the same key is superseded."""
    body = convert(decode_object(await request.body()), NewFactBody)
    owner = caller_of(request).owner

    def store(connection: apsw.Connection) -> Fact:
        found = put_fact(connection, _entered(owner, body.key, body.text))
        if found is None:
            raise InvalidRequestError(f"there is a fact `{body.key}` with this text already", param="text")
        return found

    return json_reply(FactReply.of(await services_of(request).database.write(store)), 201)


async def change(request: Request) -> Response:
    """A new version of a fact."""
    name, owner = request.path_params["id"], caller_of(request).owner
    body = convert(decode_object(await request.body()), FactChange)

    def store(connection: apsw.Connection) -> Fact:
        old = get_fact(connection, name, owner)
        if old.ended_at is not None:
            raise InvalidRequestError("this fact was deleted; undo that first", param="id")
        new = _entered(owner, old.key, body.text)
        put_fact(connection, msgspec.structs.replace(new, scope=old.scope, scope_id=old.scope_id))
        return get_fact(connection, name, owner)

    return json_reply(FactReply.of(await services_of(request).database.write(store)))


async def delete(request: Request) -> Response:
    """Forget a fact; undo restores it."""
    name, owner = request.path_params["id"], caller_of(request).owner
    ended = await services_of(request).database.write(
        lambda c: end_fact(c, name, owner, now=time.time(), reason="deleted by the user")
    )
    return json_reply(FactReply.of(ended))


async def undo(request: Request) -> Response:
    """Take the last change back; ``{"id", "fact": null}`` when that was its creation."""
    name, owner = request.path_params["id"], caller_of(request).owner
    left = await services_of(request).database.write(lambda c: undo_fact(c, name, owner))
    return json_reply(Undone(name, FactReply.of(left) if left else None))


def _entered(owner: str, key: str, text: str) -> NewFact:
    clean, redactions = redact(text.strip())
    return NewFact(
        owner=owner,
        scope="owner",
        scope_id="",
        key=key,
        text=clean,
        quote="",
        conversation=None,
        message=None,
        reason="entered by the user",
        valid_from=time.time(),
        redactions=redactions,
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/facts", list_all, "user", reply=FactPage, query=FactQuery),
    Endpoint("POST", "/v1/facts", create, "user", (JSON,), NewFactBody, FactReply, status=201),
    Endpoint("GET", "/v1/facts/{id}", show, "user", reply=FactReply),
    Endpoint("PATCH", "/v1/facts/{id}", change, "user", (JSON,), FactChange, FactReply),
    Endpoint("DELETE", "/v1/facts/{id}", delete, "user", reply=FactReply),
    Endpoint("POST", "/v1/facts/{id}/undo", undo, "user", reply=Undone),
)
