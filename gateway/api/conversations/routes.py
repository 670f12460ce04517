"""/v1/conversations. Conversations of other owners do not exist for the caller."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request

from gateway.api.conversations.bodies import (
    CompactionReply,
    ContextReply,
    Conversion,
    Erased,
    Forgotten,
    NewConversation,
    NewMessageBody,
    read_optional,
)
from gateway.api.conversations.messages import PostReply, post_message
from gateway.api.conversations.replies import (
    ConversationPage,
    ConversationReply,
    MessagePage,
    SummaryPage,
    SummaryReply,
    listed,
    shown,
    shown_message,
)
from gateway.api.http.endpoint import JSON, SSE, Endpoint
from gateway.api.http.errors import envelope
from gateway.api.parsing.paging import Listed, Paged, halves, pair, query_of
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import Relay, StreamReply, known_error, sse, until_disconnect
from gateway.base.redact import without_secrets
from gateway.memory.hub import News
from gateway.store.memory.conversations import (
    DEFAULT_POLICIES,
    Conversation,
    add_conversation,
    get_conversation,
    list_conversations,
)
from gateway.store.memory.messages import page_of_messages
from gateway.store.memory.summaries import list_summaries


class ConversationQuery(Listed, frozen=True, kw_only=True):
    """GET /v1/conversations."""

    before: Annotated[str, Meta(pattern=r"^[0-9]{1,12}(\.[0-9]{1,9})?~[^~\n]{1,100}$")] | UnsetType = UNSET
    archived: bool = False


class ForgetQuery(Struct, frozen=True):
    """DELETE /v1/conversations/{id}/messages: the speaker whose messages are erased."""

    speaker: Annotated[str, Meta(min_length=1)]


async def create(request: Request) -> Struct:
    """A new conversation."""
    services = services_of(request)
    new, redactions = without_secrets(await read_optional(request, NewConversation))
    now = time.time()
    conversation = Conversation(
        id=str(uuid4()),
        owner=caller_of(request).owner,
        kind=new.kind,
        policy=new.policy or DEFAULT_POLICIES.get(new.kind, services.settings.memory.policy),
        title=new.title,
        participants=new.participants,
        persona=new.persona,
        instructions=new.instructions,
        model=services.model.name,
        previous=None,
        created_at=now,
        updated_at=now,
        counted_by=services.model.name,
        redactions=redactions,
    )
    await services.database.write(lambda c: add_conversation(c, conversation))
    return _shown(conversation)


async def list_all(request: Request) -> dict[str, Any]:
    """The caller's conversations, last used first; ``archived=true`` includes archived ones."""
    asked, owner = query_of(request, ConversationQuery), caller_of(request).owner
    before = halves(asked.before)
    last = (float(before[0]), before[1]) if before else None
    return await listed(
        request,
        lambda c: list_conversations(c, owner, limit=asked.limit, before=last, archived=asked.archived),
        asked.limit,
        _shown,
        lambda rows: pair(rows[-1].updated_at, rows[-1].id),
    )


async def show(request: Request) -> Struct:
    """One conversation."""
    return _shown(await conversation_of(request))


async def erase(request: Request) -> Struct:
    """Erase a conversation and everything derived from it."""
    services, conversation = services_of(request), await conversation_of(request)
    await services.conversations.erase(conversation)
    return Erased(conversation.id, True)


async def messages(request: Request) -> dict[str, Any]:
    """A page of the log, oldest first; ``before`` goes back in time."""
    conversation, asked = await conversation_of(request), query_of(request, Paged)
    return await listed(
        request,
        lambda c: page_of_messages(c, conversation.id, limit=asked.limit, before=asked.cursor),
        asked.limit,
        shown_message,
        lambda rows: rows[0].seq,
    )


async def forget(request: Request) -> Struct:
    """Erase the messages of a ``speaker``, the replies to them, and everything derived from both."""
    services, conversation = services_of(request), await conversation_of(request)
    speaker = query_of(request, ForgetQuery).speaker
    return Forgotten(conversation.id, await services.conversations.forget(conversation, speaker))


async def summaries(request: Request) -> dict[str, Any]:
    """All summaries, newest first, with their spans."""
    conversation, asked = await conversation_of(request), query_of(request, Paged)
    return await listed(
        request,
        lambda c: list_summaries(c, conversation.id, limit=asked.limit, before=asked.cursor),
        asked.limit,
        lambda row: shown(row, SummaryReply),
        lambda rows: rows[-1].seq,
    )


