"""Conversations of places, kept by the gateway: one for each channel and for each account in private."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from clients.irc.config import ChannelConfig
from clients.irc.gateway import Answer, Asker, Gateway, GatewayError, Told
from clients.irc.people import Person, Place
from clients.irc.state import StateFile

# Overheard lines are handed over in one go, before a question or when so many have come together: each of them
# costs the gateway a count of tokens, for which it would wake a sleeping model.
_GATHERED = 40
# While the gateway is away, lines are not gathered without end: the oldest go.
_MOST_GATHERED = 400
_CHAT = (
    "You are {nick}, a bot in {where}. People's lines begin with their names. Answer the last line in one to three "
    "short sentences of plain text, without lists and without your own name in front."
)

T = TypeVar("T")
log = structlog.get_logger(__name__)


def instructions_of(channel: ChannelConfig | None, nick: str) -> str:
    """What the model is told about the place it speaks in."""
    if channel is not None and channel.instructions:
        return channel.instructions
    where = f"the IRC channel {channel.name}" if channel is not None else "a private chat on IRC"
    return _CHAT.format(nick=nick, where=where)


class Memory:
    """What is remembered of whom. Methods raise GatewayError and StateError."""

    def __init__(self, gateway: Gateway, state: StateFile) -> None:
        self._gateway = gateway
        self._state = state
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._gathered: defaultdict[str, deque[tuple[str, str]]] = defaultdict(deque)

    def remembers(self, place: Place, person: Person) -> bool:
        """Whether what this person says in this place is kept. Without an account, private talk never is."""
        return person.key not in self._state.state.forgotten and (not place.private or bool(person.account))

    def asker(self, person: Person) -> Asker:
        """A question's author, for the gateway's request log: it has nothing of those who are to be forgotten."""
        return Asker(person.key, person.key not in self._state.state.forgotten)

    async def converse(
        self, place: Place, person: Person, text: str, instructions: str, request_id: str, told: Told
    ) -> Answer:
        """Answer within the place's conversation."""

        async def post(conversation: str) -> Answer:
            return await self._gateway.converse(conversation, person.speaker, text, request_id, told)

        async with self._locks[place.key]:
            await self._hand_over(place, instructions)
            return await self._within(place, instructions, post)

    async def keep_exchange(
        self, place: Place, person: Person, question: str, answer: str, instructions: str
    ) -> None:
        """Add a question and its answer from elsewhere to the place's conversation."""

        async def post(conversation: str) -> None:
            await self._gateway.keep(conversation, person.speaker, question)
            await self._gateway.keep(conversation, "", answer, ours=True)

        async with self._locks[place.key]:
            # Since the question was asked, its author may have wanted to be forgotten.
            if self.remembers(place, person):
                await self._hand_over(place, instructions)
                await self._within(place, instructions, post)

    def overhear(self, place: Place, person: Person, text: str) -> bool:
        """Gather a line that was not for the bot; whether so many have come together that they should be kept."""
        lines = self._gathered[place.key]
        if not self.remembers(place, person):
            return False
        if len(lines) == _MOST_GATHERED:
            log.warning("an overheard line is dropped: the gateway takes none", place=place.key)
            lines.popleft()
        lines.append((person.speaker, text))
        return len(lines) % _GATHERED == 0

    async def keep_overheard(self, place: Place, instructions: str) -> None:
        """Keep what was gathered."""
        async with self._locks[place.key]:
            await self._hand_over(place, instructions)

    async def forget(self, person: Person) -> tuple[int, int]:
        """Erase what a person said on their network, and remember nothing of theirs from now on.

        Returns how many messages went, and how many records of questions.
        """
        self._state.state.forgotten.add(person.key)
        self._state.save()
        records = await self._gateway.erase_requests(person.key)
        gone = 0
        keys = {*self._state.state.conversations, *self._gathered}
        for key in sorted(key for key in keys if key.startswith(f"{person.network}/")):
            async with self._locks[key]:
                lines = self._gathered[key]
                self._gathered[key] = deque(line for line in lines if line[0] != person.speaker)
                gone += len(lines) - len(self._gathered[key])
                gone += await self._forget_in(key, person)
        return gone, records

    async def catch_up(self, asker: Asker) -> None:
        """After a question that its author wanted to be forgotten meanwhile: its record goes as well."""
        if asker.recorded and asker.key in self._state.state.forgotten:
            await self._gateway.erase_requests(asker.key)

    def remember(self, person: Person) -> bool:
        """Remember a person again; whether they were forgotten."""
        if person.key not in self._state.state.forgotten:
            return False
        self._state.state.forgotten.discard(person.key)
        self._state.save()
        return True

    async def erase(self, place: Place) -> bool:
        """Erase the whole conversation of a place; whether there was one."""
        async with self._locks[place.key]:
            self._gathered.pop(place.key, None)
            conversation = self._state.state.conversations.get(place.key)
            if conversation is None:
                return False
            try:
                await self._gateway.erase(conversation)
            except GatewayError as error:
                if error.status != 404:
                    raise
            self._drop(place.key)
            return True

    async def _forget_in(self, key: str, person: Person) -> int:
        conversation = self._state.state.conversations.get(key)
        if conversation is None:
            return 0
        try:
            return await self._gateway.forget(conversation, person.speaker)
        except GatewayError as error:
            if error.status != 404:
                raise
            self._drop(key)
            return 0

    async def _hand_over(self, place: Place, instructions: str) -> None:
        lines = self._gathered[place.key]
        while lines:
            speaker, text = lines[0]

            async def post(conversation: str, speaker: str = speaker, text: str = text) -> None:
                await self._gateway.keep(conversation, speaker, text)

            await self._within(place, instructions, post)
            lines.popleft()

    async def _within(self, place: Place, instructions: str, post: Callable[[str], Awaitable[T]]) -> T:
        """Do something in the place's conversation; one that was erased at the gateway is begun anew."""
        known = self._state.state.conversations.get(place.key)
        if known is not None:
            try:
                return await post(known)
            except GatewayError as error:
                if error.status != 404:
                    raise
                log.warning("the conversation is gone; a new one begins", place=place.key)
        conversation = await self._gateway.begin(f"irc {place.key}"[:200], instructions)
        self._state.state.conversations[place.key] = conversation
        self._state.save()
        return await post(conversation)

    def _drop(self, key: str) -> None:
        self._state.state.conversations.pop(key, None)
        self._state.save()
