"""/v1/conversations. Conversations of other owners do not exist for the caller."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any
from uuid import uuid4

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from gateway.api.conversations.messages import NewMessageBody, PostReply, post_message
from gateway.api.conversations.replies import (
    ConversationPage,
    ConversationReply,
    Erased,
    MessagePage,
    RoundPage,
    RoundReply,
    StoredMessageReply,
    SummaryPage,
    followed,
    listed,
    shown,
)
from gateway.api.http.endpoint import SSE, Endpoint
from gateway.api.parsing.fields import Body, invalid
from gateway.api.parsing.paging import Paged, PagedByTime, pair
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import until_disconnect
from gateway.base.errors import ConfigurationError, NotFoundError
from gateway.base.redact import without_secrets
from gateway.base.structs import view
from gateway.memory.compose import summary_text
from gateway.memory.planning.budget import time_zone
from gateway.memory.types import Block, LeftOut
from gateway.store.code.projects import CodeProject, project_of
from gateway.store.memory.assistants import Assistant, get_assistant
from gateway.store.memory.conversations import (
    DEFAULT_POLICIES,
    Conversation,
    ConversationKind,
    PolicyName,
    add_conversation,
    get_conversation,
    list_conversations,
)
from gateway.store.memory.messages import list_rounds, page_of_messages
from gateway.store.memory.summaries import current_summary, list_summaries

Name = Annotated[str, Meta(min_length=1, max_length=120)]
Title = Annotated[str, Meta(max_length=200)]
Participants = Annotated[list[Name], Meta(max_length=256)]
Prose = Annotated[str, Meta(max_length=8000)]
TimeZone = Annotated[str, Meta(max_length=64)]
# Its id or its name; "" and null: none.
WhichAssistant = Annotated[str, Meta(max_length=120)]
WhichProject = Annotated[str, Meta(max_length=400)]


class NewConversation(Body, frozen=True, kw_only=True):
    """POST /v1/conversations. ``policy`` defaults to the configured one.

    That of the kind ``code`` is ``rounds``, of ``channel`` ``window``, of a chat with an assistant ``conversations``.
    """

    kind: ConversationKind = "chat"
    title: Title = ""
    participants: Participants = []
    assistant: WhichAssistant | None = None
    project: WhichProject | None = None
    instructions: Prose = ""
    policy: PolicyName | None = None
    time_zone: TimeZone = ""

    def __post_init__(self) -> None:
        _check_zone(self.time_zone)


class ConversationChange(Body, frozen=True, kw_only=True):
    """PATCH /v1/conversations/{id}. A change of ``kind`` leaves the policy, a change of ``policy`` the summaries."""

    kind: ConversationKind | UnsetType = UNSET
    title: Title | UnsetType = UNSET
    participants: Participants | UnsetType = UNSET
    assistant: WhichAssistant | UnsetType | None = UNSET
    project: WhichProject | UnsetType | None = UNSET
    instructions: Prose | UnsetType = UNSET
    policy: PolicyName | UnsetType = UNSET
    time_zone: TimeZone | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.time_zone is not UNSET:
            _check_zone(self.time_zone)


class Keeping(Body, frozen=True):
    """POST …/keep. ``message`` is an id; by default the last message with a redacted secret."""

    message: Annotated[str, Meta(min_length=1, max_length=128)] | None = None


class Conversion(Body, frozen=True):
    """POST …/convert. ``to`` is a prompt version; by default the loaded version of each prompt."""

    to: Annotated[int, Meta(ge=1)] | None = None


class ContextReply(Struct, frozen=True, kw_only=True):
    """The blocks of the next prompt, and what it leaves out."""

    blocks: list[Block]
    left_out: list[LeftOut]
    total: int
    limit: int
    ceiling: int
    floor: int


class CompactionReply(Struct, frozen=True):
    """How many summaries were made, and how many of a conversion were rejected and left as they are."""

    id: str
    summaries: int
    rejected: int = 0


class CurrentSummary(Struct, frozen=True):
    """The summary of the messages up to ``last`` (``seq``); empty and 0 before there is one."""

    id: str
    text: str
    last: int


class Forgotten(Struct, frozen=True):
    """How many messages were erased, including the replies to them."""

    id: str
    messages: int


class ConversationQuery(PagedByTime, frozen=True, kw_only=True):
    archived: bool = False


class ForgetQuery(Struct, frozen=True):
    """DELETE /v1/conversations/{id}/messages: the speaker whose messages are erased."""

    speaker: Annotated[str, Meta(min_length=1)]


def _check_zone(name: str) -> None:
    try:
        time_zone(name)
    except ConfigurationError:
        raise invalid(
            "time_zone",
            f'this machine has no zone {name!r}; send a name such as Europe/Berlin, or "" for the configured one',
        ) from None


async def _ids(request: ApiRequest, given: dict[str, Any]) -> dict[str, Any]:
    """The ids of the assistant and the project that a body has ``given`` by name. Raises InvalidRequestError."""
    finders: dict[str, Callable[[str], Awaitable[Assistant | CodeProject]]] = {
        "assistant": lambda which: request.read(lambda c: get_assistant(c, which, request.owner)),
        "project": lambda which: request.read_local(lambda c: project_of(c, which)),
    }
    found: dict[str, Any] = {}
    for field, find in finders.items():
        if field in given:
            try:
                found[field] = (await find(given[field])).id if given[field] else None
            except NotFoundError as error:
                raise invalid(field, error.message) from None
    return found


async def create(request: ApiRequest, body: NewConversation) -> Struct:
    """A new conversation."""
    services = request.services
    new, redactions = without_secrets(body)
    now, ids = time.time(), await _ids(request, asdict(new))
    usual = "conversations" if ids["assistant"] else services.settings.memory.policy
    conversation = Conversation(
        id=str(uuid4()),
        owner=request.owner,
        model=services.model.name,
        previous=None,
        created_at=now,
        updated_at=now,
        counted_by=services.model.name,
        redactions=redactions,
        **asdict(new) | ids | {"policy": new.policy or DEFAULT_POLICIES.get(new.kind, usual)},
    )
    await services.database.write(lambda c: add_conversation(c, conversation))
    return shown(conversation)


async def list_all(request: ApiRequest, asked: ConversationQuery) -> dict[str, Any]:
    """The caller's conversations, last used first; ``archived=true`` includes archived ones."""
    select = partial(list_conversations, owner=request.owner, archived=asked.archived)
    return await listed(request, asked, select, lambda rows: pair(rows[-1].updated_at, rows[-1].id))