async def context(request: Request) -> ContextReply:
    """The blocks of the next message's prompt, and what it would leave out."""
    services, conversation = services_of(request), await conversation_of(request)
    built = await services.conversations.context(conversation)
    return ContextReply(
        blocks=built.composition.blocks,
        left_out=built.composition.left_out,
        total=built.composition.total,
        limit=built.budget.limit,
        ceiling=built.budget.ceiling,
        floor=built.budget.floor,
    )


async def compact(request: Request) -> Struct:
    """Compact the history now."""
    services, conversation = services_of(request), await conversation_of(request)
    work = services.conversations.compact(conversation)
    made = await until_disconnect(request.receive, work)
    return CompactionReply(conversation.id, made)


async def convert(request: Request) -> Struct:
    """Rewrite summaries that were made with other prompt versions; ``{"to": version}`` sets the version."""
    services, conversation = services_of(request), await conversation_of(request)
    wanted = await read_optional(request, Conversion)
    work = services.conversations.convert(conversation, wanted.to)
    rewritten, rejected = await until_disconnect(request.receive, work)
    return CompactionReply(conversation.id, rewritten, rejected)


async def rollover(request: Request) -> Struct:
    """Archive the conversation and continue in a new one from its summary."""
    services, conversation = services_of(request), await conversation_of(request)
    work = services.conversations.rollover(conversation)
    return _shown(await until_disconnect(request.receive, work))


async def events(request: Request) -> object:
    """Events of the conversation: compaction, facts, tasks. Ends when the conversation is erased.

    Ends with an ``error`` when the caller's key is revoked.
    """
    services, conversation = services_of(request), await conversation_of(request)
    request_id: str = request.state.request_id
    recheck = partial(services.auth.authenticate, request.headers, "user")
    relay: Relay[News] = Relay(services.conversations.news(conversation), services.drain, recheck=recheck)
    return StreamReply(relay, lambda items: _rendered(items, request_id))


async def _rendered(relay: Relay[News], request_id: str) -> AsyncIterator[bytes]:
    try:
        async for item in relay:
            yield sse(item.detail, item.kind)
    except Exception as error:
        yield sse(envelope(known_error(error), request_id), "error")


async def conversation_of(request: Request) -> Conversation:
    """The conversation in the path. Raises NotFoundError, also for one of another owner."""
    owner, name = caller_of(request).owner, request.path_params["id"]
    return await services_of(request).database.read(lambda c: get_conversation(c, name, owner))


async def post(request: Request) -> object:
    """Post a message and get the reply."""
    return await post_message(request, await conversation_of(request))


def _shown(conversation: Conversation) -> Struct:
    return shown(conversation, ConversationReply)  # type: ignore[no-any-return]


_ONE = "/v1/conversations/{id}"
ENDPOINTS = (
    Endpoint(
        "POST", "/v1/conversations", create, "user", (JSON,), NewConversation, ConversationReply, status=201
    ),
    Endpoint("GET", "/v1/conversations", list_all, "user", reply=ConversationPage, query=ConversationQuery),
    Endpoint("GET", _ONE, show, "user", reply=ConversationReply),
    Endpoint("DELETE", _ONE, erase, "user", reply=Erased),
    Endpoint("POST", f"{_ONE}/messages", post, "user", (JSON,), NewMessageBody, PostReply, SSE),
    Endpoint("GET", f"{_ONE}/messages", messages, "user", reply=MessagePage, query=Paged),
    Endpoint("DELETE", f"{_ONE}/messages", forget, "user", reply=Forgotten, query=ForgetQuery),
    Endpoint("GET", f"{_ONE}/summaries", summaries, "user", reply=SummaryPage, query=Paged),
    Endpoint("GET", f"{_ONE}/context", context, "user", reply=ContextReply),
    Endpoint("POST", f"{_ONE}/compact", compact, "user", reply=CompactionReply),
    Endpoint("POST", f"{_ONE}/convert", convert, "user", (JSON,), Conversion, CompactionReply),
    Endpoint("POST", f"{_ONE}/rollover", rollover, "user", reply=ConversationReply, status=201),
    Endpoint("GET", f"{_ONE}/events", events, "user", streams=SSE),
)
