"""Messages as a dialogue, split into parts when it is too long for one prompt."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from gateway.store.memory.messages import StoredMessage

_BREAK = re.compile(r"(?<=[.!?…])\s+|\n+|\s+")
_PIECE_CHARACTERS = 2000


def dialogue(messages: Sequence[StoredMessage]) -> str:
    """``Speaker: text`` lines; consecutive messages of one speaker are one line."""
    merged: list[tuple[str, str]] = []
    for message in messages:
        speaker = message.speaker or ("User" if message.role == "user" else "Assistant")
        if merged and merged[-1][0] == speaker:
            merged[-1] = (speaker, f"{merged[-1][1]}\n{message.text.strip()}")
        else:
            merged.append((speaker, message.text.strip()))
    return "\n".join(f"{speaker}: {text}" for speaker, text in merged)


async def split_dialogue(
    text: str,
    most: int,
    count: Callable[[list[str]], Awaitable[list[int]]],
    piece_characters: int = _PIECE_CHARACTERS,
) -> list[str]:
    """``text`` in parts of at most ``most`` tokens, cut between lines, else sentences, else words.

    Joined, the parts are the text. It is first cut into pieces of ``piece_characters``, which are joined to parts; a
    piece with more than ``most`` tokens is halved until it fits.
    """
    pieces = _pieces(text, piece_characters)
    tokens = await count(pieces)
    parts: list[str] = []
    size = 0
    for piece, cost in zip(pieces, tokens, strict=True):
        if cost > most and len(piece) > 1:
            parts += await split_dialogue(piece, most, count, max(1, len(piece) // 2))
            size = most  # the next piece starts a new part
        elif parts and size + cost <= most:
            parts[-1] += piece
            size += cost
        else:
            parts.append(piece)
            size = cost
    return parts or [""]


def _pieces(text: str, size: int) -> list[str]:
    """The text, cut at the last break within every ``size`` characters."""
    pieces: list[str] = []
    at = 0
    while len(text) - at > size:
        window = text[at : at + size]
        newline = window.rfind("\n") + 1
        breaks = [newline] if newline > size // 2 else [match.end() for match in _BREAK.finditer(window)]
        end = breaks[-1] if breaks and breaks[-1] > 0 else size
        pieces.append(text[at : at + end])
        at += end
    return [*pieces, text[at:]] if at < len(text) else pieces
