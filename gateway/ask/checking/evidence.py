"""Evidence: the wiki's pages in a form that claims can be compared with.

A passage supports a claim if it contains every number and name of the claim and at least half of the claim's
content words, names and numbers counting double. Its section's heading and its page's title count as its words.
This finds invented names, dates and subjects; it cannot tell a statement from its negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Self

from msgspec import Struct

from gateway.ask.text.passages import Passage
from gateway.ask.text.sentences import MARKER
from gateway.ask.text.words import Features, content_words, features, lower_case_stems
from gateway.wiki.source import Page

_LEAST_SHARE = 0.5
# A claim must share more than one ordinary word with its source.
_LEAST_WEIGHT = 2.0
_MOST_TOGETHER = 3
_ITEM_NUMBER = re.compile(r"\A\s*[0-9]{1,3}[.)]\s")
_PARENTHESES = re.compile(r"\([^()]*\)")


class EvidencePassage(Struct, frozen=True):
    """One passage of page ``n``; ``words`` are its stems with those of title and heading."""

    n: int
    section: int
    words: frozenset[str]
    text: str


class Evidence(Struct, frozen=True):
    """Passages of the pages in the prompt; ``ordinary`` stems occur in lower case in some of them."""

    sources: list[EvidencePassage]
    titles: dict[int, frozenset[str]]  # stems of each page's title, without a part in parentheses
    ordinary: frozenset[str]
    urls: dict[int, str]

    @classmethod
    def of(cls, pages: Iterable[tuple[int, Page, Sequence[Passage]]]) -> Self:
        """Build evidence from numbered pages and the passages that they are cut into."""
        sources: list[EvidencePassage] = []
        titles: dict[int, frozenset[str]] = {}
        urls: dict[int, str] = {}
        ordinary: set[str] = set()
        for n, page, passages in pages:
            title = frozenset(content_words(page.title))
            titles[n] = frozenset(content_words(_PARENTHESES.sub("", page.title))) or title
            urls[n] = page.url
            for passage in passages:
                heading = page.sections[passage.section].heading
                words = features(f"{heading}\n{passage.text}").words | title
                sources.append(EvidencePassage(n, passage.section, words, passage.text))
                ordinary |= lower_case_stems(passage.text)
        return cls(sources, titles, frozenset(ordinary), urls)


class Support(Struct, frozen=True):
    """How well a page supports a claim (0 to 1), and the section that supports it best."""

    share: float
    section: int


class Backing(Struct, frozen=True):
    """The pages that support a claim; ``together`` if only all of them do."""

    pages: dict[int, Support] = {}
    together: bool = False


def claim(text: str, ordinary: frozenset[str] = frozenset()) -> Features:
    """Extract what a sentence claims, ignoring its markers and the number of a list item."""
    return features(_ITEM_NUMBER.sub("", MARKER.sub(" ", text), count=1), ordinary)


def supporting(claimed: Features, evidence: Evidence) -> Backing:
    """Find the pages of which one passage supports the claim, or else pages that support it together.

    Up to three passages can support a claim together if they come from one page, or if the claim names every
    page involved, as a comparison does.
    """
    found: dict[int, Support] = {}
    for source in evidence.sources:
        share = _share(claimed, source.words)
        if _enough(claimed, source.words) and (source.n not in found or share > found[source.n].share):
            found[source.n] = Support(share, source.section)
    return Backing(found) if found else _together(claimed, evidence)


def _together(claimed: Features, evidence: Evidence) -> Backing:
    named = {n for n, title in evidence.titles.items() if title <= claimed.words}
    pools = [{n} for n in evidence.titles] + ([named] if len(named) > 1 else [])
    for pool in pools:
        chosen = _cover(claimed, [source for source in evidence.sources if source.n in pool])
        if chosen:
            pages = {s.n: Support(_share(claimed, s.words), s.section) for s in reversed(chosen)}
            return Backing(dict(sorted(pages.items())), together=True)
    return Backing()


def _cover(claimed: Features, sources: Sequence[EvidencePassage]) -> list[EvidencePassage]:
    """Choose up to three passages greedily until they support the claim; [] if they do not."""
    covered: frozenset[str] = frozenset()
    chosen: list[EvidencePassage] = []
    while sources and len(chosen) < _MOST_TOGETHER:
        best = max(sources, key=lambda source: _weight(claimed, covered | source.words))
        if _weight(claimed, covered | best.words) <= _weight(claimed, covered):
            return []
        chosen.append(best)
        covered |= best.words
        if _enough(claimed, covered):
            return chosen
    return []


def _enough(claimed: Features, words: frozenset[str]) -> bool:
    required = claimed.names | claimed.numbers
    return (
        required <= words
        and _weight(claimed, words) >= _LEAST_WEIGHT
        and _share(claimed, words) >= _LEAST_SHARE
    )


def _share(claimed: Features, words: frozenset[str]) -> float:
    total = _weight(claimed, claimed.words)
    return _weight(claimed, words) / total if total else 0.0


def _weight(claimed: Features, words: frozenset[str]) -> float:
    doubled = claimed.names | claimed.numbers
    return float(len(claimed.words & words) + len(doubled & words))
