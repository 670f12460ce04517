"""Pick sentences verbatim from a text that a model did not summarize. Pure."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from gateway.base.patterns import any_case
from gateway.memory.history import DECIDED
from gateway.memory.matching import WEAK_WORDS
from gateway.memory.summaries.items import SENTENCE_END, Sentences, items, said_again
from gateway.memory.summaries.keep import is_open_task
from gateway.store.stop_words import STOP_WORDS

# Version of the rules below, recorded with each extract.
EXTRACT_VERSION = 6

_GAP = "…"
_ENDED = re.compile(r"[.!?…:;)\"”’]$")
# A longer sentence is cut at a space, so that text without punctuation does not take all the room.
_LONGEST = 300
_PIECE = re.compile(rf"\S(?:.{{0,{_LONGEST - 2}}}\S(?!\S)|.{{0,{_LONGEST - 1}}})", re.S)
# Sentences of one line stay together up to this length: "They booked it twice." needs the one before.
_TOGETHER = 120
_SPEAKER = re.compile(r"([^\n:]{1,60}): ")
_WORD = re.compile(r"[^\W\d_]{2,}")
_DIGIT = re.compile(r"[0-9]")
_ASSIGNED = re.compile(r"(?<![\w.])([A-Za-z_]\w+) *=(?![=>~])")
# Statements about oneself, in English and Vietnamese.
_FIRST_PERSON = any_case(
    r"\b(?:i|i'm|i've|i'd|i'll|my|me|we|we're|our|us|mine|tôi|mình|em|tớ|bác|chị|anh|chúng tôi|của tôi)\b"
)
_NAMED = any_case(r"\b(?:called|named?|names|tên)\b")
_ASSISTANT = "Assistant"
# Weights of what a sentence adds to the sentences picked before it.
_ITEM, _OPEN_TASK, _PERSONAL, _DECISION, _NAMING = 3.0, 6.0, 1.0, 2.0, 2.0
# Of a word that only this sentence has, and of one that the talk comes back to.
_RARE_WORD, _TOPIC_WORD = 0.4, 0.8
# Fewer words say nothing.
_FEWEST_WORDS = 2
# The assistant mostly repeats, and its suggestions are not what happened.
_ASSISTANT_SHARE = 0.4
_QUESTION_SHARE = 0.5
# Early statements may have changed since.
_FIRST_SHARE = 0.8
# Of a sentence that a later decision is about: it has this many of its words, which the talk has seldom.
_SUPERSEDED_SHARE = 0.3
# Of a decision about something in the earlier text, which is shown without it otherwise.
_CHANGE = 6.0
_SAME_WORDS = 2
_SELDOM = 8
# A line that corrects what was said right before, whatever its words.
_FILLER = r"\W*(?:(?:ok|okay|well|hm+|oh|ah|o+ps|um+|à|ừ|ờ|ủa|mà)\W+)*"
CORRECTS = any_case(
    _FILLER
    + r"(?:actually,? no|no,? (?:actually|wait)|wait,? no|scratch that|correction|make (?:it|that)|on second thought|"
    r"(?:i )?changed my mind|i meant?\b|(?:không,? )?(?:nhầm|lộn)(?:\W|$)|à không|thôi\W|ý (?:là|mình|em|tôi))"
)
# Only if it shares a word with that, or both have a number.
_MAY_CORRECT = any_case(
    rf"^{_FILLER}(?:actually|sorry|no|nope|not|rather|they moved|(?:i |we )?(?:went|going|go) with|đổi|dời|không)\b|"
    r"\b(?:actually|instead|now|then|thôi|rồi)\W*$"
)
_LOOKS_BACK = 3  # sentences of people
# Tokens that any sentence costs beside its own: without them the shortest sentences always win.
_OVERHEAD = 6


@dataclass(frozen=True)
class _Piece:
    """A sentence at ``begin``. ``line`` counts the lines of the text; ``speaker`` is "" where none is named.

    ``ours``: the assistant says it.
    """

    begin: int
    text: str
    line: int
    speaker: str
    ours: bool

    @property
    def end(self) -> int:
        return self.begin + len(self.text)

    @cached_property
    def words(self) -> set[str]:
        """Those that tell something."""
        return _telling(self.text)

    @property
    def decides(self) -> bool:
        """Whether a person decides something."""
        return not self.ours and bool(DECIDED.search(self.text))


def extract(
    text: str,
    most: int,
    cost: Callable[[str], int],
    speakers: Collection[str] = (),
    ours: Collection[str] = (_ASSISTANT,),
    earlier: str = "",
) -> str:
    """Return sentences of ``text``, in order, that together ``cost`` at most ``most``; ``…`` marks the gaps.

    Greedy by what a sentence adds per token: names, numbers, identifiers and words that no picked sentence has, open
    tasks, decisions, and what people say of themselves; later ones count more. Of a text without speakers, the first
    and the last sentence come first. Lines of ``speakers`` ("Name: …") keep the name; those of ``ours`` are the
    assistant's. What a later decision is about is only picked with that decision, and a decision about something in the
    ``earlier`` text counts much. Returns "" when not even one sentence fits.
    """
    pieces = list(_telling_pieces(text, frozenset(speakers), ours))
    room = most - 2 * cost(_GAP)
    label = max((cost(f"{name}: ") for name in speakers), default=0)
    kept: list[int] = []
    old = _superseded(pieces)
    waiting: defaultdict[int, list[int]] = defaultdict(list)  # for the decision that is about them
    for best in _by_worth(text, pieces, old, cost, earlier):
        if best in old and old[best] not in kept:
            waiting[old[best]].append(best)
            continue
        for number in (best, *waiting[best]):
            place = bisect_right(kept, number)
            around = kept[max(0, place - 1) : place], [number], kept[place : place + 1]
            labels = _labels(pieces, *around) - _labels(pieces, around[0], around[2])
            needed = cost(pieces[number].text) + cost(_GAP) + labels * label
            if needed <= room and (number == best or best in kept):
                room -= needed
                kept.insert(place, number)
        if room <= 2 * cost(_GAP):
            break
    return _joined(pieces, kept)


def _labels(pieces: Sequence[_Piece], *kept: Sequence[int]) -> int:
    """How often the name of a speaker is written in front of pieces."""
    named = ["", *(pieces[number].speaker for numbers in kept for number in numbers)]
    return sum(one != other for one, other in pairwise(named))


def _pieces(text: str, speakers: frozenset[str], ours: Collection[str]) -> Iterator[_Piece]:
    line, speaker = 0, ""
    held: _Piece | None = None
    for begin, end in Sentences(text).spans:
        starts = not begin or text[begin - 1] == "\n"
        named = _SPEAKER.match(text, begin, end) if starts else None
        if named and named[1] in speakers:
            speaker, begin = named[1], named.end()
        line += starts and bool(text[begin:end].strip())
        for match in _PIECE.finditer(text, begin, end):
            piece = _Piece(match.start(), match[0], line, speaker, speaker in ours)
            together = held and held.speaker and not starts and held.text[-1] != _GAP
            if held and together and piece.end - held.begin <= _TOGETHER:
                held = replace(piece, begin=held.begin, text=text[held.begin : piece.end])
                continue
            if held:
                yield held
            held = piece
    if held:
        yield held


def _telling_pieces(text: str, speakers: frozenset[str], ours: Collection[str]) -> Iterator[_Piece]:
    """The pieces, except what the assistant keeps repeating."""
    pieces = list(_pieces(text, speakers, ours))
    said: defaultdict[int, list[str]] = defaultdict(list)
    for piece in pieces:
        if piece.ours:
            said[piece.line] += SENTENCE_END.split(piece.text)
    phrases = said_again(list(said.values()))
    for piece in pieces:
        told = SENTENCE_END.split(piece.text) if piece.ours else []
        if 2 * sum(len(each) for each in told if each.strip().casefold() in phrases) <= len(piece.text):
            yield piece


def _by_worth(
    text: str, pieces: list[_Piece], old: Collection[int], cost: Callable[[str], int], earlier: str
) -> Iterator[int]:
    """Yield numbers of the pieces, most worth per token first.

    Worth only falls as others are picked, so a heap with lazy updates finds the best one.
    """
    if not pieces:
        return
    ends = set() if pieces[-1].speaker else {0, len(pieces) - 1}
    yield from sorted(ends)
    begins = [piece.begin for piece in pieces]
    held: defaultdict[int, list[str]] = defaultdict(list)
    for item, place in items(text).places.items():
        held[max(0, bisect_right(begins, place) - 1)].append(item)
    counts = Counter(word for piece in pieces for word in piece.words)
    covered: set[str] = {word for number in ends for word in pieces[number].words}
    standing = [_standing(each) for each in pieces]
    changes = _changes(pieces, earlier)
    costs = [cost(each.text) + _OVERHEAD for each in pieces]

    def worth(number: int) -> float:
        bonus, share = standing[number]
        bonus += _CHANGE if number in changes else 0.0
        new = pieces[number].words - covered
        said = sum(_RARE_WORD if counts[word] == 1 else _TOPIC_WORD for word in new)
        if len(pieces[number].words) < _FEWEST_WORDS and not held[number]:
            bonus = 0.0
        late = _FIRST_SHARE + (1 - _FIRST_SHARE) * number / len(pieces)
        share *= _SUPERSEDED_SHARE if number in old else 1.0
        return late * share * (_ITEM * len(held[number]) + said + bonus) / costs[number]

    heap = [(-worth(number), -number) for number in range(len(pieces)) if number not in ends]
    heapq.heapify(heap)
    while heap:
        known, number = heapq.heappop(heap)
        now = worth(-number)
        if heap and now < -heap[0][0] and now < -known:
            heapq.heappush(heap, (-now, number))
            continue
        covered |= pieces[-number].words
        yield -number


def _superseded(pieces: Sequence[_Piece]) -> dict[int, int]:
    """The pieces that a person's later decision or assignment is about, and the last such one of each."""
    counts = Counter(word for piece in pieces for word in piece.words)
    before: defaultdict[str, list[int]] = defaultdict(list)
    assigned: dict[str, int] = {}
    found: dict[int, int] = {}
    said: list[int] = []  # by people
    for number, piece in enumerate(pieces):
        seldom = [word for word in piece.words if counts[word] <= _SELDOM]
        if piece.decides:
            same = Counter(earlier for word in seldom for earlier in before[word])
            found |= {earlier: number for earlier, shared in same.items() if shared >= _SAME_WORDS}
        if piece.speaker and not piece.ours:
            found |= dict.fromkeys(_corrected(pieces, said, number), number)
            said.append(number)
        for match in _ASSIGNED.finditer(piece.text):
            if match[1] in assigned:
                found[assigned[match[1]]] = number
            assigned[match[1]] = number
        for word in seldom:
            before[word].append(number)
    return {number: last for number, last in found.items() if last != number}


