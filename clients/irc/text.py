"""Text as it may stand in an IRC message: cleaned, and cut into lines. Pure functions.

A model's output is hostile input: whatever is in it, what comes out of here is one line of plain characters.
"""

from __future__ import annotations

import re
import unicodedata

CONTINUED = " ..."

# mIRC colours (^C with up to two numbers), hex colours (^D with six digits): the digits go with the code.
_COLOURS = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|\x04(?:[0-9A-Fa-f]{6}(?:,[0-9A-Fa-f]{6})?)?")
# Code points that join what stands around them: emoji sequences, and the scripts that need joiners.
_JOINERS = frozenset("\u200c\u200d")
_BLANKS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029")
# ^], ^^ and ^_ are blanks to Unicode and formatting (italics, strikethrough, underline) to IRC.
_FORMATTING = frozenset("\x02\x0f\x11\x16\x1d\x1e\x1f")


def clean(text: str) -> str:
    """``text`` on one line: formatting, colours, control, direction and invisible characters gone, blanks single."""
    if not text.isprintable():  # nearly all text is
        text = "".join(_kept(character) for character in _COLOURS.sub("", text))
    return " ".join(text.split())


def _kept(character: str) -> str:
    if character in _FORMATTING:
        return ""
    if character in _BLANKS or character in _JOINERS:
        return character
    # Cc control, Cf direction marks and the invisible, Cs half a surrogate pair, Co private, Cn unassigned.
    return "" if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn"} else character


def split(text: str, *, characters: int, room: int, lines: int) -> tuple[list[str], str]:
    """The first ``lines`` pieces of a clean text, and the rest ("" when everything fits).

    A piece has at most ``characters`` characters and ``room`` bytes of UTF-8; it is cut at a blank where there is
    one, else between characters, never inside one or before a mark that belongs to it. What is continued ends in
    ``...``.
    """
    pieces: list[str] = []
    rest = text
    while rest and len(pieces) < lines:
        if _fits(rest, characters, room):
            return [*pieces, rest], ""
        end = _end(rest, characters - len(CONTINUED), room - len(CONTINUED))
        pieces.append(rest[:end].rstrip() + CONTINUED)
        rest = rest[end:].lstrip()
    return pieces, rest


def with_link(text: str, link: str, *, characters: int, room: int, lines: int) -> tuple[list[str], str]:
    """:func:`split` of a text and a link that is shown whole: behind the text, or on the last line, which is its own.

    Where there is but one line, or none that could hold the link, the link is left out.
    """
    if not link:
        return split(text, characters=characters, room=room, lines=lines)
    pieces, rest = split(f"{text} {link}".lstrip(), characters=characters, room=room, lines=lines)
    if not rest and any(link in piece.split(" ") for piece in pieces):
        return pieces, rest
    if lines == 1 or not _fits(link, characters, room):
        return split(text, characters=characters, room=room, lines=lines)
    pieces, rest = split(text, characters=characters, room=room, lines=lines - 1)
    return [*pieces, link], rest


def fitting(text: str, room: int) -> str:
    """As much of ``text`` as fits into ``room`` bytes of UTF-8, whole characters only."""
    return text.encode("utf-8", "ignore")[: max(0, room)].decode("utf-8", "ignore")


def _fits(text: str, characters: int, room: int) -> bool:
    return len(text) <= characters and len(text.encode()) <= room


def _end(text: str, characters: int, room: int) -> int:
    """Where to cut: within both limits, at least one character on."""
    most = max(1, len(fitting(text[: max(1, characters)], room)))
    if text[most : most + 1].isspace():
        return most
    blank = text.rfind(" ", 0, most)
    # A blank far to the left would leave a line nearly empty before a long word.
    if blank > most // 2:
        return blank
    end = most
    while end > 1 and _belongs(text, end):
        end -= 1
    return end if end > 1 else most


def _belongs(text: str, at: int) -> bool:
    """Whether the character at ``at`` belongs to the one before it: a mark, a joiner, or what a joiner ties on."""
    return (
        unicodedata.combining(text[at]) != 0
        or unicodedata.category(text[at]) in {"Mn", "Me"}
        or text[at] in _JOINERS
        or text[at - 1] == "\u200d"
    )
