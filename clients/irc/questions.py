"""Questions: admission, retries, and progress from the line to the reply."""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from statistics import median
from typing import Any

import structlog

from clients.irc.config import Config, Mode
from clients.irc.gateway import Answer, Citation, Gateway, GatewayError
from clients.irc.memory import Memory, StateError, instructions
from clients.irc.network import Network
from clients.irc.outbox import Buckets, LatestDict
from clients.irc.replies import failure, shaped, wait_messages
from clients.irc.requests import Queue, Request, nick_key

_WAIT_MESSAGES = 2  # during one question
_REFUSAL_SECONDS = 60.0  # between two messages to a user over a limit
_TRIES = 3
_MAX_PAUSE_SECONDS = 30.0  # longer requests of the gateway to retry later count as a failure
# Clients show the typing indicator for 6 s (IRCv3 +typing), and it should not be sent more often than every 3 s.
_TYPING_SECONDS = 4.0
_MAX_REMEMBERED = 500  # places and users whose last answer is remembered

log = structlog.get_logger(__name__)


class Stats:
    """Counters since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._seconds: deque[float] = deque(maxlen=200)  # of the latest answers
        self.answered = self.failed = self.refused = 0
        self.model = ""

    def add_answer(self, seconds: float, model: str) -> None:
        self.answered += 1
        self._seconds.append(seconds)
        self.model = model or self.model

    def summary(self, queue: Queue) -> str:
        """Return everything on one line."""
        up = timedelta(minutes=int(time.monotonic() - self._started) // 60)
        parts = [f"up {up}", f"{self.answered} answered", f"{self.failed} failed", f"{self.refused} refused"]
        parts += [f"{queue.running} running", f"{queue.waiting} waiting"]
        if self._seconds:
            parts.append(f"median {median(self._seconds):.1f} s")
        if self.model:
            parts.append(f"model {self.model}")
        return ", ".join(parts)


class Questions:
    """Answers questions, one of a user at a time, each in a task that ``spawn`` starts."""

    def __init__(
        self,
        config: Config,
        gateway: Gateway,
        memory: Memory,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        limits = config.limits
        self._replies = config.replies
        self._mark = config.bot.command_mark
        self._gateway = gateway
        self._memory = memory
        self._spawn = spawn
        self._users = Buckets(limits.user_burst, limits.user_seconds)
        self._channels = Buckets(limits.channel_burst, limits.channel_seconds)
        self._refusals = Buckets(1, _REFUSAL_SECONDS)
        self._open: dict[str, Request] = {}  # by user
        self._wait_messages = wait_messages()
        self.queue = Queue(config.gateway.max_concurrent, config.gateway.max_waiting)
        self.stats = Stats()
        # By place: the sources of the last answer there.
        self.sources: LatestDict[str, list[Citation]] = LatestDict(_MAX_REMEMBERED)
        # The rest of the last reply, by place and user.
        self.leftovers: LatestDict[tuple[str, str], str] = LatestDict(_MAX_REMEMBERED)

    def ask(self, request: Request, text: str, mode: Mode) -> None:
        """Answer a question in the background, or tell the user why not now."""
        before = self._open.get(request.user)
        if before is not None:
            self.stats.refused += 1
            if before.wait_messages < _WAIT_MESSAGES:
                before.wait_messages += 1
                request.reply(next(self._wait_messages))
            return
        if not self.admit(request):
            return
        if self.queue.full:
            self._refuse(request, "too many questions are waiting already, please try again in a while.")
            return
        self._open[request.user] = request
        self._spawn(self._answer(request, text, mode))

    def admit(self, request: Request) -> bool:
        """Count a request towards the limits of its user and channel. Return False if it exceeds one."""
        wait = self._users.take(request.user)
        if not wait and request.channel:
            wait = self._channels.take(request.place)
        if wait:
            self._refuse(request, f"that is a lot at once; ask me again in {max(1, round(wait))} s.")
        return not wait

    def renamed(self, network: Network, old: str, new: str) -> None:
        """Carry limits and open questions over to a user's new nick."""
        before, after = nick_key(network, old), nick_key(network, new)
        for buckets in (self._users, self._refusals):
            buckets.rename(before, after)
        for request in self._open.values():
            if request.network is network and network.fold(request.nick) == network.fold(old):
                request.nick = new
        if before in self._open and after not in self._open:
            self._open[after] = self._open.pop(before)

    def _refuse(self, request: Request, text: str) -> None:
        self.stats.refused += 1
        if not self._refusals.take(request.user):
            request.reply(text)

    async def _answer(self, request: Request, text: str, mode: Mode) -> None:
        author = self._memory.author(request)
        said = await self._attempt(request, text, mode, author)
        try:
            if said is not None and mode == "wiki":
                await self._memory.keep_exchange(request, text, said)
            await self._memory.catch_up(author)
        except (GatewayError, StateError) as error:
            log.warning("an exchange was not kept, or not erased", place=request.place, problem=str(error))

    async def _attempt(self, request: Request, text: str, mode: Mode, author: str | None) -> str | None:
        """Reply to a question. Return the answer's text, None after a failure."""
        request_id = secrets.token_hex(4)
        began = time.monotonic()
        try:
            async with self._show_progress(request), self.queue.turn(request):
                answer = await self._generate(request, text, mode, request_id, author)
            self.stats.add_answer(time.monotonic() - began, answer.model)
            return self._reply(request, answer)
        except (GatewayError, StateError) as error:
            self.stats.failed += 1
            log.warning("no answer", request_id=request_id, code=error.code, problem=str(error))
            request.reply(failure(error, request_id))
            return None
        finally:
            # A new nick may have moved it to another key.
            for user in [user for user, open_request in self._open.items() if open_request is request]:
                del self._open[user]

    async def _generate(
        self, request: Request, text: str, mode: Mode, request_id: str, author: str | None
    ) -> Answer:
        """Generate an answer. Retries after the pause that the gateway asks for."""
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                if mode == "wiki":
                    return await self._gateway.ask(text, author, request_id, request.move)
                if self._memory.remembers(request):
                    return await self._memory.converse(request, text, request_id, request.move)
                return await self._gateway.complete(instructions(request), text, author, request_id)
            except GatewayError as error:
                if not tries_left or error.retry_after is None or error.retry_after > _MAX_PAUSE_SECONDS:
                    raise
                pause = max(0.5, error.retry_after) * random.uniform(1.0, 1.5)
            log.info("the gateway is busy", retry_seconds=round(pause, 1), tries_left=tries_left)
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _reply(self, request: Request, answer: Answer) -> str:
        names = (request.network.nick, request.nick)
        text, link = shaped(answer, foreign_links=self._replies.foreign_links, names=names)
        text = text or "I have nothing to say to that."
        self.sources[request.place] = answer.citations
        self.leftovers[request.place, request.user] = request.reply(text, link)
        if answer.redacted and not request.channel:  # what was said in a channel is not brought up again
            what = "a secret" if answer.redacted == 1 else f"{answer.redacted} secrets"
            request.reply(
                f"(I have not stored {what} in your message; {self._mark}keep stores it after all.)"
            )
        return text

    @asynccontextmanager
    async def _show_progress(self, request: Request) -> AsyncIterator[None]:
        """Show the typing indicator inside the block, and send one message if it lasts long."""
        task = asyncio.create_task(self._progress(request))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
            request.network.show_typing(request.target, active=False)

    async def _progress(self, request: Request) -> None:
        patience = self._replies.patience_seconds
        waited = 0.0
        announced = False
        while True:
            request.network.show_typing(request.target, active=True)
            if waited >= patience and not announced:
                announced = True
                self._announce_place(request)
            pause = _TYPING_SECONDS if announced else min(_TYPING_SECONDS, patience - waited)
            await asyncio.sleep(pause)
            waited += pause

    def _announce_place(self, request: Request) -> None:
        place = self.queue.place(request)
        wait = f" (about {max(1, round(place.wait_seconds))} s)" if place.wait_seconds else ""
        if place.position:
            others = (
                "one other question is" if place.position == 1 else f"{place.position} other questions are"
            )
            request.reply(f"{others} before yours{wait}, please bear with me.")
        elif not request.channel:  # in a channel it would disturb the others
            request.reply("I am still working on it.")
