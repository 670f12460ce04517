"""/v1/conversations/{id}/rounds, and marks on rounds and messages that failed."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Struct

from gateway.api.conversations.replies import RoundPage, RoundReply, StoredMessageReply, listed, shown
from gateway.api.conversations.routes import conversation_of
from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.fields import Body
from gateway.api.parsing.paging import Paged
from gateway.api.services import ApiRequest
from gateway.base.errors import NotFoundError
from gateway.store.memory.messages import list_rounds

_ROUNDS = "/v1/conversations/{id}/rounds"


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


ENDPOINTS = (
    Endpoint("GET", _ROUNDS, rounds, reply=RoundPage, query=Paged),
    Endpoint("PATCH", f"{_ROUNDS}/{{round}}", mark_round, Mark, RoundReply),
    Endpoint("PATCH", "/v1/conversations/{id}/messages/{message}", mark_message, Mark, StoredMessageReply),
)
