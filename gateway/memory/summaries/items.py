"""Find names, numbers and identifiers in a text. Pure.

Everything here takes linear time, because a message may have megabytes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

# Identifiers: addresses, paths, task IDs, code names, words with a digit, an underscore or a capital inside.
_IDENTIFIER = re.compile(
    r"https?://[^\s<>\"')\]]{3,200}"
    r"|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,32}){1,4}"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]+)+"
    r"|\b[OT]-[0-9]{4}(?:[0-9]{2}){0,2}-[0-9]{2}(?:\.c[0-9]{1,3})?\b"
    r"|\b[^\W\d_]+_\w+\b|\b[^\W\d_]*[a-z][A-Z]\w*\b|\b(?=\w*[^\W\d_])(?=\w*\d)\w{2,64}\b"
    r"|`[^`\n]{1,80}`"
)
# Numbers of two digits or more, with their separators: 42, 3.5, 18:45, 2026-11-21, 1,200.
_NUMBER = re.compile(r"(?<![\w.,:/-])\d(?:[\d.,:/-]*\d)(?![\w])")
_NAME = re.compile(r"\b[^\W\d_a-z](?:[^\W\d_]|['’-](?=[^\W\d_]))+")
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_SPEAKER = re.compile(r"^[^\n:.!?]{1,60}: ", re.M)
_FIRST_WORD = re.compile(r"^[\W_]*")
# Capitalized words at the start of sentences, answers and headings that are not names.
_NO_NAMES = frozenset(
    re.findall(
        r"\S+",
        "i i'm i've i'd i'll ok okay yes no the a an and but or so if then this that these those it we you he she "
        "they my your our their his her its what who when where why how which please thanks thank hello hi dear "
        "monday tuesday wednesday thursday friday saturday sunday",
    )
)


class Items(Struct, frozen=True):
    """The checkable items of a text and their counts, in the order of first occurrence.

    ``places`` has the offset of each item's last occurrence.
    """

    identifiers: dict[str, int]
    numbers: dict[str, int]
    names: dict[str, int]
    places: dict[str, int]

    @property
    def all(self) -> list[str]:
        """All items: the most important kind first, within a kind the most frequent, then the latest."""
        return [
            item
            for kind in (self.identifiers, self.numbers, self.names)
            for _, item in sorted(enumerate(kind), key=lambda each: (-kind[each[1]], -each[0]))
        ]


def said_again(lines: Sequence[Sequence[str]]) -> frozenset[str]:
    """The sentences that at least two lines and half of them have, which tell nothing: a model's usual phrases."""
    counts = Counter(each for line in lines for each in {sentence.strip().casefold() for sentence in line})
    return frozenset(each for each, count in counts.items() if count > 1 and 2 * count >= len(lines))


class Sentences:
    """The sentences of a text, as offsets (``spans``) and by number."""

    def __init__(self, text: str) -> None:
        self._text = text
        begins, ends = [0], []
        for match in SENTENCE_END.finditer(text):
            ends.append(match.start())
            begins.append(match.end())
        self.spans = list(zip(begins, [*ends, len(text)], strict=True))
        self._begins = begins

    def number_at(self, place: int) -> int:
        """The number of the sentence that contains the offset ``place``."""
        return bisect_right(self._begins, place) - 1

    def __getitem__(self, number: int) -> str:
        begin, end = self.spans[number]
        return self._text[begin:end].strip()


def items(text: str, speakers: Sequence[str] = ()) -> Items:
    """The items of ``text``. ``speakers`` are always names; other names are capitalized words inside a sentence."""
    kinds: tuple[Counter[str], Counter[str], Counter[str]] = (Counter(), Counter(), Counter())
    identifiers, numbers, names = kinds
    places: dict[str, int] = {}

    def found(kind: Counter[str], item: str, place: int) -> None:
        kind[item] += 1
        places[item] = place

    for match in _IDENTIFIER.finditer(text):
        found(identifiers, match[0].strip("`").rstrip(".,;:"), match.start() + match[0].startswith("`"))
    rest = _IDENTIFIER.sub(_blanks, text)
    for match in _NUMBER.finditer(rest):
        found(numbers, match[0].rstrip(".,:/-"), match.start())
    for name, place in _names(rest):
        found(names, name, place)
    for speaker in speakers:
        if (place := find(text, speaker)) >= 0:
            found(names, speaker, place)
    return Items(dict(identifiers), dict(numbers), dict(names), places)


def _names(text: str) -> Iterator[tuple[str, int]]:
    """Capitalized words inside a sentence, with their offsets."""
    without_speakers = _SPEAKER.sub(_blanks, text)
    for begin, end in Sentences(without_speakers).spans:
        first = _FIRST_WORD.match(without_speakers, begin, end)
        inside = first.end() if first else begin
        for match in _NAME.finditer(without_speakers, inside, end):
            if match.start() > inside and not match[0][0].islower() and match[0].casefold() not in _NO_NAMES:
                yield match[0], match.start()


def _blanks(match: re.Match[str]) -> str:
    """Spaces in place of the match, so that offsets stay valid."""
    return " " * len(match[0])


def contains(text: str, item: str) -> bool:
    """Whether ``text`` has ``item`` as a whole word, ignoring case; 1,200 equals 1200."""
    if find(text, item) >= 0:
        return True
    plain = item.replace(",", "")
    return plain != item and plain.isdigit() and bool(re.search(rf"(?<!\d){plain}(?!\d)", text))


def find(text: str, item: str) -> int:
    """Offset of ``item`` as a whole word in ``text``, ignoring case; -1 if it is not there."""
    folded, wanted = text.casefold(), item.casefold()
    at = folded.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if not _is_word(folded[at - 1 : at]) and not _is_word(folded[end : end + 1]):
            return at
        at = folded.find(wanted, at + 1)
    return -1


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()
