"""What a person sees while their question is being answered: a typing indicator, and one line when it takes long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from clients.irc.gateway import QueuePlace
from clients.irc.queue import Queue, Ticket
from clients.irc.request import Request

# Clients show a typing indicator for 6 s (IRCv3 +typing), and it should not be sent more often than every 3 s.
_TYPING_SECONDS = 4.0


@asynccontextmanager
async def company(request: Request, ticket: Ticket, queue: Queue, patience: float) -> AsyncIterator[None]:
    """Keep the person company inside the block."""
    task = asyncio.create_task(_keep(request, ticket, queue, patience))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
        request.network.typing(request.target, active=False)


async def _keep(request: Request, ticket: Ticket, queue: Queue, patience: float) -> None:
    waited = 0.0
    told = False
    while True:
        request.network.typing(request.target, active=True)
        if waited >= patience and not told:
            told = True
            _tell(request, queue.place(ticket))
        pause = _TYPING_SECONDS if told else min(_TYPING_SECONDS, patience - waited)
        await asyncio.sleep(pause)
        waited += pause


def _tell(request: Request, place: QueuePlace) -> None:
    """The place in the queue; without one, only in private: a channel does not want to read that we think."""
    wait = f" (about {max(1, round(place.wait_seconds))} s)" if place.wait_seconds else ""
    if place.position == 1:
        request.reply(f"one other question is before yours{wait}, please bear with me.")
    elif place.position > 1:
        request.reply(f"{place.position} other questions are before yours{wait}, please bear with me.")
    elif request.place.private:
        request.reply("I am still working on it.")
