"""Citation recall and precision as ALCE defines them (Gao et al., 2023, https://arxiv.org/abs/2305.14627).

A statement is recalled if it has markers and the passages that they cite together support it. A citation of a recalled
statement is precise if its passage supports the statement alone, or if the others together do not.

ALCE's judge is a language model; here a rule that needs none: of three sentences or lines that stand together on the
cited page, with its title, their heading and their table's header, all numbers and names of the statement must be
there, and half of its words, one of them no number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from gateway.ask.checking.citations import is_refusal
from gateway.ask.text.passages import CELLS
from gateway.ask.text.sentences import sentences, split_units
from gateway.ask.text.words import features, lower_case_stems
from gateway.wiki.source import Page

_MARKER = re.compile(r"\[(\d{1,3})\]")
_TOGETHER = 3  # sentences or lines of a passage
_LEAST_SHARE = 0.5


class CitationScore(Struct, frozen=True):
    """Statements of an answer and those recalled, its citations and those that are precise."""

    statements: int = 0
    recalled: int = 0
    citations: int = 0
    precise: int = 0


class _Claim(Struct, frozen=True):
    """The words that a passage must have: all of ``needed``, half of ``words``, one of these outside ``numbers``."""

    needed: frozenset[str]
    words: frozenset[str]
    numbers: frozenset[str]

    def missing(self, words: frozenset[str]) -> tuple[int, int]:
        return len(self.needed - words), len(self.words - words)

    def supported(self, words: frozenset[str]) -> bool:
        shared = self.words & words
        return (
            self.needed <= words
            and len(shared) >= _LEAST_SHARE * len(self.words)
            and not shared <= self.numbers  # "The answer is 3" says nothing about the three of a passage
        )


def judge(answer: str, pages: Mapping[int, Page]) -> CitationScore:
    """Judge an answer whose marker ``[n]`` cites ``pages[n]``; a page that is missing supports nothing."""
    passages = {n: list(_passages(page)) for n, page in pages.items()}
    texts = (section.text for page in pages.values() for section in page.sections)
    ordinary = frozenset[str]().union(*map(lower_case_stems, texts))
    statements = recalled = citations = precise = 0
    for unit in split_units(answer):
        found = features(_MARKER.sub(" ", unit.body), ordinary)
        claim = _Claim(found.names | found.numbers, found.words, found.numbers)
        if unit.code or not claim.words or is_refusal(unit.body):
            continue
        cited = {int(n): _best(claim, passages.get(int(n), [])) for n in _MARKER.findall(unit.body)}
        holds = bool(cited) and claim.supported(_union(cited, without=None))
        statements, recalled = statements + 1, recalled + holds
        citations += len(cited)
        precise += sum(
            holds and (claim.supported(words) or not claim.supported(_union(cited, without=n)))
            for n, words in cited.items()
        )
    return CitationScore(statements, recalled, citations, precise)


def _passages(page: Page) -> Iterator[frozenset[str]]:
    """The words of each passage, with those of its heading, its table's header and the page's title."""
    for section in page.sections:
        lines = list(_lines(section.text))
        head = _words(f"{page.title} {section.heading}")
        for start in range(max(1, len(lines) - _TOGETHER + 1)):
            yield head.union(*lines[start : start + _TOGETHER])


def _lines(text: str) -> Iterator[frozenset[str]]:
    header: frozenset[str] | None = None  # None outside of a table
    for line in text.split("\n"):
        if CELLS not in line:
            header = None
        elif header is None:
            header = _words(line)
        for each in sentences(line):
            yield _words(each) | (header or frozenset())


def _words(text: str) -> frozenset[str]:
    return features(text).words


def _best(claim: _Claim, passages: Sequence[frozenset[str]]) -> frozenset[str]:
    return min(passages, key=claim.missing, default=frozenset())


def _union(cited: Mapping[int, frozenset[str]], without: int | None) -> frozenset[str]:
    return frozenset[str]().union(*(words for n, words in cited.items() if n != without))
