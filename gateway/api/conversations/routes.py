"""/v1/conversations: made, listed, shown, compacted, rolled over and erased. Foreign ones do not exist."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated
from uuid import uuid4

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.api.conversations.bodies import (
    CompactionReply,
    ContextReply,
    ConversationPage,
    ConversationReply,
    Conversion,
    Erased,
    Forgotten,
    MessagePage,
    NewConversation,
    NewMessageBody,
    PostReply,
    StoredMessageReply,
    SummaryPage,
    SummaryReply,
    parse_conversion,
    parse_new,
    policy_of,
)
from gateway.api.conversations.messages import post_message
from gateway.api.http.endpoint import JSON, SSE, Endpoint, json_reply
from gateway.api.http.errors import envelope
from gateway.api.parsing.paging import Listed, Paged, halves, page, pair, query_of
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import Relay, StreamReply, known_error, sse, until_disconnect
from gateway.base.redact import without_secrets
from gateway.memory.hub import News
from gateway.store.memory.conversations import (
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
    """DELETE /v1/conversations/{id}/messages: whose messages go."""

    speaker: Annotated[str, Meta(min_length=1)]


async def create(request: Request) -> Response:
    """A new conversation."""
    services = services_of(request)
    new, redactions = without_secrets(parse_new(await request.body()))
    now = time.time()
    conversation = Conversation(
        id=str(uuid4()),
        owner=caller_of(request).owner,
        kind=new.kind,
        policy=policy_of(new, services.settings.memory.policy),
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
    return json_reply(ConversationReply.of(conversation), 201)


async def list_all(request: Request) -> Response:
    """The caller's conversations, last used first; ``archived=true`` includes archived ones."""
    asked, owner = query_of(request, ConversationQuery), caller_of(request).owner
    before = halves(asked.before)
    last = (float(before[0]), before[1]) if before else None
    rows = await services_of(request).database.read(
        lambda c: list_conversations(c, owner, limit=asked.limit, before=last, archived=asked.archived)
    )
    shown = [ConversationReply.of(row) for row in rows]
    return json_reply(page(shown, asked.limit, pair(rows[-1].updated_at, rows[-1].id) if rows else None))


async def show(request: Request) -> Response:
    """One conversation."""
    return json_reply(ConversationReply.of(await conversation_of(request)))


async def erase(request: Request) -> Response:
    """Erase a conversation with everything that came from it."""
    services, conversation = services_of(request), await conversation_of(request)
    await services.conversations.erase(conversation)
    return json_reply(Erased(conversation.id, True))


async def messages(request: Request) -> Response:
    """A page of the log, oldest first; ``before`` goes back in time."""
    conversation = await conversation_of(request)
    asked = query_of(request, Paged)
    rows = await services_of(request).database.read(
        lambda c: page_of_messages(c, conversation.id, limit=asked.limit, before=asked.cursor)
    )
    return json_reply(
        page([StoredMessageReply.of(row) for row in rows], asked.limit, rows[0].seq if rows else None)
    )


async def forget(request: Request) -> Response:
    """Erase what one ``speaker`` said, the replies to it, and all that came from both."""
    services, conversation = services_of(request), await conversation_of(request)
    speaker = query_of(request, ForgetQuery).speaker
    return json_reply(Forgotten(conversation.id, await services.conversations.forget(conversation, speaker)))


async def summaries(request: Request) -> Response:
    """The summaries ever made, the newest first, with the spans they stand for."""
    conversation = await conversation_of(request)
    asked = query_of(request, Paged)
    rows = await services_of(request).database.read(
        lambda c: list_summaries(c, conversation.id, limit=asked.limit, before=asked.cursor)
    )
    return json_reply(
        page([SummaryReply.of(row) for row in rows], asked.limit, rows[-1].seq if rows else None)
    )


async def context(request: Request) -> Response:
    """The blocks that the next message's prompt would consist of, and what would be left out."""
    services, conversation = services_of(request), await conversation_of(request)
    built = await services.conversations.context(conversation)
    return json_reply(
        ContextReply(
            blocks=built.composition.blocks,
            left_out=built.composition.left_out,
            total=built.composition.total,
            limit=built.budget.limit,
            ceiling=built.budget.ceiling,
            floor=built.budget.floor,
        )
    )


async def compact(request: Request) -> Response:
    """Compact the history now."""
    services, conversation = services_of(request), await conversation_of(request)
    work = services.conversations.compact(conversation)
    made = await until_disconnect(request.receive, work)
    return json_reply(CompactionReply(conversation.id, made))


async def convert(request: Request) -> Response:
    """Make summaries of other prompt versions again; ``{"to": version}`` insists on one."""
    services, conversation = services_of(request), await conversation_of(request)
    wanted = parse_conversion(await request.body())
    work = services.conversations.convert(conversation, wanted.to)
    rewritten, rejected = await until_disconnect(request.receive, work)
    return json_reply(CompactionReply(conversation.id, rewritten, rejected))


async def rollover(request: Request) -> Response:
    """Archive the conversation and go on in a new one from its summary."""
    services, conversation = services_of(request), await conversation_of(request)
    work = services.conversations.rollover(conversation)
    return json_reply(ConversationReply.of(await until_disconnect(request.receive, work)), 201)


async def events(request: Request) -> ASGIApp:
    """News of the conversation as they happen: compaction, facts, tasks; ends when the conversation is erased.

    When the caller's key is revoked it ends too, with an ``error``.
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
    """The conversation that the path names. Raises NotFoundError, for a foreign one as for a missing one."""
    owner, name = caller_of(request).owner, request.path_params["id"]
    return await services_of(request).database.read(lambda c: get_conversation(c, name, owner))


async def post(request: Request) -> ASGIApp:
    """A message, and the reply to it."""
    return await post_message(request, await conversation_of(request))


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
