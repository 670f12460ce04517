"""GET /v1/conversations/search: the caller's messages by their words, and by meaning with an embedding model."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.paging import ConversationId, Listed
from gateway.api.services import ApiRequest
from gateway.base.structs import view
from gateway.memory.history import excerpt
from gateway.store.memory.conversations import get_conversation
from gateway.store.memory.history import said
from gateway.store.memory.messages import MessageRole


class SearchQuery(Listed, frozen=True, kw_only=True):
    """``conversation`` restricts the search to one."""

    q: Annotated[str, Meta(min_length=1, max_length=2000, description="What was said.")]
    conversation: ConversationId | UnsetType = UNSET
    before: Annotated[int, Meta(ge=0, le=2**31, description="`next` of the previous page.")] | UnsetType = (
        UNSET
    )


class SearchHit(Struct, frozen=True, kw_only=True):
    """A message that was found. ``snippet`` is its text, or the part of it with most words of the query."""

    conversation: str
    title: str
    message: str
    seq: int
    role: MessageRole
    speaker: str
    created_at: float
    snippet: str


class SearchPage(Struct, frozen=True):
    """Hits, best first."""

    data: list[SearchHit]
    next: int | None


async def search(request: ApiRequest, asked: SearchQuery) -> SearchPage:
    """Messages of the caller's conversations, best first; of a very common word the newest 2,000 are ranked."""
    owner = request.owner
    only = None
    if asked.conversation is not UNSET:
        name = asked.conversation
        only = (await request.read(lambda c: get_conversation(c, name, owner))).id
    found = await request.services.conversations.history.search(owner, only, asked.q)
    begin = asked.before if isinstance(asked.before, int) else 0
    end = begin + asked.limit
    rows = await request.read(lambda c: said(c, found[begin:end]))
    hits = [view(SearchHit, row, message=row.id, snippet=excerpt(row.text, asked.q)) for row in rows]
    return SearchPage(hits, end if end < len(found) else None)


ENDPOINTS = (Endpoint("GET", "/v1/conversations/search", search, reply=SearchPage, query=SearchQuery),)
