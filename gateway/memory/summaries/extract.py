"""Pick sentences verbatim from a text that a model did not summarize. Pure."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator

from msgspec import Struct

from gateway.memory.summaries.items import Sentences, items
from gateway.memory.summaries.keep import is_open_task

# Version of the rules below, recorded with each extract.
EXTRACT_VERSION = 1

_GAP = "…"
# A longer sentence is cut at a space, so that text without punctuation does not take all the room.
_LONGEST = 300
_PIECE = re.compile(rf"\S(?:.{{0,{_LONGEST - 2}}}\S(?!\S)|.{{0,{_LONGEST - 1}}})", re.S)
_SPEAKER = re.compile(r"([^\n:]{1,60}): ")
_WORD = re.compile(r"[^\W\d_]{3,}")
# What a person says about themselves, in English and Vietnamese.
_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|we're|our|us|mine|tôi|mình|em|tớ|chúng tôi|của tôi)\b", re.I
)
_ASSISTANT = "Assistant"
# Weights of what a sentence adds to the sentences picked before it.
_ITEM, _OPEN_TASK, _PERSONAL, _RARE_WORD = 3.0, 6.0, 2.0, 0.4
# The assistant mostly repeats, and its suggestions are not what happened.
_ASSISTANT_SHARE = 0.4
_QUESTION_SHARE = 0.5
# Tokens that any sentence costs beside its own: without them the shortest sentences always win.
_OVERHEAD = 6


class _Piece(Struct, frozen=True):
    """A sentence. ``line`` counts the speakers' turns; ``speaker`` is "" where none is named."""

    begin: int
    end: int
    line: int
    speaker: str


def extract(
    text: str,
    most: int,
    cost: Callable[[str], int],
    speakers: Collection[str] = (),
    ours: Collection[str] = (_ASSISTANT,),
) -> str:
    """Return sentences of ``text``, in order, that together ``cost`` at most ``most``; ``…`` marks the gaps.

    Greedy by what a sentence adds per token: names, numbers, identifiers and rare words that no picked sentence has,
    open tasks, and what people say of themselves. The first and the last sentence come first. Lines of ``speakers``
    ("Name: …") keep the name; those of ``ours`` are the assistant's. Returns "" when not even one sentence fits.
    """
    pieces = list(_pieces(text, frozenset(speakers)))
    room = most - 2 * cost(_GAP)
    kept: set[int] = set()
    lines: set[int] = set()
    for number in _by_worth(text, pieces, cost, ours):
        piece = pieces[number]
        needed = cost(text[piece.begin : piece.end]) + cost(_GAP)
        if piece.speaker and piece.line not in lines:
            needed += cost(f"{piece.speaker}: ")
        if needed <= room:
            room -= needed
            kept.add(number)
            lines.add(piece.line)
        if room <= 2 * cost(_GAP):
            break
    return _joined(text, pieces, sorted(kept))


def _pieces(text: str, speakers: frozenset[str]) -> Iterator[_Piece]:
    line, speaker = 0, ""
    for begin, end in Sentences(text).spans:
        named = _SPEAKER.match(text, begin, end) if not begin or text[begin - 1] == "\n" else None
        if named and named[1] in speakers:
            line, speaker, begin = line + 1, named[1], named.end()
        for match in _PIECE.finditer(text, begin, end):
            yield _Piece(*match.span(), line, speaker)


def _by_worth(
    text: str, pieces: list[_Piece], cost: Callable[[str], int], ours: Collection[str]
) -> Iterator[int]:
    """Yield numbers of the pieces, most worth per token first.

    Worth only falls as others are picked, so a heap with lazy updates finds the best one.
    """
    if not pieces:
        return
    yield from sorted({0, len(pieces) - 1})
    begins = [piece.begin for piece in pieces]
    held: defaultdict[int, list[str]] = defaultdict(list)
    for item, place in items(text).places.items():
        held[max(0, bisect_right(begins, place) - 1)].append(item)
    words = [{word.casefold() for word in _WORD.findall(text, each.begin, each.end)} for each in pieces]
    counts = Counter(word for said in words for word in said)
    covered: set[str] = {word for number in (0, len(pieces) - 1) for word in words[number]}
    standing = [_standing(text[each.begin : each.end], each.speaker in ours) for each in pieces]
    costs = [cost(text[each.begin : each.end]) + _OVERHEAD for each in pieces]

    def worth(number: int) -> float:
        bonus, share = standing[number]
        rare = sum(1.0 / counts[word] for word in words[number] if word not in covered)
        return share * (_ITEM * len(held[number]) + _RARE_WORD * rare + bonus) / costs[number]

    heap = [(-worth(number), -number) for number in range(1, len(pieces) - 1)]
    heapq.heapify(heap)
    while heap:
        known, number = heapq.heappop(heap)
        now = worth(-number)
        if heap and now < -heap[0][0] and now < -known:
            heapq.heappush(heap, (-now, number))
            continue
        covered |= words[-number]
        yield -number


def _standing(sentence: str, ours: bool) -> tuple[float, float]:
    """The worth of a sentence's form: a bonus, and the share of its worth that counts."""
    share = _ASSISTANT_SHARE if ours else 1.0
    if sentence.rstrip("\"')").endswith("?"):
        share *= _QUESTION_SHARE
    personal = _PERSONAL if not ours and _FIRST_PERSON.search(sentence) else 0.0
    return (_OPEN_TASK if is_open_task(sentence) else 0.0) + personal, share


def _joined(text: str, pieces: list[_Piece], kept: list[int]) -> str:
    parts: list[str] = []
    before = -1
    for number in kept:
        piece = pieces[number]
        if number != before + 1:
            parts.append(_GAP)
        if piece.speaker and (before < 0 or pieces[before].line != piece.line):
            parts.append(f"\n{piece.speaker}:")
        parts.append(text[piece.begin : piece.end])
        before = number
    if kept and before != len(pieces) - 1:
        parts.append(_GAP)
    return " ".join(parts).replace(" \n", "\n").lstrip("\n")
