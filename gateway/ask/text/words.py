"""Stems, names and numbers of English text, for comparing texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence, Set

from msgspec import Struct

from gateway.base.patterns import any_case
from gateway.base.stems import stem
from gateway.store.stop_words import STOP_WORDS

# A version or decimal, letters and digits, joined by underscores as in ``FILL_PIT``, a run of symbols
# as in ``><>``, or a symbol by itself.
_TOKEN = re.compile(
    r"(?<![\w.])[0-9]+(?:\.[0-9]+)+(?![\w]|\.[0-9])|"
    r"[^\W_]+(?:_+[^\W_]+)*(?:['’][^\W\d_]+)?|[^\w\s]{2,}|(?<![^\s\"'`(])[^\w\s|](?![^\s\"'`),.?])"
)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_LAST = re.compile(r"(?<=\S)(?<![.?!…])[.?!…]+\s*\Z")  # it is no part of the name before it: ><>?
_APOSTROPHE = re.compile("['’]")
_PLAIN_PUNCTUATION = frozenset(".,;:!?'\"()[]{}…–—-*`’‘“”")
WORD_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    )
}
# Words that follow a subject: they distinguish "Malbolge was" from "Invented in".
_AFTER_SUBJECT = frozenset(
    "is was are were has had have does did do can could will would may might must uses used takes".split()  # noqa: SIM905
)
_MORE_STOP_WORDS = frozenset(
    "also because both each every just like more most much no not only other some such there too very yes".split()  # noqa: SIM905
)
# Babble: one word five times in a row, three words or more three times in a row, or too few distinct words in a long
# text.
_IN_A_ROW = 5
_BABBLE_WORDS = 24
_BABBLE_SHARE = 0.35
# Words that two questions share which ask the same, and their share of all words of both.
_LEAST_SHARED, _LEAST_SAME = 2, 0.6
_ASKS = any_case(
    r".*[?？]|\W*(?:how|what|which|who|whose|where|when|why|can|could|do|does|did|is|are|was|were|should|will|may|must)\b",
    re.S,
)
_STOP_WORDS = STOP_WORDS | _MORE_STOP_WORDS


class Features(Struct, frozen=True):
    """The stems of a text; ``names`` and ``numbers`` are subsets of ``words``."""

    words: frozenset[str]
    names: frozenset[str]
    numbers: frozenset[str]


def tokens(text: str) -> list[str]:
    """List words and runs of symbols in order, without plain punctuation."""
    found = _TOKEN.findall(_THOUSANDS.sub("", _LAST.sub("", text)))
    return [token for token in found if not set(token) <= _PLAIN_PUNCTUATION]


def is_stop_word(token: str) -> bool:
    """Whether a word says nothing about a subject; "isn't" and "what's" are stop words too."""
    word, *contracted = _APOSTROPHE.split(token.casefold())
    return word in _STOP_WORDS or (bool(contracted) and word.removesuffix("n") in _STOP_WORDS)


def content_words(text: str) -> list[str]:
    """List the stems of all but stop words, in order and with repetitions; number words become digits."""
    return [_stem_or_digits(token) for token in tokens(text) if not is_stop_word(token)]


def features(text: str, ordinary: Collection[str] = ()) -> Features:
    """Extract words, names and numbers.

    A capitalised word is a name. The first word is one only before another name or a verb, and only if its stem
    is not among ``ordinary``, stems known to be written in lower case.
    """
    found = tokens(text)
    words, names = set(), set()
    for index, token in enumerate(found):
        if is_stop_word(token):
            continue
        words.add(_stem_or_digits(token))
        following = found[index + 1] if index + 1 < len(found) else ""
        if _is_name(token, index == 0, following, ordinary):
            names.add(_stem_or_digits(token))
    numbers = frozenset(_NUMBER.findall(_THOUSANDS.sub("", text)))
    return Features(frozenset(words | numbers), frozenset(names), numbers)


def asks(heading: str) -> bool:
    """Whether a heading is a question, as those of an FAQ are."""
    return _ASKS.match(heading) is not None


def asks_the_same(asked: Set[str], heading: str, common: Set[str] = frozenset()) -> bool:
    """Whether a heading or title is a question with most of the stems of another one, and few others.

    Stems that are ``common`` tell no heading from another: "Debian" in a manual of Debian.
    """
    named = frozenset(content_words(heading)) - (common - asked)
    shared = len(asked & named)
    return (
        bool(_ASKS.match(heading)) and shared >= _LEAST_SHARED and shared >= _LEAST_SAME * len(asked | named)
    )


def common_stems(passages: Sequence[Iterable[str]]) -> frozenset[str]:
    """The stems that more than half of the passages have."""
    holding = Counter(word for words in passages for word in set(words))
    return frozenset(word for word, count in holding.items() if 2 * count > len(passages))


def asks_more(asked: Set[str], heading: str) -> bool:
    """Whether a title is a question with all stems of another one, perhaps among others."""
    return len(asked) >= _LEAST_SHARED and bool(_ASKS.match(heading)) and asked <= set(content_words(heading))


def lower_case_stems(text: str) -> set[str]:
    return {stem(token) for token in tokens(text) if token[:1].islower()}


def _stem_or_digits(token: str) -> str:
    return WORD_NUMBERS.get(token.casefold()) or stem(token)


def _is_name(token: str, first: bool, following: str, ordinary: Collection[str]) -> bool:
    if not token[:1].isupper():
        return False
    if len(token) > 1 and token[1:] != token[1:].lower():
        return True  # INTERCAL, LaTeX
    if not first:
        return True
    if following.casefold() not in _AFTER_SUBJECT and not following[:1].isupper():
        return False
    return stem(token) not in ordinary


def same_words(text: str) -> str:
    """A key under which sentences are equal that differ only in case, spacing and punctuation."""
    return " ".join(token.casefold() for token in tokens(text))


def is_babble(text: str) -> bool:
    """Whether the text repeats itself, as a small model's output does when it degenerates."""
    found = [token.casefold() for token in tokens(text)]
    if any(len(set(found[i : i + _IN_A_ROW])) == 1 for i in range(len(found) - _IN_A_ROW + 1)):
        return True
    if any(
        found[i : i + length] == found[i + length : i + 2 * length] == found[i + 2 * length : i + 3 * length]
        for length in range(3, len(found) // 3 + 1)
        for i in range(len(found) - 3 * length + 1)
    ):
        return True
    return len(found) >= _BABBLE_WORDS and len(set(found)) < _BABBLE_SHARE * len(found)
