"""Find the messages that have the words of a question.

A term weighs the more, the fewer messages have it, and terms that no message has count as missing. So the share that a
message has of a question's weight tells whether it is about the same thing, in a log of any size.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import KeysView, Sequence
from datetime import datetime, time, tzinfo
from itertools import pairwise
from typing import NamedTuple

import apsw
from msgspec import Struct

from gateway.memory.planning.periods import Period, mentioned_days
from gateway.store import fts
from gateway.store.memory import history as store
from gateway.store.memory.history import Within
from gateway.store.stop_words import plain, stop_words

# Of a question; a longer one says too many things.
MOST_CHARACTERS = 2000
_MOST_WORDS = 32
# Of a term that more messages have, the newest ones are ranked.
_MOST_ROWS = 2000
# Messages without any of the terms that are added to the log: in a short one every word is rare.
_IMAGINED = 50
# Two adjacent words in a message weigh more than two apart: in Vietnamese most words have two syllables.
_PAIR_SHARE = 0.5
# A question is no evidence, least of all when it is asked again.
_QUESTION_SHARE = 0.4
ONLY_ASKS = re.compile(r"[^.!?？…\n]*[?？][\s\"')]*")
_ENDS_ASKING = re.compile(r"[?？][\s\"')]*$")
_FORM_SHARE = 0.1
# The messages beside it are about the same, most of all the answer to a question: each gets this share of its terms,
# by the number of messages from it on.
_BESIDE_SHARES = {1: 0.7, 2: 0.4, -1: 0.3}
_AROUND = 2
_GAP_SECONDS = 3600.0
_FIRST_YEAR = 1971  # in Unix seconds everywhere; nothing is older
_MOST_BESIDE = 50  # hits whose neighbours are ranked
USUAL_LENGTH = 300  # characters; longer messages have more words by chance
# Scripts without spaces, and Hangul, whose words have endings: their terms are pairs of characters.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
# Question words and words of any talk count little.
WEAK_WORDS = frozenset(
    """
    able again also always any ask asked back best better bit call called can can't come could day did didn't doing
    don't else ever example find first fine free get getting give go going gone good got great happen happened hello
    help here hey hi idea just keep kind know last later least less let like liked list long look lot made make
    making many may maybe mean might must mentioned more morning much name named need needs never new next nice no
    not now number ok okay once one ones only other people place please put really remember remind right said same
    see seem shall short shorter should something sort still such sure take talk thank thanks thing things think
    thought time times today tomorrow tonight too two up use used very want wanted way week well went without word
    work would write year years yes yesterday yet
    anh ai ạ bao biết bạn bị các cái chị cho chỉ chưa còn có cùng của cũng cảm dạ em gì giúp giờ hay hãy hôm hơn khi
    không kể là làm lúc lại mà mình mấy một mới muốn nào này năm nay ngay ngày ngon người nha nhé nhiêu nhiều nhưng
    như nhất nhỉ những nữa ơi ơn ở ra rất rồi sao sau sẽ thì thế theo thật thích tôi tên tại tớ từ và vào vẫn về vì
    với vậy xin đang đâu để đi đã đó được đến đều đừng ừ
    """.split()  # noqa: SIM905 - a list of quoted words is harder to read
)
_WEAK_SHARE = 0.3


class _Term(NamedTuple):
    """A word or pair of words, the messages that have it, and those whose speaker or day it names."""

    weight: float
    found: KeysView[int]
    implied: set[int]
    is_pair: bool


class MessageMatch(Struct, frozen=True):
    """A message that was found; ``share`` and ``weight`` are of the question's terms that it has."""

    seq: int
    score: float
    share: float
    weight: float


