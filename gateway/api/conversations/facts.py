"""/v1/facts: facts about the caller; list, correct, delete and restore them."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Any

import apsw
import msgspec
from msgspec import Meta, Struct, defstruct

from gateway.api.conversations.replies import FactPage, FactReply, listed, shown
from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.fields import Body, invalid
from gateway.api.parsing.paging import Paged
from gateway.api.services import ApiRequest
from gateway.base.redact import redact
from gateway.store.memory.facts import Fact, NewFact, end_fact, get_fact, list_facts, put_fact, undo_fact

Key = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9_]{1,40}(: [a-z0-9_]{1,60})?$",
        max_length=104,
        description="a name of lower-case letters, digits and underscores, such as home_city or pet: rex",
    ),
]
Text = Annotated[str, Meta(min_length=1, max_length=1000)]


class NewFactBody(Body, frozen=True):
    key: Key
    text: Text


class FactChange(Body, frozen=True):
    text: Text


class FactQuery(Paged, frozen=True, kw_only=True):
    ended: bool = False


# The fact after undo; null when that reverted its creation.
Undone: Any = defstruct("Undone", [("id", str), ("fact", FactReply | None)], frozen=True, module=__name__)


async def list_all(request: ApiRequest, asked: FactQuery) -> dict[str, Any]:
    """The caller's facts, newest first; ``ended=true`` includes earlier versions."""
    select = partial(list_facts, owner=request.owner, ended=asked.ended)
    return await listed(request, asked, select, lambda rows: rows[-1].seq)


async def show(request: ApiRequest) -> Struct:
    """One fact."""
    return shown(await request.read(lambda c: get_fact(c, request.path_id, request.owner)))


async def create(request: ApiRequest, body: NewFactBody) -> Struct:
    """Enter a fact; it supersedes one with the same key."""
    owner = request.owner

    def store(connection: apsw.Connection) -> Fact:
        found = put_fact(connection, _entered(owner, body.key, body.text))
        if found is None:
            raise invalid("text", f"the fact `{body.key}` has this text already")
        return found

    return shown(await request.write(store))


async def change(request: ApiRequest, body: FactChange) -> Struct:
    """A new version of a fact."""
    name, owner = request.path_id, request.owner

    def store(connection: apsw.Connection) -> Fact:
        old = get_fact(connection, name, owner)
        if old.ended_at is not None:
            raise invalid("id", "this fact was deleted; undo the deletion first")
        new = _entered(owner, old.key, body.text)
        put_fact(connection, msgspec.structs.replace(new, scope=old.scope, scope_id=old.scope_id))
        return get_fact(connection, name, owner)

    return shown(await request.write(store))


async def delete(request: ApiRequest) -> Struct:
    """Delete a fact; undo restores it."""
    ended = await request.write(
        lambda c: end_fact(c, request.path_id, request.owner, now=time.time(), reason="deleted by the user")
    )
    return shown(ended)


async def undo(request: ApiRequest) -> Struct:
    """Revert the last change; ``{"id", "fact": null}`` when that was the fact's creation."""
    left = await request.write(lambda c: undo_fact(c, request.path_id, request.owner))
    undone: Struct = Undone(request.path_id, shown(left) if left else None)
    return undone


def _entered(owner: str, key: str, text: str) -> NewFact:
    clean, redactions = redact(text.strip())
    return NewFact(
        owner=owner,
        key=key,
        text=clean,
        reason="entered by the user",
        valid_from=time.time(),
        redactions=redactions,
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/facts", list_all, reply=FactPage, query=FactQuery),
    Endpoint("POST", "/v1/facts", create, NewFactBody, FactReply, status=201),
    Endpoint("GET", "/v1/facts/{id}", show, reply=FactReply),
    Endpoint("PATCH", "/v1/facts/{id}", change, FactChange, FactReply),
    Endpoint("DELETE", "/v1/facts/{id}", delete, reply=FactReply),
    Endpoint("POST", "/v1/facts/{id}/undo", undo, reply=Undone),
)