def _corrected(pieces: Sequence[_Piece], said: Sequence[int], number: int) -> list[int]:
    """The pieces among those ``said`` before that piece ``number`` corrects."""
    piece = pieces[number]
    if not said:
        return []
    if CORRECTS.match(piece.text):
        return [said[-1]]
    if not _MAY_CORRECT.search(piece.text):
        return []
    numbers = bool(_DIGIT.search(piece.text))
    return [
        each
        for each in said[-_LOOKS_BACK:]
        if pieces[each].words & piece.words
        or (numbers and each == said[-1] and _DIGIT.search(pieces[each].text))
    ][-1:]


def _changes(pieces: Sequence[_Piece], earlier: str) -> set[int]:
    """The decisions among the pieces that are about something in the ``earlier`` text."""
    known = [_telling(sentence) for sentence in SENTENCE_END.split(earlier)] if earlier else []
    return {
        number
        for number, piece in enumerate(pieces)
        if known and piece.decides and any(len(piece.words & each) >= _SAME_WORDS for each in known)
    }


def _telling(sentence: str) -> set[str]:
    words = {word.casefold() for word in _WORD.findall(sentence)}
    return words - STOP_WORDS - WEAK_WORDS


def _standing(piece: _Piece) -> tuple[float, float]:
    """The worth of a sentence's form: a bonus, and the share of its worth that counts."""
    sentence, share = piece.text, _ASSISTANT_SHARE if piece.ours else 1.0
    if sentence.rstrip("\"')").endswith("?"):
        share *= _QUESTION_SHARE
    bonus = _OPEN_TASK if is_open_task(sentence) else 0.0
    if not piece.ours:
        bonus += _PERSONAL if _FIRST_PERSON.search(sentence) else 0.0
        bonus += _NAMING if _NAMED.search(sentence) else 0.0
    return bonus + (_DECISION if DECIDED.search(sentence) else 0.0), share


def _joined(pieces: list[_Piece], kept: list[int]) -> str:
    parts: list[str] = []
    before, speaker = -1, ""
    for number in kept:
        piece = pieces[number]
        # Lines of the assistant that say nothing new are no pieces.
        follows = number == before + 1 and piece.line <= (pieces[before].line if kept[0] != number else 0) + 1
        if not follows and (not parts or not parts[-1].endswith(_GAP)):
            parts.append(_GAP)
        if piece.speaker != speaker:
            parts.append(f"\n{piece.speaker}:")
        elif parts and piece.line != pieces[before].line and not _ENDED.search(parts[-1]):
            parts.append(
                "\n"
            )  # two messages are not one sentence, neither here nor in an extract of this one
        parts.append(piece.text)
        before, speaker = number, piece.speaker
    if kept and before != len(pieces) - 1 and not parts[-1].endswith(_GAP):
        parts.append(_GAP)
    return " ".join(parts).replace(" \n", "\n").replace("\n ", "\n").lstrip("\n")
