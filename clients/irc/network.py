"""One network for as long as the program runs: reconnects, keeps nick and channels, and sends at a limited pace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from clients.irc.config import BotConfig, ChannelConfig, NetworkConfig, ReplyConfig
from clients.irc.outbox import Backoff, Line, Outbox
from clients.irc.protocol.connection import Endpoint
from clients.irc.protocol.link import (
    CtcpQuery,
    Event,
    Link,
    LinkError,
    MembershipChange,
    NickChange,
    Registered,
)
from clients.irc.protocol.wire import Mask, clean, ctcp_reply, is_channel, is_target, message, room, with_link

# After a connection that lasted this long, the next wait is the shortest one again.
_STABLE_SECONDS = 60.0
_NICK = ""  # the key of the nick beside those of channels

log = structlog.get_logger(__name__)


class Network:
    """Runs one :class:`Link` after the other, and calls ``handle``, which must not block, for each event."""

    def __init__(
        self,
        config: NetworkConfig,
        bot: BotConfig,
        replies: ReplyConfig,
        handle: Callable[[Network, Event], None],
    ) -> None:
        """Raises ConfigError when a certificate or a secret cannot be read."""
        self.config = config
        self.name = config.name
        self.connections = 0
        self.link: Link | None = None
        self._replies = replies
        self._handle = handle
        self._endpoint = Endpoint(config, bot)
        self.outbox = Outbox(
            self._send, self._open_to, burst=config.burst, seconds_per_line=config.seconds_per_line
        )
        self.wanted_nick = self._endpoint.nicks[0]
        self.keeper = ChannelKeeper(self)
        self._reconnect = asyncio.Event()
        self._quitting = False

    async def run(self) -> None:
        """Stay on the network until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stay_connected())
            group.create_task(self.outbox.run())
            group.create_task(self.keeper.run())

    async def _stay_connected(self) -> None:
        backoff = Backoff(self.config.reconnect_first_seconds, self.config.reconnect_most_seconds)
        clock = asyncio.get_running_loop().time
        while not self._quitting:
            self.link = Link(self._endpoint, self._on_event)
            began = clock()
            try:
                reason = await self.link.session() or "the server closed the connection"
            except LinkError as error:
                reason = str(error)
            except OSError as error:  # refused, no such host, a certificate that does not verify
                reason = str(error) or type(error).__name__
            finally:
                self.link = None
            if clock() - began > _STABLE_SECONDS:
                backoff.reset()
            wait = 0.0 if self._quitting else backoff.next()
            log.warning("not connected", network=self.name, reason=reason, next_try_seconds=round(wait, 1))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._reconnect.wait()
            self._reconnect.clear()

    def _on_event(self, event: Event) -> None:
        match event:
            case Registered():
                self.connections += 1
                self.keeper.start_over()
                self._set_bot_mode()
                log.info("connected", network=self.name, nick=self.nick, accounts=self.knows_accounts)
            case NickChange(old=freed) | MembershipChange(freed=freed) if freed:
                self.keeper.nick_freed(freed)
        if isinstance(event, NickChange) and event.new == self.nick:
            log.info("nick changed", network=self.name, old=event.old, nick=event.new)
        if isinstance(event, Registered | NickChange | MembershipChange):
            self.keeper.wake()
            self.outbox.wake()
        self._handle(self, event)

    def _set_bot_mode(self) -> None:
        link = self.link
        if link is not None and link.bot_mode:
            link.send_nowait(f"MODE {link.nickname} +{link.bot_mode}\r\n".encode())

    @property
    def nick(self) -> str:
        """Our current nick, or the wanted one without a connection."""
        return str(self.ready.nickname) if self.ready else self.wanted_nick

    @property
    def ready(self) -> Link | None:
        """The link, once it is registered."""
        return self.link if self.link is not None and self.link.ready else None

    def shares_channel(self, nick: str) -> bool:
        """Whether a user of that nick shares a channel with us. Only then do we see them leave."""
        link, wanted = self.ready, self.fold(nick)
        channels = link.channels.values() if link is not None else ()
        return any(self.fold(user) == wanted for channel in channels for user in channel["users"])

    @property
    def knows_accounts(self) -> bool:
        return self.link is not None and self.link.knows_accounts

    def fold(self, name: str) -> str:
        """Return a nick or channel in the server's case mapping."""
        return self.link.fold(name) if self.link else name.lower()

    def say(self, target: str, text: str, *, link: str = "") -> str:
        """Queue a text with a link behind it. Return what exceeds the lines of a reply ("" for nothing)."""
        if not is_target(target):
            log.error("no such target", network=self.name, target=target)
            return ""
        mask = self.ready.mask if self.ready else Mask(self.nick)
        pieces, rest = with_link(
            clean(text),
            clean(link),
            characters=self._replies.characters,
            room=room(mask, target),
            lines=self._replies.lines,
        )
        until = asyncio.get_running_loop().time() + self._replies.keep_seconds
        self.outbox.put([Line(target=target, text=piece, until=until) for piece in pieces])
        return rest

    def answer_query(self, query: CtcpQuery, text: str) -> None:
        """Answer a CTCP query if the pace allows it now."""
        self._send_idle(lambda link: ctcp_reply(link.mask, query.nick, query.kind, text))

    def show_typing(self, target: str, *, active: bool) -> None:
        """Switch the typing indicator (IRCv3 ``+typing``), if the server relays it and the pace allows it now."""
        if self._replies.typing and self.link and "message-tags" in self.link.enabled and is_target(target):
            state = "active" if active else "done"
            self._send_idle(lambda _: f"@+typing={state} TAGMSG {target}\r\n".encode())

    def reconnect(self) -> None:
        """Drop the connection and make another one at once."""
        self._reconnect.set()
        if self.link is not None:
            self.link.abort("reconnecting on request")

    async def quit(self, reason: str) -> None:
        """Send QUIT if connected, and do not reconnect."""
        self._quitting = True
        if self.ready is not None:
            with contextlib.suppress(LinkError):
                await self.ready.rawmsg("QUIT", clean(reason))

    def _open_to(self, target: str) -> bool:
        link = self.ready
        return link is not None and (not is_channel(target) or link.joined(target))

    async def _send(self, line: Line) -> bool:
        link = self.link
        if link is None:
            return False
        try:
            await link.send(message(link.mask, line.target, line.text))
        except LinkError:
            return False
        return True

    def _send_idle(self, make: Callable[[Link], bytes]) -> None:
        """Send an unimportant line, or nothing when others wait."""
        if self.ready is not None and self.outbox.take_idle():
            self.ready.send_nowait(make(self.ready))


