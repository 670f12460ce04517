"""Messages as a dialogue to read, and its parts when it is too long for one prompt."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from gateway.store.memory.messages import StoredMessage

_BREAK = re.compile(r"(?<=[.!?…])\s+|\n+|\s+")
# Text is cut into pieces of about this many characters before they are put together to parts.
_PIECE = 2000


def dialogue(messages: Sequence[StoredMessage]) -> str:
    """``Speaker: text`` lines; several lines of one speaker in a row are one."""
    merged: list[tuple[str, str]] = []
    for message in messages:
        speaker = message.speaker or ("User" if message.role == "user" else "Assistant")
        if merged and merged[-1][0] == speaker:
            merged[-1] = (speaker, f"{merged[-1][1]}\n{message.text.strip()}")
        else:
            merged.append((speaker, message.text.strip()))
    return "\n".join(f"{speaker}: {text}" for speaker, text in merged)


async def split_dialogue(
    text: str, most: int, count: Callable[[list[str]], Awaitable[list[int]]]
) -> list[str]:
    """``text`` in parts of at most ``most`` tokens each, cut between lines, else sentences, else words.

    Joined, the parts have every character of the text. One part is the ordinary case.
    """
    pieces = _pieces(text, _PIECE)
    tokens = await count(pieces)
    parts: list[str] = []
    size = 0
    for piece, cost in zip(pieces, tokens, strict=True):
        if cost > most and len(piece) > 1:
            parts += await split_dialogue_small(piece, most, count)
            size = most  # the next piece begins a part of its own
        elif parts and size + cost <= most:
            parts[-1] += piece
            size += cost
        else:
            parts.append(piece)
            size = cost
    return parts or [""]


async def split_dialogue_small(
    piece: str, most: int, count: Callable[[list[str]], Awaitable[list[int]]]
) -> list[str]:
    """Halve a piece until every half fits."""
    halves = _pieces(piece, max(1, len(piece) // 2))
    parts: list[str] = []
    for half, cost in zip(halves, await count(halves), strict=True):
        parts += [half] if cost <= most or len(half) == 1 else await split_dialogue_small(half, most, count)
    return parts


def _pieces(text: str, size: int) -> list[str]:
    """The text cut at the last good place before every ``size`` characters."""
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
