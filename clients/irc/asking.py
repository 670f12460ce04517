"""Questions: who may ask now, and the way of one question from the line to the reply."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Awaitable, Callable

import structlog

from clients.irc.answer import shaped, told
from clients.irc.company import company
from clients.irc.config import ChannelConfig, Config, Mode
from clients.irc.gateway import Answer, Asker, Gateway, GatewayError, QueuePlace
from clients.irc.limits import Buckets
from clients.irc.memory import Memory, instructions_of
from clients.irc.network import Network
from clients.irc.people import nick_key
from clients.irc.queue import Queue, Ticket
from clients.irc.recent import Recent
from clients.irc.request import Request
from clients.irc.state import StateError
from clients.irc.stats import Stats
from clients.irc.tasks import Tasks
from clients.irc.waits import Waits

_HINTS = 2  # wait messages during one question
_REFUSAL_SECONDS = 60.0  # who is over a limit is told so at most this often
_TRIES = 3
_LONGEST_PAUSE = 30.0  # before another try, when the gateway says how long to wait

log = structlog.get_logger(__name__)


class Asking:
    """Takes questions and answers them, each in a task of its own."""

    def __init__(self, config: Config, gateway: Gateway, memory: Memory, stats: Stats, tasks: Tasks) -> None:
        limits = config.limits
        self._replies = config.replies
        self._gateway = gateway
        self._memory = memory
        self._stats = stats
        self._tasks = tasks
        self._users = Buckets(limits.user_burst, limits.user_seconds, time.monotonic)
        self._channels = Buckets(limits.channel_burst, limits.channel_seconds, time.monotonic)
        self._refusals = Buckets(1, _REFUSAL_SECONDS, time.monotonic)
        self._open: dict[str, Request] = {}  # by the key of its person
        self._waits = Waits()
        self.queue = Queue(config.gateway.max_concurrent, config.gateway.max_waiting)
        self.recent = Recent()

    def take(self, request: Request, text: str, mode: Mode) -> None:
        """Answer a question in the background, or say why not now."""
        key = request.person.key
        before = self._open.get(key)
        if before is not None:
            self._stats.refused += 1
            if before.told < _HINTS:
                before.told += 1
                request.reply(self._waits.next())
            return
        if not self.admit(request):
            return
        if self.queue.full:
            self._refuse(request, "too many questions are waiting already, please try again in a while.")
            return
        self._open[key] = request
        self._tasks.spawn(self._answer(request, text, mode))

    def admit(self, request: Request) -> bool:
        """Whether the limits of the person and of the channel let one more through; else they may be told so."""
        wait = self._users.take(request.person.key)
        if not wait and not request.place.private:
            wait = self._channels.take(request.place.key)
        if wait:
            self._refuse(request, f"that is a lot at once; ask me again in {max(1, round(wait))} s.")
        return not wait

    def renamed(self, network: Network, old: str, new: str) -> None:
        """Somebody has another nick: limits and replies follow them."""
        before, after = nick_key(network, old), nick_key(network, new)
        for buckets in (self._users, self._refusals):
            buckets.rename(before, after)
        for request in self._open.values():
            if request.network is network and network.fold(request.nick) == network.fold(old):
                request.nick = new
        if before in self._open and after not in self._open:
            self._open[after] = self._open.pop(before)

    def _refuse(self, request: Request, text: str) -> None:
        self._stats.refused += 1
        if not self._refusals.take(request.person.key):
            request.reply(text)

    async def _answer(self, request: Request, text: str, mode: Mode) -> None:
        asker = self._memory.asker(request.person)
        said = await self._attempt(request, text, mode, asker)
        try:
            if said is not None and mode == "wiki" and self._remembers(request):
                await self._memory.keep_exchange(
                    request.place, request.person, text, said, self.instructions(request)
                )
            await self._memory.catch_up(asker)
        except (GatewayError, StateError) as error:
            log.warning(
                "an exchange was not kept, or not erased", place=request.place.key, problem=str(error)
            )

    async def _attempt(self, request: Request, text: str, mode: Mode, asker: Asker) -> str | None:
        """Reply; returns the text of an answer, None when there was none."""
        request_id = secrets.token_hex(4)
        began = time.monotonic()
        ticket = Ticket()
        try:
            async with (
                company(request, ticket, self.queue, self._replies.patience_seconds),
                self.queue.turn(ticket),
            ):
                answer = await self._model(request, text, mode, request_id, ticket, asker)
            self._stats.answer(time.monotonic() - began, answer.model)
            return self._reply(request, answer)
        except GatewayError as error:
            self._stats.failed += 1
            log.warning("no answer", request_id=request_id, code=error.code, problem=str(error))
            request.reply(told(error, request_id))
        except StateError as error:
            self._stats.failed += 1
            log.error("no answer", request_id=request_id, problem=str(error))
            request.reply(f"something is wrong with my notes. [#{request_id}]")
        finally:
            self._close(request)
        return None

    async def _model(
        self, request: Request, text: str, mode: Mode, request_id: str, ticket: Ticket, asker: Asker
    ) -> Answer:
        """The answer. A gateway that says when to try again is tried again."""
        person, place = request.person, request.place

        def told_place(place: QueuePlace) -> None:
            ticket.there = place

        if mode == "wiki":
            return await self._patiently(lambda: self._gateway.ask(text, asker, request_id, told_place))
        instructions = self.instructions(request)
        if self._remembers(request):
            return await self._patiently(
                lambda: self._memory.converse(place, person, text, instructions, request_id, told_place)
            )
        return await self._patiently(lambda: self._gateway.complete(instructions, text, asker, request_id))

    async def _patiently(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        for left in range(_TRIES - 1, -1, -1):
            try:
                return await call()
            except GatewayError as error:
                if not left or error.retry_after is None or error.retry_after > _LONGEST_PAUSE:
                    raise
                pause = max(0.5, error.retry_after) * random.uniform(1.0, 1.5)
                log.info("the gateway is busy; trying again", seconds=round(pause, 1), tries_left=left)
                await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _reply(self, request: Request, answer: Answer) -> str:
        """Say it; returns the text that was said."""
        names = (request.network.nick, request.nick)
        text, link = shaped(answer, foreign_links=self._replies.foreign_links, names=names)
        text = text or "I have nothing to say to that."
        rest = request.reply(text, link)
        self.recent.answered(request.place, answer.citations)
        self.recent.left_over(request.place, request.person, rest)
        return text

    def _close(self, request: Request) -> None:
        for key in [key for key, open_request in self._open.items() if open_request is request]:
            del self._open[key]

    def _remembers(self, request: Request) -> bool:
        off = not request.place.private and self._channel(request).memory == "off"
        return not off and self._memory.remembers(request.place, request.person)

    def instructions(self, request: Request) -> str:
        """What the model is told about the place of a request."""
        channel = None if request.place.private else self._channel(request)
        return instructions_of(channel, request.network.nick)

    def _channel(self, request: Request) -> ChannelConfig:
        return request.network.channel_config(request.place.channel)
