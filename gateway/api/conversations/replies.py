"""Reply types of stored rows, and pages of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, defstruct

from gateway.api.parsing.paging import Listed
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import Relay, StreamReply, named_events
from gateway.store.memory.assistants import Assistant, Biography, Reflection
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.facts import Fact
from gateway.store.memory.messages import Round, StoredMessage
from gateway.store.memory.summaries import Summary
from gateway.store.memory.tasks import Task

Row = TypeVar("Row", bound=Struct)
T = TypeVar("T")

_REPLIES: dict[type[Struct], type[Struct]] = {}  # by the struct that each shows


def _public(stored: type[Struct], *private: str, **added: type) -> Any:
    """The struct that shows ``stored`` to its owner."""
    fields = [(each.name, each.type) for each in msgspec.structs.fields(stored) if each.name not in private]
    _REPLIES[stored] = defstruct(
        f"{stored.__name__}Reply", [*fields, *added.items()], frozen=True, kw_only=True, module=__name__
    )
    return _REPLIES[stored]


def _page(name: str, row: Any, cursor: type) -> Any:
    return defstruct(name, [("data", list[row]), ("next", cursor | None)], frozen=True, module=__name__)


AssistantReply = _public(Assistant, "owner")
BiographyReply = _public(Biography)
ReflectionReply = _public(Reflection)
ConversationReply = _public(Conversation, "owner", "counted_by")
StoredMessageReply = _public(StoredMessage, "conversation", "summarized_by", "answers", summarized=bool)
RoundReply = _public(Round, "messages", messages=list[StoredMessageReply])  # type: ignore[valid-type]
SummaryReply = _public(Summary, "conversation")
FactReply = _public(Fact, "owner", "superseded_by")
TaskReply = _public(Task, "owner")

AssistantPage = _page("AssistantPage", AssistantReply, str)
BiographyPage = _page("BiographyPage", BiographyReply, int)
ReflectionPage = _page("ReflectionPage", ReflectionReply, int)
ConversationPage = _page("ConversationPage", ConversationReply, str)
MessagePage = _page("MessagePage", StoredMessageReply, int)
RoundPage = _page("RoundPage", RoundReply, int)
SummaryPage = _page("SummaryPage", SummaryReply, int)
FactPage = _page("FactPage", FactReply, int)
TaskPage = _page("TaskPage", TaskReply, str)


class Erased(Struct, frozen=True):
    id: str
    deleted: bool


def shown(row: Struct) -> Struct:
    """The reply for a stored row."""
    values = msgspec.structs.asdict(row)
    if isinstance(row, StoredMessage):
        values["summarized"] = row.summarized_by is not None
    if isinstance(row, Round):
        values["messages"] = [shown(message) for message in row.messages]
    return msgspec.convert(values, _REPLIES[type(row)])


async def listed(
    request: ApiRequest,
    asked: Listed,
    select: Callable[..., list[Row]],
    cursor: Callable[[list[Row]], object],
) -> dict[str, Any]:
    """A page of what ``select`` returns for a connection, a ``limit`` and the cursor ``before``.

    ``next`` is the cursor of the following page, null on the last page.
    """
    rows = await request.read(lambda c: select(c, limit=asked.limit, before=asked.cursor))
    return {"data": [shown(row) for row in rows], "next": cursor(rows) if len(rows) == asked.limit else None}


def followed(
    request: ApiRequest, source: AsyncIterator[T], named: Callable[[T], tuple[str, object]]
) -> StreamReply[T]:
    """Stream events while the caller listens and its key is valid."""
    recheck = partial(request.services.auth.authenticate, request.headers, "user")
    relay = Relay(source, request.services.drain, recheck=recheck)
    return StreamReply(relay, lambda items: named_events(items, request.id, named))
