"""Check that a summary says what its source says, and keeps its names, numbers, identifiers and open tasks. Pure.

The check compares words; no model is involved. Sentences that the source does not support are dropped. For what the
summary lost, the sentence of the source that has it is pinned to it verbatim, as far as the room for pins goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.stems import stem
from gateway.memory.summaries.items import SENTENCE_END, Sentences, contains, items, said_again
from gateway.store.stop_words import VIETNAMESE_SYLLABLE, plain

_OPEN_TASK = any_case(r"\b(?:TODO|FIXME)\b|(?<!\w)\[ \]")
_LONGEST_PIN = 240
# A summary without its pins has this share of the names, numbers and identifiers, if there are more than a few.
_LEAST_TOLD = 0.25
_FEW = 3
_WORD = re.compile(r"[^\W\d_]{4,}")
_ANY_WORD = re.compile(r"[^\W\d_]+")
# "User said:"
_TOLD_BY = re.compile(r"[^\W\d_][\w'’-]*(?: \w+){0,2}: |\b(?:User|Assistant|said|asked|says)\b")
_ASSISTANT_LINE = re.compile(r"^Assistant: .*$", re.M)
# Where a clause ends, with a space after it: "18:45" is one number.
_CLAUSE_END = any_case(r"[,;:]\s|\s(?:and|but|while|và|còn|nhưng)\s")
_THOUSANDS = re.compile(r"(?<=\d)[,.](?=\d{3}(?!\d))")
_ORDINAL = any_case(r"(?<=\d)(?:st|nd|rd|th)\b")
_POSSESSIVE = any_case(r"['’]s$")
_ROLES = {"User", "Assistant"}
_LABEL = re.compile(r"([^\W\d_][\w'’-]*): ")
_OF_ONESELF = any_case(r"\b(?:I|my|tôi|mình|tớ)\b")
_HALF_WORD_BEFORE = re.compile(r"\A\S+")
_HALF_WORD_BEHIND = re.compile(r"\S+\Z")
_NAME_LIKE = re.compile(r"[^\W\d_]\w*")


class SourceCheck(Struct, frozen=True):
    """Lines to pin, items that are lost even so, and the share of the wanted items that are not.

    ``vapid``: without its pins, the summary says next to nothing of its source.
    """

    pins: list[str]
    lost: list[str]
    share: float
    vapid: bool


def check(
    source: str,
    summary: str,
    *,
    speakers: Sequence[str] = (),
    wanted: str | None = None,
    room: int,
    cost: Callable[[str], int],
) -> SourceCheck:
    """Compare a summary with its source. ``room`` bounds the pins' summed ``cost`` (tokens of a line).

    Items of the source that the extract ``wanted`` has are pinned first, and only these can be lost.
    """
    source = _without_phrases(source)
    found, sentences = items(source, speakers), Sentences(source)
    by_users = items(_ASSISTANT_LINE.sub(lambda line: " " * len(line[0]), source), speakers).places
    places = found.places | by_users
    due = [item for item in found.all if wanted is None or contains(wanted, item)]
    known = frozenset(due)
    missing = [item for item in found.all if not contains(summary, item)]
    pins: list[str] = []
    lost: list[str] = []
    pinned = ""
    lines = [_cut(line.strip()) for line in source.split("\n") if is_open_task(line)]
    open_tasks = [(line, line) for line in lines if not contains(summary, line)]
    # Users' words go first.
    missing.sort(key=lambda item: (item not in known, item not in by_users))
    said = [(item, sentences[sentences.number_at(places[item])]) for item in missing]
    for item, sentence in [*open_tasks, *said]:
        if contains(pinned, item):
            continue
        line = line_with(sentence, item)
        if (needed := cost(line)) > room:
            if item in known or (is_open_task(item) and (wanted is None or contains(wanted, item))):
                lost.append(item)
            continue
        room -= needed
        pins.append(line)
        pinned = "\n".join(pins)
    told = sum(contains(summary, item) for item in due)
    words = _stems(summary)
    alike = 2 * len(words & _stems(source)) >= len(words)
    vapid = told < len(due) * _LEAST_TOLD if len(due) > _FEW else not (told or alike)
    return SourceCheck(pins, lost, 1.0 - len(lost) / max(1, len(due), len(lost)), vapid)


def _without_phrases(source: str) -> str:
    """Blanks in place of what the assistant says again and again."""
    said = [SENTENCE_END.split(line.partition(": ")[2]) for line in _ASSISTANT_LINE.findall(source)]
    phrases = said_again(said)
    if not phrases:
        return source

    def blanked(line: re.Match[str]) -> str:
        text = line[0]
        for each in SENTENCE_END.split(text.partition(": ")[2]):
            text = text.replace(each, " " * len(each)) if each.strip().casefold() in phrases else text
        return text

    return _ASSISTANT_LINE.sub(blanked, source)


def _stems(text: str) -> Set[str]:
    return {stem(word) for word in _WORD.findall(text)}


def is_garbled(source_stems: Set[str], sentence: str) -> bool:
    """Whether a Vietnamese sentence has a word that is neither the source's nor a Vietnamese syllable.

    Small models put pieces of English words into it ("hạn là threads năm").
    """
    words = _ANY_WORD.findall(_TOLD_BY.sub("", sentence))
    marked = sum(not word.isascii() for word in words)
    if marked < _FEW or 3 * marked < len(words):
        return False
    return any(
        stem(word) not in source_stems and not VIETNAMESE_SYLLABLE.fullmatch(plain(word)) for word in words
    )


def supported(lines: Sequence[str], summary: str) -> str:
    """``summary`` without sentences that are repeated, :func:`invented`, of another, :func:`is_garbled`, or have a
    :func:`wrong_pair`."""
    whole, names, told = _normalized("\n".join(lines)), _names(lines), _told(summary)
    spoken = [(line, _stems(line)) for line in lines]
    all_stems = {stem(word) for line in lines for word in _ANY_WORD.findall(line)}
    new = {each.strip().casefold(): each for each in reversed(told)}  # the first of equal ones
    return "".join(
        each
        for each in told
        if new[each.strip().casefold()] is each
        and not _invented(whole, each)
        and _wrong_pair(lines, names, each) is None
        and not _is_of_another(spoken, each)
        and not is_garbled(all_stems, each)
    ).strip()


def _told(summary: str) -> list[str]:
    """The sentences with the white space behind them. Code between backticks is not divided: "`a = B. c`"."""
    sentences = Sentences(summary)
    ends = [*(begin for begin, _ in sentences.spans[1:]), len(summary)]
    told: list[str] = []
    for (begin, _), end in zip(sentences.spans, ends, strict=True):
        if told and told[-1].count("`") % 2 and not told[-1].endswith("\n"):
            told[-1] += summary[begin:end]
        else:
            told.append(summary[begin:end])
    return told


def _is_of_another(spoken: Sequence[tuple[str, Set[str]]], sentence: str) -> bool:
    """Whether a sentence about a speaker only has words that others said of themselves."""
    who = sentence.split()[0] if sentence.strip() else ""
    words = _stems(sentence) - {stem(who)}
    own = [stems for line, stems in spoken if line.startswith(f"{who}: ")]
    if len(words) < _FEW or not own or words & set().union(*own):
        return False
    saying = [line for line, stems in spoken if 2 * len(words & stems) >= len(words)]
    return bool(saying) and all(_OF_ONESELF.search(line) and not contains(line, who) for line in saying)


def wrong_pair(lines: Sequence[str], summary: str) -> tuple[str, str] | None:
    """A name and a number that a clause of ``summary`` joins although none of ``lines`` has both."""
    return _wrong_pair(lines, _names(lines), summary)


def invented(source: str, summary: str) -> list[str]:
    """Names, numbers and identifiers of ``summary`` that ``source`` does not have."""
    return _invented(_normalized(source), summary)


def _names(lines: Sequence[str]) -> Set[str]:
    labels = [label[1] for line in lines if (label := _LABEL.match(line))]
    known = items("\n".join(lines), labels)
    return (known.names.keys() | known.identifiers.keys()) - _ROLES


def _wrong_pair(lines: Sequence[str], names: Set[str], summary: str) -> tuple[str, str] | None:
    for sentence in SENTENCE_END.split(summary):
        for clause in _CLAUSE_END.split(sentence):
            for number in items(clause).numbers:
                having = [line for line in lines if contains(line, number)]
                for name in names & set(_NAME_LIKE.findall(clause)):
                    if not any(contains(line, name) for line in having):
                        return name, number
    return None


def _normalized(source: str) -> str:
    """``source``, and once more with numbers that have no separators and no endings: 1200 and 18 for 1,200 and 18th."""
    return f"{source}\n{_ORDINAL.sub('', _THOUSANDS.sub('', source))}"


def _invented(whole: str, summary: str) -> list[str]:
    found = (_ORDINAL.sub("", _POSSESSIVE.sub("", each)) for each in items(summary).all)
    return [each for each in found if each not in _ROLES and not contains(whole, each)]


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
    end = begin + _LONGEST_PIN
    piece = sentence[begin:end]
    # A part of a word would be a name or a number that nobody said.
    if begin and not sentence[begin - 1].isspace():
        piece = _HALF_WORD_BEFORE.sub("", piece, count=1)
    if end < len(sentence) and not sentence[end].isspace():
        piece = _HALF_WORD_BEHIND.sub("", piece, count=1)
    if not contains(piece, item):
        return item
    return f"{'… ' if begin else ''}{piece.strip()}{' …' if end < len(sentence) else ''}"


def cut_at_sentence(text: str, most: int, cost: Callable[[str], int]) -> str:
    """The first sentences of ``text`` that together cost at most ``most``; "" when the first one costs more."""
    kept = ""
    for end in [match.start() for match in SENTENCE_END.finditer(text)] + [len(text)]:
        if cost(text[:end]) > most:
            break
        kept = text[:end]
    return kept.rstrip()


def _cut(line: str) -> str:
    """The line, or as many of its words as a pin holds."""
    begin = line[:_LONGEST_PIN]
    return begin if begin == line else (_HALF_WORD_BEHIND.sub("", line[: _LONGEST_PIN + 1]).rstrip() or begin)
