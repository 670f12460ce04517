"""Selects the parts of a page that share words with a question. Pure functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from gateway.ask.background.draft import PageDraft
from gateway.ask.text.words import content_words

# A match in the heading counts as 3 in the text; a word's matches beyond the third in the text add nothing.
_HEADING_WEIGHT = 3.0
_MATCHES_COUNTED = 3
# Sections below this share of the best score are left out; the lead scores at least its share of the best.
_LEAST_SHARE = 0.25
_LEAD_SHARE = 0.5


class Selection(Struct, frozen=True):
    """Passages of a draft as ascending indices, and their tokens with the header.

    ``left_out`` lists the headings of sections with a passage left out; ``cut`` is true if a section is split.
    """

    passages: tuple[int, ...]
    tokens: int
    left_out: tuple[str, ...] = ()
    cut: bool = False


def everything(draft: PageDraft) -> Selection:
    return Selection(tuple(range(len(draft.passages))), draft.whole)


def _selection(draft: PageDraft, chosen: Sequence[int]) -> Selection:
    kept = tuple(sorted(chosen))
    shown = {draft.passages[index].section for index in kept}
    missing = [passage.section for i, passage in enumerate(draft.passages) if i not in set(kept)]
    headings = tuple(draft.page.sections[section].heading for section in dict.fromkeys(missing))
    tokens = draft.head + sum(draft.costs[index] for index in kept)
    return Selection(kept, tokens, headings, bool(shown & set(missing)))


def _word_weights(words: Sequence[str], texts: Sequence[Sequence[str]]) -> dict[str, float]:
    """Weigh query words by inverse document frequency: a word in all ``texts`` weighs next to nothing."""
    total = len(texts)
    contained = Counter(word for text in texts for word in set(text))
    return {
        word: math.log((total + 1) / (contained[word] + 0.5))
        for word in dict.fromkeys(words)
        if contained[word]
    }


def _section_scores(draft: PageDraft, query: str) -> list[float]:
    """Score each section's match, 0 for none. The title's words are ignored: they do not tell sections apart."""
    sections = draft.page.sections
    headings = [content_words(section.heading) for section in sections]
    texts = [content_words(section.text) for section in sections]
    title = set(content_words(draft.page.title))
    wanted = [word for word in content_words(query) if word not in title]
    weights = _word_weights(wanted, [h + t for h, t in zip(headings, texts, strict=True)])
    scores = []
    for heading, text in zip(headings, texts, strict=True):
        counts = Counter(text)
        score = 0.0
        for word, weight in weights.items():
            score += weight * _HEADING_WEIGHT * (word in heading)
            score += weight * min(counts[word], _MATCHES_COUNTED) / _MATCHES_COUNTED
        scores.append(score)
    return scores


def pick_sections(draft: PageDraft, query: str, limit: int) -> Selection:
    """Pick sections that match ``query``, best first, up to ``limit`` tokens; in page order if none matches.

    If not even the best one fits, pick as many of its first passages as fit, possibly none.
    """
    left = limit - draft.head
    chosen: list[int] = []
    for section in _ranked(draft, query):
        indices = [i for i, passage in enumerate(draft.passages) if passage.section == section]
        cost = sum(draft.costs[i] for i in indices)
        if cost <= left:
            chosen += indices
            left -= cost
        elif not chosen:
            for index in indices:
                if draft.costs[index] > left:
                    break
                chosen.append(index)
                left -= draft.costs[index]
    return _selection(draft, chosen)


def _ranked(draft: PageDraft, query: str) -> list[int]:
    scores = _section_scores(draft, query)
    filled = sorted({passage.section for passage in draft.passages})
    best = max((scores[section] for section in filled), default=0.0)
    if best <= 0.0:
        return filled
    for section in filled:
        if draft.page.sections[section].heading == "":
            scores[section] = max(scores[section], best * _LEAD_SHARE)
    matching = [section for section in filled if scores[section] >= best * _LEAST_SHARE]
    return sorted(matching, key=lambda section: (-scores[section], section))


def pick_passages(draft: PageDraft, query: str, limit: int) -> Selection:
    """Pick the passages that match ``query`` best, up to ``limit`` tokens; the first ones if none matches."""
    headings = [section.heading for section in draft.page.sections]
    texts = [content_words(f"{headings[p.section]} {p.text}") for p in draft.passages]
    weights = _word_weights(content_words(query), texts)
    scores = [sum(weights.get(word, 0.0) for word in set(text)) for text in texts]
    order = sorted(range(len(texts)), key=lambda index: (-scores[index], index))
    matching = [index for index in order if scores[index] > 0.0] or order
    left = limit - draft.head
    chosen = []
    for index in matching:
        if draft.costs[index] <= left:
            chosen.append(index)
            left -= draft.costs[index]
    return _selection(draft, chosen)
