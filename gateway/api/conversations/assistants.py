"""/v1/assistants: characters with a biography and one memory over all their conversations."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

import apsw
import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.api.conversations.replies import (
    AssistantPage,
    AssistantReply,
    BiographyPage,
    Erased,
    ReflectionPage,
    listed,
    shown,
)
from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.fields import Body
from gateway.api.parsing.paging import Paged, PagedByTime, pair
from gateway.api.services import ApiRequest
from gateway.base.redact import without_secrets
from gateway.store.memory.assistants import (
    Assistant,
    add_assistant,
    get_assistant,
    list_assistants,
    list_biographies,
    list_reflections,
    save_assistant,
)

Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=120,
        pattern=r"^[^\s:](?:[^\n:]*[^\s:])?$",
        description="one line without colons, and without spaces at its ends",
    ),
]
Text = Annotated[str, Meta(max_length=8000)]


class NewAssistant(Body, frozen=True):
    """POST /v1/assistants. The name is unique; participants of conversations are known by it."""

    name: Name
    biography: Text = ""


class AssistantChange(Body, frozen=True, kw_only=True):
    """PATCH /v1/assistants/{id}. A changed biography is its next version."""

    name: Name | UnsetType = UNSET
    biography: Text | UnsetType = UNSET


async def create(request: ApiRequest, body: NewAssistant) -> Struct:
    """A new assistant."""
    body, redactions = without_secrets(body)
    now = time.time()
    assistant = Assistant(
        id=str(uuid4()),
        owner=request.owner,
        version=1,
        created_at=now,
        updated_at=now,
        redactions=redactions,
        **msgspec.structs.asdict(body),
    )
    await request.write(lambda c: add_assistant(c, assistant))
    return shown(assistant)


async def list_all(request: ApiRequest, asked: PagedByTime) -> dict[str, Any]:
    """The caller's assistants, newest first."""
    select = partial(list_assistants, owner=request.owner)
    return await listed(request, asked, select, lambda rows: pair(rows[-1].created_at, rows[-1].id))


async def show(request: ApiRequest) -> Struct:
    """One assistant, by its id or its name."""
    return shown(await _assistant_of(request))


async def change(request: ApiRequest, body: AssistantChange) -> Struct:
    """Rename an assistant, or store the next version of its biography."""
    body, redactions = without_secrets(body)
    name, owner = request.path_id, request.owner
    given = {n: v for n in body.__struct_fields__ if (v := getattr(body, n)) is not UNSET}

    def store(connection: apsw.Connection) -> Assistant:
        old = get_assistant(connection, name, owner)
        new = msgspec.structs.replace(
            old,
            **given,
            version=old.version + (given.get("biography", old.biography) != old.biography),
            updated_at=time.time(),
            redactions=old.redactions + redactions,
        )
        save_assistant(connection, new)
        return new

    return shown(await request.write(store))


async def delete(request: ApiRequest) -> Struct:
    """Erase an assistant with its biographies, its reflections and the recorded prompts that show them.

    Its conversations stay, without an assistant.
    """
    assistant = await _assistant_of(request)
    await request.services.conversations.edits.erase_assistant(assistant)
    return Erased(assistant.id, True)


async def biographies(request: ApiRequest, asked: Paged) -> dict[str, Any]:
    """All versions of the biography, newest first."""
    select = partial(list_biographies, assistant=(await _assistant_of(request)).id)
    return await listed(request, asked, select, lambda rows: rows[-1].version)


async def reflections(request: ApiRequest, asked: Paged) -> dict[str, Any]:
    """All versions of the reflection over the assistant's conversations, newest first."""
    select = partial(list_reflections, assistant=(await _assistant_of(request)).id)
    return await listed(request, asked, select, lambda rows: rows[-1].version)


async def _assistant_of(request: ApiRequest) -> Assistant:
    """The assistant in the path. Raises NotFoundError, also for one of another owner."""
    owner, name = request.owner, request.path_id
    return await request.read(lambda c: get_assistant(c, name, owner))


_ONE = "/v1/assistants/{id}"
ENDPOINTS = (
    Endpoint("POST", "/v1/assistants", create, NewAssistant, AssistantReply, status=201),
    Endpoint("GET", "/v1/assistants", list_all, reply=AssistantPage, query=PagedByTime),
    Endpoint("GET", _ONE, show, reply=AssistantReply),
    Endpoint("PATCH", _ONE, change, AssistantChange, AssistantReply),
    Endpoint("DELETE", _ONE, delete, reply=Erased),
    Endpoint("GET", f"{_ONE}/biographies", biographies, reply=BiographyPage, query=Paged),
    Endpoint("GET", f"{_ONE}/reflections", reflections, reply=ReflectionPage, query=Paged),
)
