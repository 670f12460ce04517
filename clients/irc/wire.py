"""Lines as they go over the wire: built from parts that are checked, so that no text can become a command."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from clients.irc.text import clean, fitting

Command = Literal["PRIVMSG", "NOTICE"]

LINE_BYTES = 512  # RFC 2812, section 2.3: a whole line with its prefix and CR LF
# What a server may put before our line: the longest names that are common.
_NICK, _USER, _HOST = 32, 12, 64

CHANNEL = re.compile(r"[#&+!][^\x00-\x20\x07,:\x7f]{1,63}")
# What a server takes for a mask, a list, a status prefix or another server is no nick.
NICK = re.compile(r"[^\x00-\x20\x7f!@,:*?$#&+.%~-][^\x00-\x20\x7f!@,:*?$#&]{0,63}")
_FORBIDDEN = re.compile(rb"[\r\n\0]")


class UnsafeLineError(ValueError):
    """A line that would be more than one, or too long: it is not sent."""


class Mask(Struct, frozen=True):
    """Our own ``nick!user@host``, as far as it is known: it stands before each of our lines."""

    nick: str
    user: str = ""
    host: str = ""

    @property
    def bytes(self) -> int:
        """Bytes to leave for it, its colon and blank included: never less than what a server might make of it."""
        parts = ((self.nick, _NICK), (self.user, _USER), (self.host, _HOST))
        return sum(max(len(text.encode()), least) for text, least in parts) + len(":!@ ")


def is_channel(name: str) -> bool:
    """Whether this can be a channel's name, and nothing else."""
    return CHANNEL.fullmatch(name) is not None


def is_target(name: str) -> bool:
    """Whether messages may go there: a channel or a nick, and nothing else."""
    return is_channel(name) or NICK.fullmatch(name) is not None


def room(mask: Mask, command: Command, target: str) -> int:
    """Bytes of UTF-8 for the text of one message."""
    return LINE_BYTES - 2 - mask.bytes - len(f"{command} {target} :".encode())


def message(mask: Mask, command: Command, target: str, text: str) -> bytes:
    """One line with CR LF; ``text`` is cleaned, and cut where the line would be too long.

    Raises UnsafeLineError when there is nothing to say, or nobody of that name.
    """
    if not is_target(target):
        raise UnsafeLineError(f"{target!r} is no channel and no nick")
    plain = fitting(clean(text), room(mask, command, target))
    if not plain:
        raise UnsafeLineError("there is nothing to say")
    return checked(f"{command} {target} :{plain}\r\n".encode())


def ctcp_reply(mask: Mask, target: str, kind: str, text: str) -> bytes:
    """The answer to a CTCP query, the one place where a control character is sent: the delimiter ^A."""
    if not is_target(target):
        raise UnsafeLineError(f"{target!r} is no channel and no nick")
    plain = fitting(clean(f"{kind} {text}"), room(mask, "NOTICE", target) - 2)
    return checked(f"NOTICE {target} :\x01{plain}\x01\r\n".encode())


def checked(line: bytes) -> bytes:
    """The line itself, if it is one line and no longer than a line may be. Raises UnsafeLineError."""
    if not line.endswith(b"\r\n") or _FORBIDDEN.search(line[:-2]):
        raise UnsafeLineError("a line has no line end inside, no NUL, and one CR LF at its end")
    # Tags have their own allowance and are not counted (IRCv3 message-tags).
    untagged = line.partition(b" ")[2] if line.startswith(b"@") else line
    if len(untagged) > LINE_BYTES:
        raise UnsafeLineError(f"a line of {len(untagged)} bytes; {LINE_BYTES} are allowed")
    return line
