"""Requests with their users and places, and the queue of those that wait for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from clients.irc.config import ChannelConfig
from clients.irc.gateway import QueuePlace
from clients.irc.network import Network
from clients.irc.protocol.link import Message, SentEvent


class Request(Struct, eq=False):
    """A message to the bot. ``user`` and ``place`` are its keys in limits, memory and state."""

    network: Network
    nick: str  # follows the user's changes of nick
    channel: str  # "" in private
    account: str  # at the services, folded, "" for none or unknown
    user: str  # NETWORK/account:NAME, or NETWORK/nick:NAME without an account
    speaker: str  # the user's name in conversations
    place: str  # NETWORK/CHANNEL or NETWORK/private/USER: it has one conversation
    wait_messages: int = 0  # sent while this question was being answered
    at_gateway: QueuePlace = QueuePlace()

    @classmethod
    def of(cls, network: Network, message: Message) -> Request:
        """Make a request of a message.

        If the server has accounts, the speaker of a user without one begins with ``~``, so that a nick cannot pose as
        an account of the same name.
        """
        account, nick = message.account.casefold(), network.fold(message.nick)
        user = user_key(network, message)
        place = network.fold(message.channel) if message.channel else f"private/{user}"
        return cls(
            network=network,
            nick=message.nick,
            channel=message.channel,
            account=account,
            user=user,
            speaker=account or (f"~{nick}" if network.knows_accounts else nick),
            place=f"{network.name}/{place}",
        )

    @property
    def target(self) -> str:
        return self.channel or self.nick

    @property
    def channel_config(self) -> ChannelConfig | None:
        """The settings of the channel, None in private."""
        if not self.channel:
            return None
        return self.network.keeper.channel(self.channel) or ChannelConfig(name=self.channel)

    def move(self, place: QueuePlace) -> None:
        """Note the place in the gateway's queue."""
        self.at_gateway = place

    def reply(self, text: str, link: str = "") -> str:
        """Queue a reply, in a channel with the user's nick in front. Return what did not fit."""
        start = f"{self.nick}: " if self.channel else ""
        return self.network.say(self.target, start + text, link=link)


def user_key(network: Network, sender: SentEvent) -> str:
    if sender.account:
        return f"{network.name}/account:{sender.account.casefold()}"
    return nick_key(network, sender.nick)


def nick_key(network: Network, nick: str) -> str:
    return f"{network.name}/nick:{network.fold(nick)}"


class Queue:
    """First come, first served: ``at_once`` questions run, at most ``most_waiting`` wait."""

    def __init__(self, at_once: int, most_waiting: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most_waiting = most_waiting
        self._waiting: list[Request] = []
        self.running = 0

    @property
    def full(self) -> bool:
        """Whether the next question has to be refused."""
        return len(self._waiting) >= self._most_waiting

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def place(self, request: Request) -> QueuePlace:
        """Return the request's place here or at the gateway; position 0 means that it is being answered."""
        if request in self._waiting:
            return QueuePlace(self._waiting.index(request) + 1)
        return request.at_gateway

    @asynccontextmanager
    async def turn(self, request: Request) -> AsyncIterator[None]:
        """Wait for the request's turn and hold it inside the block."""
        self._waiting.append(request)
        try:
            await self._free.acquire()
        finally:
            self._waiting.remove(request)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._free.release()
