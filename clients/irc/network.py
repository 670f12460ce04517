"""One network for as long as the program runs: reconnects, keeps nick and channels, and speaks at a bearable pace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

import structlog

from clients.irc.backoff import Backoff
from clients.irc.capabilities import Login
from clients.irc.config import BotConfig, ChannelConfig, NetworkConfig, ReplyConfig, secret
from clients.irc.link import Ctcp, Endpoint, Heard, Link, LinkError
from clients.irc.outbox import Line, Outbox
from clients.irc.tasks import Tasks
from clients.irc.tending import Tending
from clients.irc.text import clean, with_link
from clients.irc.tls import tls_context
from clients.irc.wire import Command, Mask, ctcp_reply, is_channel, is_target, message, room

# A connection that lasted this long was a good one: the next wait is short again.
_STABLE_SECONDS = 60.0

log = structlog.get_logger(__name__)


class Owner(Protocol):
    """Who decides what to say. None of this may block."""

    def heard(self, network: Network, heard: Heard) -> None:
        """Somebody said something."""

    def typing(self, network: Network, heard: Heard) -> None:
        """Somebody writes a private message to us; its ``text`` is empty."""

    def queried(self, network: Network, query: Ctcp) -> None:
        """Somebody asked our client something."""

    def renamed(self, network: Network, old: str, new: str) -> None:
        """Somebody has another nick now."""


class Network:
    """Runs one :class:`Link` after the other."""

    def __init__(self, config: NetworkConfig, bot: BotConfig, replies: ReplyConfig, owner: Owner) -> None:
        """Raises ConfigError when a certificate or a secret cannot be read."""
        self.config = config
        self.name = config.name
        self.connections = 0
        self._replies = replies
        self._owner = owner
        self._endpoint = _endpoint(config, bot)
        self._link: Link | None = None
        self._outbox = Outbox(
            self._send, self._open_to, burst=config.burst, seconds_per_line=config.seconds_per_line
        )
        self._tending = Tending(config, self._endpoint.nicks[0], lambda: self._link, self.say)
        self._hurry = asyncio.Event()
        self._leaving = False
        self._tasks = Tasks()

    async def run(self) -> None:
        """Stay on the network until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._stay_connected())
                group.create_task(self._outbox.run())
                group.create_task(self._tending.run())
        finally:
            await self._tasks.close()

    async def _stay_connected(self) -> None:
        backoff = Backoff(self.config.reconnect_first_seconds, self.config.reconnect_most_seconds)
        clock = asyncio.get_running_loop().time
        while not self._leaving:
            self._link = Link(self._endpoint, self)
            began = clock()
            try:
                reason = await self._link.session() or "the server closed the connection"
            except LinkError as error:
                reason = str(error)
            except OSError as error:  # refused, no such host, a certificate that does not verify
                reason = str(error) or type(error).__name__
            finally:
                self._link = None
            if clock() - began > _STABLE_SECONDS:
                backoff.reset()
            wait = 0.0 if self._leaving else backoff.next()
            log.warning("not connected", network=self.name, reason=reason, next_try_seconds=round(wait, 1))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._hurry.wait()
            self._hurry.clear()

    # What the link tells.

    def on_ready(self) -> None:
        """Registered."""
        self.connections += 1
        self._tending.begin()
        self._tasks.spawn(self._call_ourselves_a_bot())
        log.info("connected", network=self.name, nick=self.nick, accounts=self.knows_accounts)
        self.on_change()

    async def _call_ourselves_a_bot(self) -> None:
        """Set the mode that says so, where the server has one (ISUPPORT ``BOT``)."""
        link = self._link
        if link is not None and link.bot_mode:
            with contextlib.suppress(LinkError):
                await link.rawmsg("MODE", link.nickname, f"+{link.bot_mode}")

    def on_heard(self, heard: Heard) -> None:
        """Somebody said something."""
        self._owner.heard(self, heard)

    def on_typing(self, heard: Heard) -> None:
        """Somebody writes a private message to us."""
        self._owner.typing(self, heard)

    def on_query(self, query: Ctcp) -> None:
        """Somebody asked our client something."""
        self._owner.queried(self, query)

    def on_renamed(self, old: str, new: str) -> None:
        """Somebody has another nick now."""
        self._owner.renamed(self, old, new)

    def on_gone(self, nick: str) -> None:
        """A nick has become free, maybe ours."""
        self._tending.gone(nick)

    def on_change(self) -> None:
        """Our nick or channels may have changed: look after them, and send what waits for them."""
        self._tending.wake()
        self._outbox.wake()

    # What others ask.

    @property
    def nick(self) -> str:
        """Our nick at present; the wanted one while there is no connection."""
        return str(self._link.nickname) if self._link and self._link.ready else self._endpoint.nicks[0]

    @property
    def connected(self) -> bool:
        """Whether we are registered."""
        return self._link is not None and self._link.ready

    @property
    def waiting(self) -> int:
        """Lines that wait to be said."""
        return self._outbox.waiting

    @property
    def dropped(self) -> int:
        """Lines that never were said: too many at once, or too long without a connection."""
        return self._outbox.dropped

    @property
    def channels(self) -> list[str]:
        """The channels that we are in."""
        link = self._link
        return [name for name in self._tending.wanted if link is not None and link.joined(name)]

    @property
    def knows_accounts(self) -> bool:
        """Whether the server tells services accounts."""
        return self._link is not None and self._link.knows_accounts

    def fold(self, name: str) -> str:
        """A nick or channel in the server's case mapping."""
        return self._link.fold(name) if self._link else name.lower()

    def channel_config(self, channel: str) -> ChannelConfig:
        """How to behave in a channel."""
        return self._tending.channel(channel) or ChannelConfig(name=channel)

    # What others want done.

    def say(self, target: str, text: str, *, link: str = "", command: Command = "PRIVMSG") -> str:
        """Queue a text, and a link behind it; what does not fit the lines of a reply is returned ("" for nothing)."""
        if not is_target(target):
            log.error("nobody has such a name", network=self.name, target=target)
            return ""
        mask = self._link.mask if self._link and self._link.ready else Mask(self.nick)
        pieces, rest = with_link(
            clean(text),
            clean(link),
            characters=self._replies.characters,
            room=room(mask, command, target),
            lines=self._replies.lines,
        )
        until = asyncio.get_running_loop().time() + self._replies.keep_seconds
        self._outbox.put([Line(command=command, target=target, text=piece, until=until) for piece in pieces])
        return rest

    def answer_query(self, query: Ctcp, text: str) -> None:
        """Answer a CTCP query, if the pace allows it now."""
        self._send_idle(lambda link: ctcp_reply(link.mask, query.nick, query.kind, text))

    def typing(self, target: str, *, active: bool) -> None:
        """Show that we are at it (IRCv3 ``+typing``), where the server passes it on."""
        link = self._link
        if self._replies.typing and link is not None and "message-tags" in link.enabled and is_target(target):
            state = "active" if active else "done"
            self._send_idle(lambda _: f"@+typing={state} TAGMSG {target}\r\n".encode())

    def join(self, channel: ChannelConfig) -> None:
        """Be in a channel from now on."""
        self._tending.want(channel)

    def leave(self, channel: str) -> bool:
        """Be in a channel no more; whether we wanted to be there."""
        return self._tending.give_up(channel)

    def reconnect(self) -> None:
        """Leave the server, and come back at once."""
        self._hurry.set()
        if self._link is not None:
            self._link.fail("reconnecting on request")
            self._tasks.spawn(self._link.disconnect())

    async def quit(self, reason: str) -> None:
        """Say goodbye to the server, if there is one, and do not come back."""
        self._leaving = True
        if self._link is not None and self._link.ready:
            try:
                await self._link.rawmsg("QUIT", clean(reason))
            except LinkError:
                return

    # How it is done.

    def _open_to(self, target: str) -> bool:
        link = self._link
        return link is not None and (link.joined(target) if is_channel(target) else link.ready)

    async def _send(self, line: Line) -> bool:
        link = self._link
        if link is None:
            return False
        try:
            await link.send(message(link.mask, line.command, line.target, line.text))
        except LinkError:
            return False
        return True

    def _send_idle(self, make: Callable[[Link], bytes]) -> None:
        """Send something of no importance, or nothing at all when others wait."""
        link = self._link
        if link is not None and link.ready and self._outbox.take_idle():
            self._tasks.spawn(self._send_quietly(link, make(link)))

    async def _send_quietly(self, link: Link, line: bytes) -> None:
        with contextlib.suppress(LinkError):
            await link.send(line)


def _endpoint(config: NetworkConfig, bot: BotConfig) -> Endpoint:
    """Raises ConfigError."""
    sasl = config.sasl
    login = None
    if sasl is not None:
        login = Login(sasl.mechanism, sasl.account, secret(sasl.password, sasl.password_file))
    nick = config.nick or bot.nick
    alternatives = bot.alternatives if config.alternatives is None else config.alternatives
    return Endpoint(
        host=config.host,
        port=config.port,
        tls=tls_context(config),
        nicks=[nick, *(alternatives or [f"{nick}_"])],
        username=bot.username,
        realname=bot.realname,
        password=secret(config.password, config.password_file),
        login=login,
        silence_seconds=config.silence_seconds,
    )