class ChannelKeeper:
    """Asks for the wanted nick and channels until we have them, for each at most once in ``tend_seconds``."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._config = network.config
        self._wake = asyncio.Event()
        self._asked: dict[str, float] = {}  # loop time of the last request, by channel or _NICK
        self.wanted = {channel.name: channel for channel in network.config.channels}

    def start_over(self) -> None:
        """On a new connection nothing has been asked for yet."""
        self._asked.clear()

    def wake(self) -> None:
        """Check nick and channels now."""
        self._wake.set()

    def nick_freed(self, nick: str) -> None:
        """If it is the wanted nick, ask for it at once."""
        if self._network.fold(nick) == self._network.fold(self._network.wanted_nick):
            self._asked.pop(_NICK, None)

    def channel(self, name: str) -> ChannelConfig | None:
        """Return the wanted channel of that name in any spelling."""
        fold = self._network.fold
        return next((each for each in self.wanted.values() if fold(each.name) == fold(name)), None)

    def join(self, channel: ChannelConfig) -> None:
        """Want a channel from now on."""
        self.leave(channel.name)
        self.wanted[channel.name] = channel
        self._asked.pop(channel.name, None)

    def leave(self, name: str) -> bool:
        """Want a channel no longer. Return whether it was wanted."""
        known = self.channel(name)
        if known is not None:
            del self.wanted[known.name]
        self.wake()
        return known is not None

    async def run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._config.tend_seconds):
                    await self._wake.wait()
            self._wake.clear()
            if (link := self._network.ready) is not None:
                with contextlib.suppress(LinkError):  # the reader of the link sees its end, too
                    await self._ask(link)

    async def _ask(self, link: Link) -> None:
        nick = self._network.wanted_nick
        if link.fold(link.nickname) != link.fold(nick) and self._due(_NICK):
            if self._config.regain:
                target, text = self._config.regain.replace("{nick}", nick).split(" ", 1)
                self._network.say(target, text)
            await link.set_nickname(nick)
        missing = [
            each for each in self.wanted.values() if not link.joined(each.name) and self._due(each.name)
        ]
        for number, channel in enumerate(missing):
            if number >= self._config.burst:
                await asyncio.sleep(self._config.seconds_per_line)
            await link.rawmsg("JOIN", channel.name, *([channel.key] if channel.key else []))
        wanted = {link.fold(name) for name in self.wanted}
        for name in [name for name in link.channels if link.fold(name) not in wanted]:
            await link.rawmsg("PART", name)

    def _due(self, what: str) -> bool:
        """Tell whether ``tend_seconds`` have passed since the last request; if so, count one now."""
        now = asyncio.get_running_loop().time()
        if now - self._asked.get(what, -self._config.tend_seconds) < self._config.tend_seconds:
            return False
        self._asked[what] = now
        return True
