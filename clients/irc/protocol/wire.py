"""Text made safe for IRC: cleaned, split into lines, and framed as protocol messages. Pure functions.

Model output is untrusted: whatever it contains, these functions return single lines of plain characters, and no text
can become a command.
"""

from __future__ import annotations

import re
import unicodedata
from functools import partial

from msgspec import Struct

CONTINUED = " ..."
LINE_BYTES = 512  # RFC 2812, section 2.3: a whole line with its prefix and CR LF
# Space for the prefix that a server puts before our line: the longest nick, user and host in common use.
_NICK_BYTES, _USER_BYTES, _HOST_BYTES = 32, 12, 64

CHANNEL = re.compile(r"[#&+!][^\x00-\x20\x07,:\x7f]{1,63}")
# Excludes what a server would take for a mask, a list, a status prefix or another server.
NICK = re.compile(r"[^\x00-\x20\x7f!@,:*?$#&+.%~-][^\x00-\x20\x7f!@,:*?$#&]{0,63}")
_FORBIDDEN = re.compile(rb"[\r\n\0]")
# mIRC colours (^C with up to two numbers), hex colours (^D with six digits): the digits go with the code.
_COLOURS = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9A-Fa-f]{6}(?:,[0-9A-Fa-f]{6})?)?")
_JOINERS = frozenset("\u200c\u200d")  # used in emoji sequences and by some scripts
_BLANKS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
# ^], ^^ and ^_ are blanks in Unicode and formatting (italics, strikethrough, underline) in IRC.
_FORMATTING = frozenset("\x02\x0f\x11\x16\x1d\x1e\x1f")


class UnsafeLineError(ValueError):
    """The line is empty, too long, or would be more than one line. It must not be sent."""


class Mask(Struct, frozen=True):
    """Our own ``nick!user@host``, as far as known. The server puts it before each of our lines."""

    nick: str
    user: str = ""
    host: str = ""

    @property
    def bytes(self) -> int:
        """An upper estimate of the prefix in bytes, with its colon and blank."""
        parts = ((self.nick, _NICK_BYTES), (self.user, _USER_BYTES), (self.host, _HOST_BYTES))
        return sum(max(len(text.encode()), least) for text, least in parts) + len(":!@ ")


def clean(text: str) -> str:
    """Return ``text`` on one line, with single blanks and without formatting, control, direction and invisible
    characters."""
    if not text.isprintable():  # most text is
        text = "".join(_kept(character) for character in _COLOURS.sub("", text))
    return " ".join(text.split())


def _kept(character: str) -> str:
    if character in _FORMATTING:
        return ""
    if character in _BLANKS or character in _JOINERS:
        return character
    # Cc control, Cf direction marks and invisible ones, Cs lone surrogates, Co private use, Cn unassigned.
    return "" if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn"} else character


def split(text: str, *, characters: int, room: int, lines: int) -> tuple[list[str], str]:
    """Return the first ``lines`` pieces of a clean text, and the rest ("" when everything fits).

    A piece has at most ``characters`` characters and ``room`` bytes of UTF-8. It is cut at a blank if possible, else
    between characters, never before a combining mark. A piece that is continued ends in ``...``.
    """
    pieces: list[str] = []
    rest = text
    while rest and len(pieces) < lines:
        if _fits(rest, characters, room):
            return [*pieces, rest], ""
        end = _cut(rest, characters - len(CONTINUED), room - len(CONTINUED))
        pieces.append(rest[:end].rstrip() + CONTINUED)
        rest = rest[end:].lstrip()
    return pieces, rest


def with_link(text: str, link: str, *, characters: int, room: int, lines: int) -> tuple[list[str], str]:
    """Like :func:`split`, with an unbroken link behind the text, or on a last line of its own.

    The link is left out if there is only one line and it does not fit there, or if it is longer than a line.
    """
    cut = partial(split, characters=characters, room=room)
    pieces, rest = cut(f"{text} {link}".strip(), lines=lines)
    if not rest and any(link in piece.split(" ") for piece in pieces):
        return pieces, rest
    if not link or lines == 1 or not _fits(link, characters, room):
        return cut(text, lines=lines)
    pieces, rest = cut(text, lines=lines - 1)
    return [*pieces, link], rest


def fitting(text: str, room: int) -> str:
    """Return the longest beginning of ``text`` that fits into ``room`` bytes of UTF-8."""
    return text.encode("utf-8", "ignore")[: max(0, room)].decode("utf-8", "ignore")


def _fits(text: str, characters: int, room: int) -> bool:
    return len(text) <= characters and len(text.encode()) <= room


def _cut(text: str, characters: int, room: int) -> int:
    """Return where to cut: within both limits, but after at least one character."""
    most = max(1, len(fitting(text[: max(1, characters)], room)))
    if text[most : most + 1].isspace():
        return most
    blank = text.rfind(" ", 0, most)
    # A blank far to the left would leave a line nearly empty before a long word.
    if blank > most // 2:
        return blank
    end = most
    while end > 1 and _attached(text, end):
        end -= 1
    return end if end > 1 else most


def _attached(text: str, at: int) -> bool:
    """Tell whether the character at ``at`` is a mark or a joiner, or follows a joiner."""
    return unicodedata.category(text[at])[0] == "M" or text[at] in _JOINERS or text[at - 1] == "\u200d"


def is_channel(name: str) -> bool:
    return CHANNEL.fullmatch(name) is not None


def is_target(name: str) -> bool:
    return is_channel(name) or NICK.fullmatch(name) is not None


def room(mask: Mask, target: str) -> int:
    """Return how many bytes of UTF-8 the text of one message (or notice, whose command is shorter) may have."""
    return LINE_BYTES - 2 - mask.bytes - len(f"PRIVMSG {target} :".encode())


def message(mask: Mask, target: str, text: str) -> bytes:
    """Frame one message; ``text`` is cleaned, and cut where the line would be too long.

    Raises UnsafeLineError when the text is empty or the target is neither a channel nor a nick.
    """
    plain = fitting(clean(text), room(mask, target))
    if not plain:
        raise UnsafeLineError("the message is empty")
    return _framed("PRIVMSG", target, plain)


def ctcp_reply(mask: Mask, target: str, kind: str, text: str) -> bytes:
    """Frame the reply to a CTCP query: the only line with a control character in it, the delimiter ^A."""
    plain = fitting(clean(f"{kind} {text}"), room(mask, target) - 2)
    return _framed("NOTICE", target, f"\x01{plain}\x01")


def _framed(command: str, target: str, text: str) -> bytes:
    if not is_target(target):
        raise UnsafeLineError(f"{target!r} is neither a channel nor a nick")
    return checked(f"{command} {target} :{text}\r\n".encode())


def checked(line: bytes) -> bytes:
    """Return ``line`` if it is exactly one protocol line. Raises UnsafeLineError."""
    if not line.endswith(b"\r\n") or _FORBIDDEN.search(line[:-2]):
        raise UnsafeLineError("a line must end in its only CR LF and contain no NUL")
    # Tags have their own allowance and are not counted (IRCv3 message-tags).
    untagged = line.partition(b" ")[2] if line.startswith(b"@") else line
    if len(untagged) > LINE_BYTES:
        raise UnsafeLineError(f"the line has {len(untagged)} bytes; {LINE_BYTES} are allowed")
    return line
