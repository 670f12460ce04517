"""Check that a summary keeps the names, numbers, identifiers and open tasks of its source. Pure.

The check compares words; no model is involved. For what the summary lost, the sentence of the source that has it is
pinned to the summary verbatim, as far as the room for pins goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from gateway.memory.summaries.items import SENTENCE_END, Sentences, contains, items

_OPEN_TASK = re.compile(r"\b(?:TODO|FIXME)\b|(?<!\w)\[ \]", re.I)
_LONGEST_PIN = 240
_ASSISTANT_LINE = re.compile(r"^Assistant: .*$", re.M)
# Where a clause ends, with a space after it: "18:45" is one number.
_CLAUSE_END = re.compile(r"[,;:]\s|\s(?:and|but|while|và|còn|nhưng)\s", re.I)
_THOUSANDS = re.compile(r"(?<=\d)[,.](?=\d{3}(?!\d))")
_ROLES = {"User", "Assistant"}
_NAME_LIKE = re.compile(r"[^\W\d_]\w*")


class SourceCheck(Struct, frozen=True):
    """Lines to pin, items that are lost even so, and the share of the items that the summary's text kept."""

    pins: list[str]
    lost: list[str]
    share: float


def check(
    source: str, summary: str, *, speakers: Sequence[str] = (), room: int, cost: Callable[[str], int]
) -> SourceCheck:
    """Compare a summary with its source. ``room`` bounds the pins' summed ``cost`` (tokens of a line)."""
    found, sentences = items(source, speakers), Sentences(source)
    by_users = items(_ASSISTANT_LINE.sub(lambda line: " " * len(line[0]), source), speakers).places
    places = found.places | by_users
    wanted = found.all
    missing = [item for item in wanted if not contains(summary, item)]
    share = 1.0 - len(missing) / len(wanted) if wanted else 1.0
    pins: list[str] = []
    lost: list[str] = []
    pinned = ""
    open_tasks = [(line, line) for line in _open_tasks(source, summary)]
    missing.sort(key=lambda item: item not in by_users)  # what users said goes first
    said = [(item, sentences[sentences.number_at(places[item])]) for item in missing]
    for item, sentence in [*open_tasks, *said]:
        if contains(pinned, item):
            continue
        line = line_with(sentence, item)
        if (needed := cost(line)) > room:
            lost.append(item)
            continue
        room -= needed
        pins.append(line)
        pinned = "\n".join(pins)
    return SourceCheck(pins, lost, share)


def wrong_pair(source: str, summary: str) -> tuple[str, str] | None:
    """A name and a number that a clause of ``summary`` joins although no line of ``source`` has both."""
    known = items(source)
    names = (known.names.keys() | known.identifiers.keys()) - _ROLES
    lines = source.split("\n")
    for sentence in SENTENCE_END.split(summary):
        for clause in _CLAUSE_END.split(sentence):
            for number in items(clause).numbers:
                having = [line for line in lines if contains(line, number)]
                for name in names & set(_NAME_LIKE.findall(clause)):
                    if not any(contains(line, name) for line in having):
                        return name, number
    return None


def invented(source: str, summary: str) -> str | None:
    """A name, number or identifier of ``summary`` that ``source`` does not have."""
    whole = f"{source}\n{_THOUSANDS.sub('', source)}"
    return next(
        (each for each in items(summary).all if each not in _ROLES and not contains(whole, each)), None
    )


def is_open_task(line: str) -> bool:
    """Whether the line has TODO, FIXME or an empty checkbox."""
    return bool(_OPEN_TASK.search(line))


def line_with(sentence: str, item: str) -> str:
    """The sentence, shortened around ``item`` if it is long; only ``item`` if it is not whole there."""
    if not contains(sentence, item):
        return item
    if len(sentence) <= _LONGEST_PIN:
        return sentence
    at = sentence.casefold().find(item.casefold())
    begin = max(0, at - (_LONGEST_PIN - len(item)) // 2)
    piece = sentence[begin : begin + _LONGEST_PIN].strip()
    return f"{'… ' if begin else ''}{piece}{' …' if begin + _LONGEST_PIN < len(sentence) else ''}"


def cut_at_sentence(text: str, most: int, cost: Callable[[str], int]) -> str:
    """The first sentences of ``text`` that together cost at most ``most``; "" when the first one costs more."""
    kept = ""
    for end in [match.start() for match in SENTENCE_END.finditer(text)] + [len(text)]:
        if cost(text[:end]) > most:
            break
        kept = text[:end]
    return kept.rstrip()


def _open_tasks(source: str, summary: str) -> list[str]:
    """Lines with an open task that the summary does not contain."""
    lines = [line.strip() for line in source.split("\n") if is_open_task(line)]
    return [line[:_LONGEST_PIN] for line in lines if not contains(summary, line[:_LONGEST_PIN])]
