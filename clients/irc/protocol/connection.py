"""The parts below a link: TLS context, byte stream, and registration with capabilities and SASL.

docs/decisions/0006-irc-library.md says why pydle's own parts are replaced: its connection waits with
``asyncio.wait_for``, which in Python 3.11 may swallow a cancellation; its negotiation ends at the first line of a
longer list; its SASL goes on without the account when the login fails. Here a failed login ends the connection.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from typing import Any

from pydle.features import ISUPPORTSupport
from pydle.features.ircv3.tags import TaggedMessageSupport

from clients.irc.config import BotConfig, ConfigError, NetworkConfig, secret

_CONNECT_SECONDS = 20.0
_SEND_SECONDS = 30.0
_CLOSE_SECONDS = 2.0
# The account behind each message; client tags (typing, bot).
_CAPABILITIES = frozenset({"account-tag", "message-tags"})
_SASL_CHUNK = 400  # bytes of a response in one AUTHENTICATE line, by the SASL specification of IRCv3


class Login:
    """A SASL response: PLAIN (RFC 4616), or EXTERNAL, where the client certificate proves the account."""

    def __init__(self, mechanism: str, account: str = "", password: str = "") -> None:
        self.mechanism = mechanism
        self._response = f"{account}\0{account}\0{password}" if mechanism == "PLAIN" else account

    def lines(self) -> list[str]:
        """Return the arguments of the AUTHENTICATE lines: base64 in chunks.

        A ``+`` follows a full last chunk and stands for an empty response.
        """
        text = base64.b64encode(self._response.encode()).decode()
        chunks = [text[i : i + _SASL_CHUNK] for i in range(0, len(text), _SASL_CHUNK)]
        return chunks if chunks and len(chunks[-1]) < _SASL_CHUNK else [*chunks, "+"]


class Endpoint:
    """Where to connect and as whom: the configuration, with secrets and certificates read. ``nicks`` are in order."""

    def __init__(self, config: NetworkConfig, bot: BotConfig) -> None:
        """Raises ConfigError."""
        sasl, nick = config.sasl, config.nick or bot.nick
        alternatives = bot.alternatives if config.alternatives is None else config.alternatives
        self.config = config
        self.bot = bot
        self.nicks = [nick, *(alternatives or [f"{nick}_"])]
        self.tls = _tls_context(config) if config.tls else None
        self.password = secret(config.password, config.password_file)
        self.login: Login | None = None
        if sasl is not None:
            self.login = Login(sasl.mechanism, sasl.account, secret(sasl.password, sasl.password_file))


def _tls_context(network: NetworkConfig) -> ssl.SSLContext:
    where = f"networks.{network.name}"
    authorities = network.tls_ca_file
    try:
        context = ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{where}.tls_ca_file: {authorities} is not a certificate: {error}") from None
    if network.client_certificate is not None:
        key = network.client_key or network.client_certificate
        try:
            context.load_cert_chain(network.client_certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{where}.client_certificate: it and its key cannot be used: {error}") from None
    return context


class Connection:
    """A TCP or TLS connection that is read line by line. pydle uses ``hostname``, ``throttle`` and ``connected``."""

    throttle = True

    def __init__(self, hostname: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hostname = hostname
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None) -> Connection:
        """Raises OSError and TimeoutError."""
        async with asyncio.timeout(_CONNECT_SECONDS):
            return cls(host, *await asyncio.open_connection(host, port, ssl=tls))

    @property
    def connected(self) -> bool:
        return not self._writer.is_closing()

    def write(self, data: bytes) -> None:
        """Send without waiting until the data has left. Does nothing when the connection is closed."""
        if self.connected:
            self._writer.write(data)

    async def send(self, data: bytes) -> None:
        """Raises OSError (ConnectionError when it is closed) and TimeoutError."""
        if not self.connected:
            raise ConnectionResetError("not connected")
        self._writer.write(data)
        async with asyncio.timeout(_SEND_SECONDS):
            await self._writer.drain()

    async def line(self, seconds: float) -> bytes:
        """Return the next line, b"" at the end.

        Raises:
            TimeoutError: nothing came within ``seconds``.
            ValueError: the line is longer than the buffer.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._reader.readline()
        except ConnectionError:
            return b""

    def abort(self) -> None:
        """Close at once, without waiting for the peer: :meth:`line` returns b""."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                with contextlib.suppress(OSError):
                    await self._writer.wait_closed()
        except TimeoutError:
            self.abort()


class NegotiatingClient(ISUPPORTSupport, TaggedMessageSupport):  # type: ignore[misc]
    """A pydle client that negotiates capabilities and logs in before it registers."""

    login: Login | None = None

    def fail(self, reason: str) -> None:
        raise NotImplementedError

    def _reset_attributes(self) -> None:
        super()._reset_attributes()
        self._offered: dict[str, str] = {}
        self.enabled: set[str] = set()
        self.logged_in = False

    async def _register(self) -> None:
        await self.rawmsg("CAP", "LS", "302")
        await super()._register()

    async def on_raw_cap(self, message: Any) -> None:
        _, kind, *rest = message.params
        names = rest[-1].split() if rest else []
        match kind.upper():
            case "LS":
                self._offered.update(
                    {name: value for name, _, value in (each.partition("=") for each in names)}
                )
                if rest[0] != "*" or len(rest) == 1:  # the last line of the list
                    await self._request_capabilities()
            case "ACK":
                self.enabled |= {name for name in names if not name.startswith("-")}
                self.enabled -= {name[1:] for name in names if name.startswith("-")}
                await self._log_in()
            case "NAK":
                await self._log_in()
            case "DEL":
                self.enabled -= set(names)

    async def _request_capabilities(self) -> None:
        wanted = _CAPABILITIES & self._offered.keys()
        if self.login is not None:
            mechanisms = self._offered.get("sasl")
            if mechanisms is None:
                self.fail("the server offers no SASL, but the configuration requires it")
                return
            if mechanisms and self.login.mechanism not in mechanisms.upper().split(","):
                self.fail(f"the server offers no SASL {self.login.mechanism}, only {mechanisms}")
                return
            wanted |= {"sasl"}
        if wanted:
            await self.rawmsg("CAP", "REQ", " ".join(sorted(wanted)))
        else:
            await self.rawmsg("CAP", "END")

    async def _log_in(self) -> None:
        if self.registered:
            return
        if self.login is not None and "sasl" not in self.enabled:
            self.fail("the server refused SASL")
        elif self.login is not None:
            await self.rawmsg("AUTHENTICATE", self.login.mechanism)
        else:
            await self.rawmsg("CAP", "END")

    async def on_raw_authenticate(self, message: Any) -> None:
        if self.login is None or message.params != ["+"]:
            self.fail("the server sent a SASL challenge; PLAIN and EXTERNAL have none")
            return
        for line in self.login.lines():
            await self.rawmsg("AUTHENTICATE", line)

    async def on_raw_903(self, message: Any) -> None:  # RPL_SASLSUCCESS
        self.logged_in = True
        await self.rawmsg("CAP", "END")

    async def _on_sasl_failure(self, message: Any) -> None:
        self.fail(f"SASL failed: {message.params[-1]}; check `sasl`")

    on_raw_902 = on_raw_904 = on_raw_905 = on_raw_906 = on_raw_908 = _on_sasl_failure

    async def on_raw_001(self, message: Any) -> None:  # RPL_WELCOME
        if self.login is not None and not self.logged_in:
            self.fail("the server registered us without the account; check `sasl`")
            return
        await self._registration_completed(message)
