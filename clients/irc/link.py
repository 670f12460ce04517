"""One connection to one server, from the first byte to the last: pydle's client with another life around it.

pydle parses, tracks nick, channels and the server's features, and registers. What is different here, and why, is in
docs/decisions/0006-irc-library.md: messages are handled one after the other, lines are checked in bytes, nothing
reconnects by itself, certificates are verified, and no failure goes unseen.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from typing import Any, Protocol

from msgspec import Struct
from pydle.features.ctcp import is_ctcp, parse_ctcp

from clients.irc.capabilities import Login, Negotiating
from clients.irc.connection import Connection
from clients.irc.wire import Mask, checked

REGISTRATION_SECONDS = 60.0
_NICK_TRIES = 12
_BOT_TAGS = frozenset({"bot", "draft/bot", "inspircd.org/bot"})
# pydle logs every line at debug level, passwords included, and unknown numerics as warnings.
logging.getLogger("pydle").setLevel(logging.ERROR)


class LinkError(Exception):
    """The connection has ended or could not be made; the message says why."""


class Heard(Struct, frozen=True, kw_only=True):
    """A message that somebody sent. ``account`` is the services account, "" for none or unknown."""

    channel: str  # "" in private
    nick: str
    account: str
    text: str
    bot: bool = False  # marked as a bot by its server


class Ctcp(Struct, frozen=True):
    """A CTCP query to us."""

    nick: str
    kind: str
    text: str


class Listener(Protocol):
    """Who is told what happens on a link. None of this may block."""

    def on_ready(self) -> None:
        """Registered: channels can be joined."""

    def on_heard(self, heard: Heard) -> None:
        """Somebody said something."""

    def on_typing(self, heard: Heard) -> None:
        """Somebody writes a private message to us; its ``text`` is empty."""

    def on_query(self, query: Ctcp) -> None:
        """Somebody asked our client something."""

    def on_change(self) -> None:
        """Our nick or channels may have changed."""

    def on_gone(self, nick: str) -> None:
        """A nick has become free."""

    def on_renamed(self, old: str, new: str) -> None:
        """Somebody has another nick now."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where to connect and as whom. ``nicks`` are tried in order."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    nicks: list[str]
    username: str
    realname: str
    password: str
    login: Login | None
    silence_seconds: float


