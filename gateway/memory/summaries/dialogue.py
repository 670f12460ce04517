"""Messages as a dialogue, split into parts when it is too long for one prompt; whether anything happened in it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from gateway.store.memory.messages import StoredMessage

# Where a text may be cut, best first: ends of lines, sentences, words.
_BREAKS = (re.compile(r"\n+"), re.compile(r"(?<=[.!?…])\s+"), re.compile(r"\s+"))
_PIECE_CHARACTERS = 2000
_PIECES = 2000  # about as many are counted at once
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
# Greetings, thanks and laughter. No "yes", "no" or "ok": they may decide what the other one has asked.
_SMALL_TALK = frozenset(
    re.findall(
        r"\S+",
        """
        hi hello hey yo hiya howdy greetings good morning afternoon evening night day bye goodbye see you ya later
        tomorrow soon cheers thanks thank thx ty much very so a lot many welcome you're how are is it going what's up
        doing i am i'm fine well great nice to meet and there all today everyone everybody again back lol haha hehe hmm
        hm oh ah wow xin chào bạn các anh chị em cả nhà buổi sáng trưa chiều tối ngon ngủ khỏe không thế nào dạo này cảm
        cám ơn nhiều lắm tạm biệt hẹn gặp lại nhé nha ạ dạ hihi mình tôi tốt vẫn
        """,
    )
)


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
    text: str, most: int, count: Callable[[list[str]], Awaitable[list[int]]], piece_characters: int = 0
) -> list[str]:
    """Split ``text`` into the fewest parts of at most ``most`` tokens, of about equal size.

    Parts end between lines, else sentences, else words. Joined, they are the text. It is first cut into pieces of
    ``piece_characters``, by default about a sixth of a part; a piece with more than ``most`` tokens is split further.
    """
    usual = max(min(_PIECE_CHARACTERS, max(40, most // 2)), len(text) // _PIECES)
    pieces = _pieces(text, piece_characters or usual)
    tokens = await count(pieces)
    if sum(tokens) <= most:
        return [text]
    share = sum(tokens) / -(-sum(tokens) // most)  # of each part
    parts: list[str] = []
    size = most  # of the last part: the first piece begins one
    before = 0.0  # tokens of all parts
    for piece, cost in zip(pieces, tokens, strict=True):
        middle, before = before + cost / 2, before + cost
        if cost > most and len(piece) > 1:
            parts += await split_dialogue(piece, most, count, max(1, len(piece) // 4))
            size = most
        elif size + cost <= most and middle <= share * len(parts):
            parts[-1] += piece
            size += cost
        else:
            parts.append(piece)
            size = cost
    return parts


def _pieces(text: str, size: int) -> list[str]:
    """The text, cut at the last line end, sentence end or blank in the second half of every ``size`` characters."""
    pieces: list[str] = []
    at = 0
    while len(text) - at > size:
        window = text[at : at + size]
        ends = (max((m.end() for m in pattern.finditer(window)), default=0) for pattern in _BREAKS)
        end = next((end for end in ends if end > size // 2), size)
        pieces.append(window[:end])
        at += end
    return [*pieces, text[at:]]


def nothing_happened(messages: Sequence[StoredMessage]) -> bool:
    """Whether people only greeted each other, in English or Vietnamese.

    What the assistant answered to that does not count.
    """
    said = [message.text for message in messages if message.role == "user" and not message.failed]
    return bool(said) and all(
        word.casefold().replace("’", "'") in _SMALL_TALK for text in said for word in _WORD.findall(text)
    )
