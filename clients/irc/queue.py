"""The line of questions: so many are answered at once, the others wait in order and can be told their place."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from clients.irc.gateway import QueuePlace


class Ticket:
    """A question in the line; once it is at the gateway, its place in the queue there."""

    def __init__(self) -> None:
        self.there = QueuePlace()
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Queue:
    """At most ``at_once`` questions are answered at a time, at most ``most_waiting`` wait for their turn."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self._at_once = at_once
        self._most_waiting = most_waiting
        self._waiting: deque[Ticket] = deque()
        self.running = 0

    @property
    def full(self) -> bool:
        """Whether one more question would have to be refused."""
        return len(self._waiting) >= self._most_waiting

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    def place(self, ticket: Ticket) -> QueuePlace:
        """Its place, here or at the gateway; the position is 0 when it is being answered."""
        if ticket in self._waiting:
            return QueuePlace(self._waiting.index(ticket) + 1)
        return ticket.there

    @asynccontextmanager
    async def turn(self, ticket: Ticket) -> AsyncIterator[None]:
        """Wait for the ticket's turn and hold it inside the block."""
        if self.running < self._at_once and not self._waiting:
            self.running += 1
        else:
            self._waiting.append(ticket)
            try:
                await ticket.turn
            except asyncio.CancelledError:
                if ticket in self._waiting:
                    self._waiting.remove(ticket)
                else:  # its turn had come at the same moment
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        self.running -= 1
        if self._waiting:
            self.running += 1
            self._waiting.popleft().turn.set_result(None)