async def show(request: ApiRequest) -> Struct:
    """One conversation."""
    return shown(await conversation_of(request))


async def change(request: ApiRequest, body: ConversationChange) -> Struct:
    """Change fields of a conversation. They hold from its next message and its next compaction on."""
    services, conversation = request.services, await conversation_of(request)
    body, redactions = without_secrets(body)
    given = {n: v for n in body.__struct_fields__ if (v := getattr(body, n)) is not UNSET}
    given |= await _ids(request, given)
    return shown(await services.conversations.edits.change(conversation, given, redactions))


async def erase(request: ApiRequest) -> Struct:
    """Erase a conversation and everything derived from it."""
    services, conversation = request.services, await conversation_of(request)
    await services.conversations.edits.erase(conversation)
    return Erased(conversation.id, True)


async def messages(request: ApiRequest, asked: Paged) -> dict[str, Any]:
    """A page of the log, oldest first; ``before`` goes back in time."""
    select = partial(page_of_messages, conversation=(await conversation_of(request)).id)
    return await listed(request, asked, select, lambda rows: rows[0].seq)


async def forget(request: ApiRequest, asked: ForgetQuery) -> Struct:
    """Erase the messages of a ``speaker``, the replies to them, and everything derived from both."""
    services, conversation = request.services, await conversation_of(request)
    return Forgotten(conversation.id, await services.conversations.edits.forget(conversation, asked.speaker))


async def summaries(request: ApiRequest, asked: Paged) -> dict[str, Any]:
    """All summaries, newest first, with their spans."""
    select = partial(list_summaries, conversation=(await conversation_of(request)).id)
    return await listed(request, asked, select, lambda rows: rows[-1].seq)


async def current(request: ApiRequest) -> CurrentSummary:
    """The summary of the whole conversation, which idle time brings up to date."""
    conversation = await conversation_of(request)
    found = await request.read(lambda c: current_summary(c, conversation.id))
    return CurrentSummary(conversation.id, summary_text(found) if found else "", found.last if found else 0)


async def context(request: ApiRequest) -> ContextReply:
    """The blocks of the next message's prompt, and what it would leave out."""
    services, conversation = request.services, await conversation_of(request)
    built = await services.conversations.context(conversation)
    budget = built.budget
    return view(
        ContextReply, built.composition, limit=budget.limit, ceiling=budget.ceiling, floor=budget.floor
    )


async def compact(request: ApiRequest) -> Struct:
    """Compact the history now."""
    services, conversation = request.services, await conversation_of(request)
    work = services.conversations.compact(conversation)
    made = await until_disconnect(request.receive, work)
    return CompactionReply(conversation.id, made)


async def keep(request: ApiRequest, wanted: Keeping) -> Struct:
    """Undo the redaction of a message: store it with the secrets that were taken out of it."""
    services, conversation = request.services, await conversation_of(request)
    return shown(await services.conversations.edits.keep(conversation, wanted.message))