def ranked(
    connection: apsw.Connection,
    within: Within,
    asked: str,
    zone: tzinfo | None = None,
    *,
    beside: bool = False,
) -> list[MessageMatch]:
    """Messages with words of ``asked``, best first; with those ``beside`` them, which may answer what is asked there.

    Messages of the days that ``asked`` mentions, in this ``zone``, count as having the words of the date.
    """
    spoken = words(asked[:MOST_CHARACTERS])
    stops = stop_words(spoken)
    telling = [
        word
        for word in dict.fromkeys(spoken)
        if word not in stops and not (len(word) == 1 and word.isascii())
    ]
    sought = (telling or list(dict.fromkeys(spoken)))[:_MOST_WORDS]
    pairs = [f"{a} {b}" for a, b in pairwise(spoken) if a in sought and b in sought][:_MOST_WORDS]
    speakers = store.speakers_within(connection, within)
    total = sum(speakers.values()) + _IMAGINED
    days = mentioned_days(asked, datetime.now(zone).date())
    then = _said_on(connection, within, days, zone) if days is not None else frozenset()
    texts: dict[int, str] = {}
    terms: list[_Term] = []
    for term in [*_terms(sought), *dict.fromkeys(pairs)]:
        found = _having(connection, within, term)
        texts |= found
        named = [name for name in speakers if term in words(name)]
        implied = store.messages_by(connection, within, named, _MOST_ROWS) if named else set()
        if days is not None and term in days.words:
            implied |= then
        having = len(found.keys() | implied)
        weight = math.log1p((total - having + 0.5) / (having + 0.5))
        weight *= _WEAK_SHARE if term in WEAK_WORDS or term in _PLAIN_WEAK else 1.0
        terms.append(_Term(weight, found.keys(), implied - found.keys(), " " in term))
    whole = sum(term.weight for term in terms if not term.is_pair)
    asks = set(spoken)

    def match(seq: int, near: Sequence[tuple[int, float]]) -> MessageMatch:
        score = weight = 0.0
        for term in terms:
            share = max([1.0 if seq in term.found else 0.0, *(part for at, part in near if at in term.found)])
            score += share * term.weight * (_PAIR_SHARE if term.is_pair else 1.0)
            weight += share * term.weight if not term.is_pair and telling else 0.0
        if score:  # a name or a day alone finds nothing that was said by its bearer or on it
            told = sum(term.weight for term in terms if seq in term.implied)
            score += told
            weight += told
        # The same forms, of plain words too: "hives" and "I have" for "How many hives do I have?".
        form = 1 + _FORM_SHARE * len(asks & {*words(texts[seq])}) / len(asks)
        return MessageMatch(
            seq, score * _standing(texts[seq]) * form, weight / whole if whole else 0.0, weight
        )

    hits = sorted((match(seq, ()) for seq in texts), key=_best_first)
    if not beside:
        return hits
    around = store.around(connection, within, [hit.seq for hit in hits[:_MOST_BESIDE]], _AROUND, _GAP_SECONDS)
    texts |= {seq: text for seq, (_, text, _) in around.items()}
    # Replies have words of any question; only what they ask leads to what is said next.
    leading = {seq for seq, (role, text, _) in around.items() if role == "user" or _ENDS_ASKING.search(text)}
    matches = {hit.seq: hit for hit in hits} | {
        seq: match(seq, [(at, _BESIDE_SHARES.get(steps, 0.0)) for at, steps in near if at in leading])
        for seq, (_, _, near) in around.items()
    }
    return sorted((each for each in matches.values() if each.score), key=_best_first)


def _best_first(match: MessageMatch) -> tuple[float, int]:
    return -match.score, -match.seq


def _said_on(
    connection: apsw.Connection, within: Within, days: Period, zone: tzinfo | None
) -> frozenset[int]:
    if days.first.year < _FIRST_YEAR:
        return frozenset()
    first, end = (datetime.combine(day, time(), zone).timestamp() for day in (days.first, days.end))
    return store.messages_of_time(connection, within, first, end, _MOST_ROWS)


def _having(connection: apsw.Connection, within: Within, term: str) -> dict[int, str]:
    if _UNSPACED.search(term):
        return dict(store.messages_containing(connection, within, term, _MOST_ROWS))
    bare = plain(term)
    found = dict(store.messages_with(connection, within, fts.all_of([bare]), _MOST_ROWS))
    if bare == term:
        return found
    # The index knows no diacritics. A word with some is another one with others, but also the same without any.
    forms = "|".join(re.escape(form).replace(r"\ ", r"\W+") for form in (term, bare))
    said = re.compile(rf"(?<!\w)(?:{forms})(?!\w)")
    return {
        seq: text for seq, text in found.items() if said.search(unicodedata.normalize("NFC", text).casefold())
    }


def _terms(sought: Sequence[str]) -> list[str]:
    """The words, and pairs of characters of those without spaces between them."""
    found: list[str] = []
    for word in sought:
        if _UNSPACED.search(word) and len(word) > 1:
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            found.append(word)
    return list(dict.fromkeys(found))


class _OnlyWords(dict[int, str]):
    """Letters, marks and numbers as they are, everything else as a space; for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        each = chr(code)
        self[code] = each if unicodedata.category(each)[0] in "LMN" else " "
        return self[code]


_ONLY_WORDS = _OnlyWords()


def words(text: str) -> list[str]:
    """Lower-case words with their marks, in order."""
    return unicodedata.normalize("NFC", text).casefold().translate(_ONLY_WORDS).split()


def _standing(text: str) -> float:
    share = _QUESTION_SHARE if ONLY_ASKS.fullmatch(text) else 1.0
    return share / (0.8 + 0.2 * max(1.0, len(text) / USUAL_LENGTH))


_PLAIN_WEAK = frozenset(map(plain, WEAK_WORDS))
