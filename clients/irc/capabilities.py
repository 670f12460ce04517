"""Capability negotiation and SASL, over pydle's registration.

pydle's own negotiation ends at the first line of a longer list, and its SASL goes on without the account when the
login fails (docs/decisions/0006-irc-library.md). Here a login that was asked for and did not happen ends the
connection.
"""

from __future__ import annotations

import base64
from typing import Any

from pydle.features import ISUPPORTSupport
from pydle.features.ircv3.tags import TaggedMessageSupport

# The account behind each message, tags of clients (typing, bot), and tags at all.
WANTED = frozenset({"account-tag", "message-tags"})
_CHUNK = 400  # of a response, by the SASL specification of IRCv3


class Login:
    """What SASL sends; PLAIN (RFC 4616) or EXTERNAL, where the certificate says it all."""

    def __init__(self, mechanism: str, account: str = "", password: str = "") -> None:
        self.mechanism = mechanism
        self._response = f"{account}\0{account}\0{password}" if mechanism == "PLAIN" else account

    def lines(self) -> list[str]:
        """The arguments of the AUTHENTICATE lines: base64 in chunks; ``+`` ends a last full chunk, or is empty."""
        text = base64.b64encode(self._response.encode()).decode()
        chunks = [text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK)]
        return chunks if chunks and len(chunks[-1]) < _CHUNK else [*chunks, "+"]


class Negotiating(ISUPPORTSupport, TaggedMessageSupport):  # type: ignore[misc]
    """A pydle client that negotiates :data:`WANTED` and logs in before it registers."""

    login: Login | None = None

    def fail(self, reason: str) -> None:
        """End the connection for a reason."""
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
        """LS (maybe in several lines), ACK, NAK, NEW and DEL."""
        _, kind, *rest = message.params
        names = rest[-1].split() if rest else []
        match kind.upper():
            case "LS":
                self._offered.update(
                    (name, value) for name, _, value in (each.partition("=") for each in names)
                )
                if rest[0] != "*" or len(rest) == 1:
                    await self._request()
            case "ACK":
                self.enabled |= {name for name in names if not name.startswith("-")}
                self.enabled -= {name[1:] for name in names if name.startswith("-")}
                await self._requested()
            case "NAK":
                await self._requested()
            case "DEL":
                self.enabled -= set(names)

    async def _request(self) -> None:
        wanted = WANTED & self._offered.keys()
        if self.login is not None:
            mechanisms = self._offered.get("sasl")
            if mechanisms is None:
                self.fail("the server offers no SASL, and the configuration asks for it")
                return
            if mechanisms and self.login.mechanism not in mechanisms.upper().split(","):
                self.fail(f"the server offers no SASL {self.login.mechanism}: it has {mechanisms}")
                return
            wanted |= {"sasl"}
        if wanted:
            await self.rawmsg("CAP", "REQ", " ".join(sorted(wanted)))
        else:
            await self.rawmsg("CAP", "END")

    async def _requested(self) -> None:
        if self.registered:
            return
        if self.login is not None and "sasl" not in self.enabled:
            self.fail("the server refused SASL")
        elif self.login is not None:
            await self.rawmsg("AUTHENTICATE", self.login.mechanism)
        else:
            await self.rawmsg("CAP", "END")

    async def on_raw_authenticate(self, message: Any) -> None:
        """The server wants the response. Neither mechanism has a challenge."""
        if self.login is None or message.params != ["+"]:
            self.fail("the server sent a SASL challenge that the mechanism does not have")
            return
        for line in self.login.lines():
            await self.rawmsg("AUTHENTICATE", line)

    async def on_raw_903(self, message: Any) -> None:
        """Logged in."""
        self.logged_in = True
        await self.rawmsg("CAP", "END")

    async def _sasl_failed(self, message: Any) -> None:
        self.fail(f"SASL failed: {message.params[-1]}; check `sasl`")

    on_raw_902 = on_raw_904 = on_raw_905 = on_raw_906 = on_raw_908 = _sasl_failed

    async def on_raw_001(self, message: Any) -> None:
        """Registered; without the account that was asked for, this is no success."""
        if self.login is not None and not self.logged_in:
            self.fail("the server let us in without the account; check `sasl`")
            return
        await self._registration_completed(message)