async def convert(request: ApiRequest, wanted: Conversion) -> Struct:
    """Rewrite summaries that were made with other prompt versions; ``{"to": version}`` sets the version."""
    services, conversation = request.services, await conversation_of(request)
    work = services.conversations.convert(conversation, wanted.to)
    rewritten, rejected = await until_disconnect(request.receive, work)
    return CompactionReply(conversation.id, rewritten, rejected)


async def rollover(request: ApiRequest) -> Struct:
    """Archive the conversation and continue in a new one from its summary."""
    services, conversation = request.services, await conversation_of(request)
    work = services.conversations.rollover(conversation)
    return shown(await until_disconnect(request.receive, work))


async def events(request: ApiRequest) -> object:
    """Events of the conversation: compaction, facts, tasks. Ends when the conversation is erased.

    Ends with an ``error`` when the caller's key is revoked.
    """
    news = request.services.conversations.news(await conversation_of(request))
    return followed(request, news, lambda item: (item.kind, item.detail))


async def conversation_of(request: ApiRequest) -> Conversation:
    """The conversation in the path. Raises NotFoundError, also for one of another owner."""
    owner, name = request.owner, request.path_id
    return await request.read(lambda c: get_conversation(c, name, owner))


async def post(request: ApiRequest, body: NewMessageBody) -> object:
    """Post a message and get the reply."""
    return await post_message(request, await conversation_of(request), body)


class Mark(Body, frozen=True):
    """Whether a round, or a message and its code, failed. What failed stays out of prompts and summaries."""

    failed: bool


async def rounds(request: ApiRequest, asked: Paged) -> dict[str, Any]:
    """A page of the log by rounds, oldest first; ``before`` goes back to earlier rounds."""
    select = partial(list_rounds, conversation=(await conversation_of(request)).id)
    return await listed(request, asked, select, lambda rows: rows[0].round)


async def mark_round(request: ApiRequest, mark: Mark) -> Struct:
    """Mark all messages of a round as failed, or as not failed."""
    conversation = await conversation_of(request)
    number = str(request.path_params["round"])
    if not (number.isascii() and number.isdigit() and len(number) < 16):
        raise NotFoundError(f"there is no round `{number[:100]}`: rounds are numbered from 1", param="round")
    return shown(
        await request.services.conversations.edits.mark(conversation, mark.failed, number=int(number))
    )


async def mark_message(request: ApiRequest, mark: Mark) -> Struct:
    """Mark a message as failed, or as not failed."""
    conversation = await conversation_of(request)
    message = str(request.path_params["message"])
    marked = await request.services.conversations.edits.mark(conversation, mark.failed, message=message)
    return shown(marked.messages[0])


_ONE = "/v1/conversations/{id}"
ENDPOINTS = (
    Endpoint(
        "POST", "/v1/conversations", create, NewConversation, ConversationReply, status=201, optional=True
    ),
    Endpoint("GET", "/v1/conversations", list_all, reply=ConversationPage, query=ConversationQuery),
    Endpoint("GET", _ONE, show, reply=ConversationReply),
    Endpoint("PATCH", _ONE, change, ConversationChange, ConversationReply),
    Endpoint("DELETE", _ONE, erase, reply=Erased),
    Endpoint("POST", f"{_ONE}/messages", post, NewMessageBody, PostReply, SSE),
    Endpoint("GET", f"{_ONE}/messages", messages, reply=MessagePage, query=Paged),
    Endpoint("DELETE", f"{_ONE}/messages", forget, reply=Forgotten, query=ForgetQuery),
    Endpoint("GET", f"{_ONE}/summaries", summaries, reply=SummaryPage, query=Paged),
    Endpoint("GET", f"{_ONE}/summary", current, reply=CurrentSummary),
    Endpoint("GET", f"{_ONE}/context", context, reply=ContextReply),
    Endpoint("POST", f"{_ONE}/compact", compact, reply=CompactionReply),
    Endpoint("POST", f"{_ONE}/keep", keep, Keeping, StoredMessageReply, optional=True),
    Endpoint("POST", f"{_ONE}/convert", convert, Conversion, CompactionReply, optional=True),
    Endpoint("POST", f"{_ONE}/rollover", rollover, reply=ConversationReply, status=201),
    Endpoint("GET", f"{_ONE}/events", events, streams=SSE),
    Endpoint("GET", f"{_ONE}/rounds", rounds, reply=RoundPage, query=Paged),
    Endpoint("PATCH", f"{_ONE}/rounds/{{round}}", mark_round, Mark, RoundReply),
    Endpoint("PATCH", f"{_ONE}/messages/{{message}}", mark_message, Mark, StoredMessageReply),
)