class Link(Negotiating):
    """Call :meth:`session` once; when it has ended, make another one."""

    def __init__(self, endpoint: Endpoint, listener: Listener) -> None:
        super().__init__(endpoint.nicks[0], endpoint.nicks[1:], endpoint.username, endpoint.realname)
        self.endpoint = endpoint
        self.login = endpoint.login
        self.ready = False
        self._listener = listener
        self._reason = ""
        self._failed = False

    async def session(self) -> str:
        """Connect, register, and hand on what is heard until the connection ends; the server's last words.

        Raises LinkError and OSError. When it is cancelled the connection is closed.
        """
        self.connection = Connection(self.endpoint.host, self.endpoint.port, self.endpoint.tls)
        self.encoding = "utf-8"
        try:
            await self.connection.connect()
            self.password = self.endpoint.password or None
            await self._register()
            await self._read()
        except TimeoutError:
            raise LinkError("it did not take the connection in time") from None
        finally:
            self.ready = False
            await self.connection.disconnect()
        if self._failed:
            raise LinkError(self._reason)
        return self._reason

    async def _read(self) -> None:
        registering = asyncio.get_running_loop().time() + REGISTRATION_SECONDS
        pinged = False
        while not self._failed:
            left = registering - asyncio.get_running_loop().time()
            try:
                data = await self.connection.line(self.endpoint.silence_seconds if self.ready else left)
            except TimeoutError:
                if not self.ready:
                    raise LinkError(f"no welcome within {REGISTRATION_SECONDS:.0f} s") from None
                if pinged:
                    raise LinkError("the server has fallen silent") from None
                pinged = True
                await self.rawmsg("PING", "hearth")
                continue
            except ValueError:
                raise LinkError("the server sent a line that has no end") from None
            pinged = False
            if not data:
                return
            await self.on_data(data)

    async def on_data(self, data: bytes) -> None:
        """Handle messages in their order; pydle would make a task of each."""
        self._receive_buffer += data
        while not self._failed and self._has_message():
            try:
                message = self._parse_message()
            except Exception as error:  # pydle's parser raises whatever a broken line makes it raise
                self.logger.error("the server sent a line that cannot be read: %r", error)
                continue
            await self.on_raw(message)

    async def send(self, line: bytes) -> None:
        """Send one line. Raises LinkError when the connection is gone, UnsafeLineError for what is no line."""
        checked(line)
        try:
            await self.connection.send(line)
        except OSError as error:  # TimeoutError is one
            raise LinkError(f"the connection is gone: {error or type(error).__name__}") from None

    async def _send(self, input: Any) -> None:  # noqa: A002
        """pydle's own lines go the same way."""
        await self.send(str(input).encode())

    @property
    def mask(self) -> Mask:
        """Our name as others see it, as far as it is known."""
        known = self.users.get(self.nickname) or {}
        return Mask(self.nickname, known.get("username") or "", known.get("hostname") or "")

    def joined(self, channel: str) -> bool:
        """Whether we are in the channel."""
        return bool(self.ready and self.in_channel(channel))

    def fold(self, name: str) -> str:
        """A nick or channel in the server's case mapping."""
        return str(self.normalize(name))

    @property
    def knows_accounts(self) -> bool:
        """Whether the server tells the services account with each message."""
        return "account-tag" in self.enabled

    @property
    def bot_mode(self) -> str:
        """The letter of the user mode for bots, "" where there is none."""
        letter = self._isupport.get("BOT")
        return letter if isinstance(letter, str) and len(letter) == 1 and letter.isalpha() else ""

    def fail(self, reason: str) -> None:
        """End the connection for a reason that :meth:`session` raises."""
        self._failed = True
        self._reason = reason
        self.ready = False

    async def disconnect(self, expected: bool = True) -> None:
        """pydle wants the connection to end: let the reader see its end instead of reconnecting here."""
        await self.connection.disconnect()

    async def _create_user(self, nickname: str) -> None:
        super()._create_user(nickname)  # no WHOIS of everybody, as pydle would do

    async def on_connect(self) -> None:
        """Registered, and the message of the day is over."""
        if not self._failed and not self.ready:
            self.ready = True
            self._listener.on_ready()

    async def on_raw_372(self, message: Any) -> None:
        """A line of the message of the day, which is not kept."""

    async def on_raw_376(self, message: Any) -> None:
        """The end of the message of the day, or there is none."""
        await self.on_connect()

    on_raw_375 = on_raw_372
    on_raw_422 = on_raw_376

    async def on_raw_error(self, message: Any) -> None:
        """The server's last words before it closes the connection."""
        self._reason = " ".join(message.params)

    async def on_raw_433(self, message: Any) -> None:
        """The nick is taken: before registration try the next one. Afterwards we keep the one that we have."""
        if self.registered:
            return
        self._registration_attempts += 1
        if self._registration_attempts > _NICK_TRIES:
            self.fail("every nick is taken; set `alternatives`")
        elif self._attempt_nicknames:
            await self.set_nickname(self._attempt_nicknames.pop(0))
        else:
            # Cut, because a server that shortens nicks would find the same one taken for ever.
            await self.set_nickname(f"{self._nicknames[0][:6]}{random.randrange(100, 1000)}")

    on_raw_432 = on_raw_433  # erroneous: a reserved one, or one that this server does not like
    on_raw_437 = on_raw_433  # unavailable for a while, as after a netsplit

    async def on_raw_privmsg(self, message: Any) -> None:
        """PRIVMSG: something said, or a CTCP query."""
        target, text = message.params[:2]
        nick, _ = self._parse_user(message.source)
        if nick is None or self.is_same_nick(nick, self.nickname):
            return
        ours = self.is_same_nick(target, self.nickname)
        if is_ctcp(text):
            if ours:
                kind, rest = parse_ctcp(text)
                self._listener.on_query(Ctcp(nick, kind.upper(), rest or ""))
        elif ours or self.joined(target):
            self._listener.on_heard(self._heard(message, "" if ours else target, nick, text))

    async def on_raw_notice(self, message: Any) -> None:
        """NOTICE: never answered, by convention, so that two bots cannot talk for ever."""

    async def on_raw_tagmsg(self, message: Any) -> None:
        """TAGMSG: somebody is typing. In a channel that is not for us."""
        nick, _ = self._parse_user(message.source)
        ours = bool(message.params) and self.is_same_nick(message.params[0], self.nickname)
        if nick is not None and ours and message.tags.get("+typing") == "active":
            self._listener.on_typing(self._heard(message, "", nick, ""))

    def _heard(self, message: Any, channel: str, nick: str, text: str) -> Heard:
        account = message.tags.get("account") if self.knows_accounts else None
        return Heard(
            channel=channel,
            nick=nick,
            account=account if isinstance(account, str) and account != "*" else "",
            text=text,
            bot=not _BOT_TAGS.isdisjoint(message.tags),
        )

    async def on_nick_change(self, old: str, new: str) -> None:
        """Somebody, maybe we, has another nick."""
        self._listener.on_renamed(old, new)
        self._listener.on_gone(old)
        self._listener.on_change()

    async def on_join(self, channel: str, user: str) -> None:
        """Somebody, maybe we, has joined."""
        self._listener.on_change()

    async def on_kick(self, channel: str, target: str, by: str, reason: str | None = None) -> None:
        """Somebody, maybe we, was kicked."""
        self._listener.on_change()

    async def on_quit(self, user: str, message: str | None = None) -> None:
        """Somebody has left; it may be who had our nick."""
        self._listener.on_gone(user)
