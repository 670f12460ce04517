"""One connection to one server, built on pydle's parser and its tracking of nicks, channels and server features.

docs/decisions/0006-irc-library.md says what differs from pydle's own client: messages are handled in order, lines are
checked in bytes, nothing reconnects automatically, certificates are verified, and every failure is reported.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from pydle.features.ctcp import is_ctcp, parse_ctcp

from clients.irc.protocol.connection import Connection, Endpoint, NegotiatingClient
from clients.irc.protocol.wire import Mask, checked

REGISTRATION_SECONDS = 60.0
_NICK_TRIES = 12
_BOT_TAGS = frozenset({"bot", "draft/bot", "inspircd.org/bot"})
# pydle logs every line at debug level, passwords included, and unknown numerics as warnings.
logging.getLogger("pydle").setLevel(logging.ERROR)


class LinkError(Exception):
    """The connection has ended or could not be made; the message says why."""


class Registered(Struct, frozen=True):
    """Channels can be joined."""


class SentEvent(Struct, frozen=True, kw_only=True):
    """The sender of a :class:`Message` or :class:`Typing`."""

    nick: str
    account: str  # at the services, "" for none or unknown
    bot: bool  # marked as a bot by its server


class Typing(SentEvent, frozen=True, kw_only=True):
    """A user is writing a private message to us."""


class Message(SentEvent, frozen=True, kw_only=True):
    """A user sent a message."""

    channel: str  # "" in private
    text: str


class CtcpQuery(Struct, frozen=True):
    """A user sent us a CTCP query."""

    nick: str
    kind: str
    text: str


class NickChange(Struct, frozen=True):
    """A user, maybe the bot itself, changed their nick."""

    old: str
    new: str


class MembershipChange(Struct, frozen=True):
    """A user, maybe the bot itself, joined, was kicked, or quit. ``freed`` is the nick of one who quit."""

    freed: str = ""


Event = Registered | Typing | Message | CtcpQuery | NickChange | MembershipChange


class Link(NegotiatingClient):
    """Runs one :meth:`session`, and calls ``emit``, which must not block, for each event."""

    def __init__(self, endpoint: Endpoint, emit: Callable[[Event], None]) -> None:
        super().__init__(endpoint.nicks[0], endpoint.nicks[1:], endpoint.bot.username, endpoint.bot.realname)
        self.endpoint = endpoint
        self.login = endpoint.login
        self.password = endpoint.password or None
        self.encoding = "utf-8"
        self.ready = False
        self._emit = emit
        self._reason = ""
        self._failed = False

    async def session(self) -> str:
        """Connect, register, and handle messages until the connection ends. Return the server's reason, if any.

        Raises LinkError and OSError.
        """
        try:
            config = self.endpoint.config
            self.connection = await Connection.open(config.host, config.port, self.endpoint.tls)
            try:
                await self._register()
                await self._read()
            finally:
                self.ready = False
                await self.connection.close()
        except TimeoutError:
            raise LinkError("the server did not accept the connection in time") from None
        if self._failed:
            raise LinkError(self._reason)
        return self._reason

    async def _read(self) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + REGISTRATION_SECONDS
        pinged = False
        while not self._failed:
            try:
                data = await self.connection.line(
                    self.endpoint.config.silence_seconds if self.ready else deadline - clock()
                )
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
        """Handle messages in order; pydle would start a task for each."""
        self._receive_buffer += data
        while not self._failed and self._has_message():
            try:
                message = self._parse_message()
            except Exception as error:  # pydle's parser raises errors of any type for malformed lines
                self.logger.error("the server sent a malformed line: %r", error)
                continue
            await self.on_raw(message)

    async def send(self, line: bytes) -> None:
        """Raises LinkError if the connection has ended, UnsafeLineError if ``line`` is not exactly one line."""
        checked(line)
        try:
            await self.connection.send(line)
        except OSError as error:  # includes TimeoutError
            raise LinkError(f"the connection is gone: {error or type(error).__name__}") from None

    def send_nowait(self, line: bytes) -> None:
        """Send an unimportant line without waiting; it is lost if the connection has ended. Raises UnsafeLineError."""
        self.connection.write(checked(line))

    async def _send(self, input: Any) -> None:  # noqa: A002 - pydle's own lines, by its name for the argument
        await self.send(str(input).encode())

    def fail(self, reason: str) -> None:
        """Let :meth:`session` end with ``reason`` after the message that is being handled."""
        self._failed = True
        self._reason = reason
        self.ready = False

    def abort(self, reason: str) -> None:
        """Let :meth:`session` end with ``reason`` now."""
        self.fail(reason)
        if self.connection is not None:
            self.connection.abort()

    async def disconnect(self, expected: bool = True) -> None:
        """Called by pydle; :meth:`session` sees the end of the connection, and nothing reconnects here."""
        self.connection.abort()

    @property
    def mask(self) -> Mask:
        known = self.users.get(self.nickname) or {}
        return Mask(self.nickname, known.get("username") or "", known.get("hostname") or "")

    def joined(self, channel: str) -> bool:
        return bool(self.ready and self.in_channel(channel))

    def fold(self, name: str) -> str:
        """Return a nick or channel in the server's case mapping."""
        return str(self.normalize(name))

    @property
    def knows_accounts(self) -> bool:
        return "account-tag" in self.enabled

    @property
    def bot_mode(self) -> str:
        """The letter of the user mode for bots (ISUPPORT ``BOT``), "" if there is none."""
        letter = self._isupport.get("BOT")
        return letter if isinstance(letter, str) and len(letter) == 1 and letter.isalpha() else ""

    async def _create_user(self, nickname: str) -> None:
        super()._create_user(nickname)  # without the WHOIS that pydle sends for every user it sees

    async def on_connect(self) -> None:
        if not self._failed and not self.ready:
            self.ready = True
            self._emit(Registered())

    async def on_raw_376(self, message: Any) -> None:  # RPL_ENDOFMOTD
        await self.on_connect()

    on_raw_422 = on_raw_376  # ERR_NOMOTD

    async def _ignore(self, message: Any) -> None:
        pass

    on_raw_372 = on_raw_375 = _ignore  # the message of the day, which pydle would collect without a limit
    on_raw_notice = _ignore  # by convention notices get no reply, so that two bots cannot talk endlessly

    async def on_raw_error(self, message: Any) -> None:
        self._reason = " ".join(message.params)

    async def on_raw_433(self, message: Any) -> None:  # ERR_NICKNAMEINUSE
        """Before registration try the next nick; afterwards keep the present one."""
        if self.registered:
            return
        self._registration_attempts += 1
        if self._registration_attempts > _NICK_TRIES:
            self.fail("every nick is taken; set `alternatives`")
        elif self._attempt_nicknames:
            await self.set_nickname(self._attempt_nicknames.pop(0))
        else:
            # Short, because a server that truncates nicks would make the same taken one of them each time.
            await self.set_nickname(f"{self._nicknames[0][:6]}{random.randrange(100, 1000)}")

    on_raw_432 = on_raw_433  # ERR_ERRONEUSNICKNAME: reserved, or not allowed by this server
    on_raw_437 = on_raw_433  # ERR_UNAVAILRESOURCE: blocked for a while, as after a netsplit

    async def on_raw_privmsg(self, message: Any) -> None:
        target, text = message.params[:2]
        nick, _ = self._parse_user(message.source)
        if nick is None or self.is_same_nick(nick, self.nickname):
            return
        private = self.is_same_nick(target, self.nickname)
        if is_ctcp(text):
            if private:
                kind, rest = parse_ctcp(text)
                self._emit(CtcpQuery(nick, kind.upper(), rest or ""))
        elif private or self.joined(target):
            self._emit(Message(**self._sender(message, nick), channel="" if private else target, text=text))

    async def on_raw_tagmsg(self, message: Any) -> None:
        nick, _ = self._parse_user(message.source)
        private = bool(message.params) and self.is_same_nick(message.params[0], self.nickname)
        if nick is not None and private and message.tags.get("+typing") == "active":
            self._emit(Typing(**self._sender(message, nick)))

    def _sender(self, message: Any, nick: str) -> dict[str, Any]:
        # Without the capability a server passes on whatever account a client claims.
        account = message.tags.get("account") if self.knows_accounts else None
        known = isinstance(account, str) and account != "*"
        return {
            "nick": nick,
            "account": account if known else "",
            "bot": not _BOT_TAGS.isdisjoint(message.tags),
        }

    async def on_nick_change(self, old: str, new: str) -> None:
        self._emit(NickChange(old, new))

    async def on_join(self, channel: str, user: str) -> None:
        self._emit(MembershipChange())

    async def on_kick(self, channel: str, target: str, by: str, reason: str | None = None) -> None:
        self._emit(MembershipChange())

    async def on_quit(self, user: str, message: str | None = None) -> None:
        self._emit(MembershipChange(freed=user))
