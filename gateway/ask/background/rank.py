"""The passages of all found pages, ranked by the question's words and by meaning. Pure functions.

A passage counts as its page's title, its headings, a table's header and its text, so that no passage has to repeat
them (BM25: S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework", 2009).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise

from msgspec import Struct

from gateway.ask.background.draft import PageDraft
from gateway.ask.checking.evidence import as_meant
from gateway.ask.text.wording import row_signs, signs
from gateway.ask.text.words import asks_the_same, common_stems, content_words
from gateway.base.patterns import any_case

_K1, _B = 1.2, 0.75
# Weight of words that only the model's terms have.
_TERM_WEIGHT = 0.3
# A passage gains this share of its better neighbour's score, and a lead scores at least this share of the page's best.
_NEIGHBOUR_SHARE, _LEAD_SHARE = 0.2, 0.8
# A section that is nearest to the question by meaning gains this share of the best score.
_NEAR_SHARE = 0.4
_HEADED_SHARE = 0.3  # the same for one whose heading asks what the question asks
# Score that a page's passages lose for each rank among the found pages.
_PLACE = 0.05
_SIMILAR = 0.75  # difflib ratio from which a word counts as a title's word, misspelt
_SHORTEST_MISSPELT = 5
# A question asks for a kind of word that passages may have: a year, a number, a person.
_CUES = (
    (
        "#year",
        any_case(r"\b(?:when|years?|date|older|newer|first)\b"),
        re.compile(r"(?<![0-9])(?:1[0-9]|20)[0-9]{2}(?![0-9])"),
    ),
    (
        "#number",
        any_case(r"\b(?:how (?:many|much|long|large|big|old|often|far)|number)\b"),
        any_case(r"[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"),
    ),
    (
        "#person",
        any_case(r"\b(?:who|whom|whose|author)\b"),
        re.compile(r"\b[A-Z]\w+ (?:[A-Z]\.? ?)?[A-Z][a-z]+"),
    ),
)


class Ranked(Struct, frozen=True):
    """A passage, by the indices of its draft and in it. ``score`` is 0 if nothing of it matches the query."""

    draft: int
    passage: int
    score: float


def rank(drafts: Sequence[PageDraft], question: str, terms: Sequence[str] = ()) -> list[Ranked]:
    """Rank all passages of the pages, best first; those that match equally well in the order of the pages.

    The best passages of pages whose titles the question names are equally good: it may ask about several.
    """
    texts = [[_words(draft, index) for index in range(len(draft.passages))] for draft in drafts]
    titles = [content_words(as_meant(draft.page.subject)) for draft in drafts]
    question = as_meant(question)
    asked = set(content_words(question))
    common = common_stems([words for page in texts for words in page])
    cues = [name for name, asks, _ in _CUES if asks.search(question)]
    wanted = signs(question)
    for page, draft in zip(texts, drafts, strict=True):
        for words, passage in zip(page, draft.passages, strict=True):
            words += ["#sign"] * any(wanted & row_signs(line) for line in passage.text.split("\n"))
    cues += ["#sign"] * bool(wanted)
    query = _query(question, terms, {word for page in texts for words in page for word in words}, titles)
    scored = _bm25(texts, query, cues)
    best = max((score for scores in scored for score in scores), default=0.0) or 1.0
    ranked: list[Ranked] = []
    for number, scores in enumerate(scored):
        draft = drafts[number]
        headed = {
            index for index, path in enumerate(draft.paths) if path and asks_the_same(asked, path[-1], common)
        }
        shares = [
            _NEAR_SHARE * (each.section == draft.section) + _HEADED_SHARE * (each.section in headed)
            for each in draft.passages
        ]
        raised = [
            score + share * best for score, share in zip(_with_neighbours(draft, scores), shares, strict=True)
        ]
        if raised:
            # A question for nothing but the page, or that its title asks, is one for its lead.
            whole = asked.issubset(titles[number]) or asks_the_same(asked, draft.page.title)
            share = 1.0 if asked and whole else _LEAD_SHARE
            raised[0] = max(raised[0], share * max(raised))
        if titles[number] and asked.issuperset(titles[number]) and 0.0 < max(raised, default=0.0) < best:
            raised = [score * best / max(raised) for score in raised]
        ranked += [
            Ranked(number, index, score / (1.0 + _PLACE * number)) for index, score in enumerate(raised)
        ]
    return sorted(ranked, key=lambda each: -each.score)


def _words(draft: PageDraft, index: int) -> list[str]:
    passage = draft.passages[index]
    shown = [draft.page.names, *draft.paths[passage.section], passage.text, passage.term]
    if passage.header != passage.text:
        shown.append(passage.header)
    return content_words(as_meant("\n".join(shown))) + [
        name for name, _, has in _CUES if has.search(passage.text)
    ]


def _query(
    question: str, terms: Sequence[str], known: set[str], titles: Sequence[Sequence[str]]
) -> dict[str, float]:
    """The words to look for with their weights; one that no passage has stands for a similar word of a title."""
    query = dict.fromkeys((word for term in terms for word in content_words(term)), _TERM_WEIGHT)
    query |= dict.fromkeys(content_words(question), 1.0)
    named = {word for title in titles for word in title}
    for word in [word for word in query if word not in known and len(word) >= _SHORTEST_MISSPELT]:
        for similar in get_close_matches(word, named, n=1, cutoff=_SIMILAR):
            query.setdefault(similar, query.pop(word))
    return query


def _bm25(
    texts: Sequence[Sequence[Sequence[str]]], query: Mapping[str, float], cues: Sequence[str]
) -> list[list[float]]:
    """Scores by page and passage. ``cues`` count as words of the query for passages that have another one."""
    every = [words for page in texts for words in page]
    average = sum(map(len, every)) / max(1, len(every)) or 1.0
    wanted = {**query, **dict.fromkeys(cues, 1.0)}
    holding = Counter(word for words in every for word in set(words) if word in wanted)
    weights = {
        word: wanted[word] * math.log(1.0 + (len(every) - count + 0.5) / (count + 0.5))
        for word, count in holding.items()
    }

    def score(words: Sequence[str]) -> float:
        counts = Counter(word for word in words if word in weights)
        if not counts.keys() - set(cues):
            return 0.0
        long = _K1 * (1.0 - _B + _B * len(words) / average)
        return sum(weights[word] * n * (_K1 + 1.0) / (n + long) for word, n in counts.items())

    return [[score(words) for words in page] for page in texts]


def _with_neighbours(draft: PageDraft, scores: Sequence[float]) -> list[float]:
    """Raise passages beside a good one of their section: an answer may stand next to the words of the question."""
    raised = list(scores)
    for (a, first), (b, second) in pairwise(enumerate(draft.passages)):
        if first.section == second.section:
            raised[a] = max(raised[a], scores[a] + _NEIGHBOUR_SHARE * scores[b])
            raised[b] = max(raised[b], scores[b] + _NEIGHBOUR_SHARE * scores[a])
    return raised
