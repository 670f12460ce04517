"""What a summary must not lose: names, numbers, identifiers and open tasks of its source. Pure.

A model's summary is checked against its source word by word, not by another model. What the text has lost is
pinned to it verbatim, in the sentence that says it, as far as the room for pins goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

# Identifiers: addresses, paths, task IDs, code names, words with a digit, an underscore or a capital inside.
_IDENTIFIER = re.compile(
    r"https?://[^\s<>\"')\]]{3,200}"
    r"|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,32}){1,4}"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+"
    r"|\b[OT]-[0-9]{8}-[0-9]{2}(?:\.c[0-9]{1,3})?\b"
    r"|\b[^\W\d_]+_\w+\b|\b[^\W\d_]*[a-z][A-Z]\w*\b|\b(?=\w*[^\W\d_])(?=\w*\d)\w{2,64}\b"
    r"|`[^`\n]{1,80}`"
)
# Numbers of two digits or more, with their separators: 42, 3.5, 18:45, 2026-11-21, 1,200.
_NUMBER = re.compile(r"(?<![\w.,:/-])\d(?:[\d.,:/-]*\d)(?![\w])")
_NAME = re.compile(r"\b[^\W\d_a-z](?:[^\W\d_]|['’-](?=[^\W\d_]))+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_SPEAKER = re.compile(r"^[^\n:.!?]{1,60}: ", re.M)
_FIRST_WORD = re.compile(r"^[\W_]*")
_OPEN_TASK = re.compile(r"\b(?:TODO|FIXME)\b|(?<!\w)\[ \]", re.I)
_LONGEST_PIN = 240
# Words that begin sentences, answers and headings with a capital letter and name nobody.
_NO_NAMES = frozenset(
    re.findall(
        r"\S+",
        "i i'm i've i'd i'll ok okay yes no the a an and but or so if then this that these those it we you he she "
        "they my your our their his her its what who when where why how which please thanks thank hello hi dear "
        "monday tuesday wednesday thursday friday saturday sunday",
    )
)


class Items(Struct, frozen=True):
    """What a text holds that can be checked: each item with how often it occurs, in the order of first occurrence."""

    identifiers: dict[str, int]
    numbers: dict[str, int]
    names: dict[str, int]

    @property
    def all(self) -> list[str]:
        """Every item: the kind that hurts most when lost first; in its kind the most frequent, then the newest."""
        return [
            item
            for kind in (self.identifiers, self.numbers, self.names)
            for _, item in sorted(enumerate(kind), key=lambda each: (-kind[each[1]], -each[0]))
        ]


class Kept(Struct, frozen=True):
    """How a summary stands to its source: lines to pin, what was lost even so, and the share that the text kept."""

    pins: list[str]
    lost: list[str]
    share: float


def items(text: str, speakers: Sequence[str] = ()) -> Items:
    """What must be kept of ``text``. A capital that begins a sentence makes no name; ``speakers`` always are names."""
    identifiers = Counter(match[0].strip("`").rstrip(".,;:") for match in _IDENTIFIER.finditer(text))
    rest = _IDENTIFIER.sub(" ", text)
    numbers = Counter(match[0].rstrip(".,:/-") for match in _NUMBER.finditer(rest))
    names: Counter[str] = Counter()
    for sentence in _SENTENCE_END.split(_SPEAKER.sub("", rest)):
        inside = _FIRST_WORD.sub("", sentence)
        names.update(
            match[0]
            for match in _NAME.finditer(inside)
            if match.start() > 0 and match[0].casefold() not in _NO_NAMES
        )
    for speaker in speakers:
        if re.search(rf"(?<!\w){re.escape(speaker)}(?!\w)", text):
            names[speaker] += 1
    return Items(dict(identifiers), dict(numbers), dict(names))


def check(
    source: str, summary: str, *, speakers: Sequence[str] = (), room: int, cost: Callable[[str], int]
) -> Kept:
    """Compare a summary with its source. ``room`` bounds the pins' summed ``cost`` (tokens of a line)."""
    wanted = items(source, speakers).all
    missing = [item for item in wanted if not contains(summary, item)]
    share = 1.0 - len(missing) / len(wanted) if wanted else 1.0
    pins: list[str] = []
    lost: list[str] = []
    pinned = ""
    for item in [*_open_tasks(source, summary), *missing]:
        if contains(pinned, item):
            continue
        line = line_with(source, item)
        if (needed := cost(line)) > room:
            lost.append(item)
            continue
        room -= needed
        pins.append(line)
        pinned = "\n".join(pins)
    return Kept(pins, lost, share)


def contains(text: str, item: str) -> bool:
    """Whether ``item`` stands in ``text`` as a whole word; case does not matter, and 1,200 is 1200."""
    if re.search(rf"(?<![\w]){re.escape(item)}(?![\w])", text, re.I):
        return True
    plain = item.replace(",", "")
    return plain != item and plain.isdigit() and bool(re.search(rf"(?<!\d){plain}(?!\d)", text))


def line_with(source: str, item: str) -> str:
    """The sentence of the source that says ``item``, shortened around it when it is long; the last one counts."""
    holding = [part.strip() for part in _SENTENCE_END.split(source) if contains(part, item)]
    sentence = holding[-1] if holding else item
    if len(sentence) <= _LONGEST_PIN:
        return sentence
    at = sentence.casefold().find(item.casefold())
    begin = max(0, at - (_LONGEST_PIN - len(item)) // 2)
    piece = sentence[begin : begin + _LONGEST_PIN].strip()
    return f"{'… ' if begin else ''}{piece}{' …' if begin + _LONGEST_PIN < len(sentence) else ''}"


def cut_at_sentence(text: str, most: int, cost: Callable[[str], int]) -> str:
    """The first sentences of ``text`` that together cost at most ``most``; "" when not even one does."""
    kept = ""
    for end in [match.start() for match in _SENTENCE_END.finditer(text)] + [len(text)]:
        if cost(text[:end]) > most:
            break
        kept = text[:end]
    return kept.rstrip()


def _open_tasks(source: str, summary: str) -> list[str]:
    """Lines that say what is still to do and of which the summary has no trace."""
    lines = [line.strip() for line in source.split("\n") if _OPEN_TASK.search(line)]
    return [line[:_LONGEST_PIN] for line in lines if not contains(summary, line[:_LONGEST_PIN])]
