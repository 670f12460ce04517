"""Choose the passages that fit the budget, and the page that needs a summary. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from gateway.ask.background.draft import PageDraft, heading_text, title_line
from gateway.ask.background.rank import Ranked
from gateway.ask.limits import Limits
from gateway.ask.text.passages import estimated_tokens

# Passages below this share of the best score are left out even where there is space.
_LEAST_SHARE = 0.45
# Passages are counted up to this many times the space, by estimate: some do not fit and make room for later ones.
_COUNTED = 3
# A page that the model reads as a whole has at most this share of the space: the rest is for other pages.
_WHOLE_SHARE = 0.7
# A page is summarized if its passages of this share of the best score fill the space this many times.
_GOOD_SHARE, _OVERFLOW = 0.5, 3
# The part of the space that a summary may have.
_SUMMARY_PART = 3
_LEAST_WORDS = 20

How = Literal["whole", "passages", "summary"]
# Identifies a line that is shown once however many passages need it: a title, a heading, a table's header.
_Key = tuple[object, ...]


def best_lines(drafts: Sequence[PageDraft], ranked: Sequence[Ranked], space: int) -> list[str]:
    """The lines of the best passages, by estimate several times as many as fit."""
    tokens: dict[str, int] = {}
    for each in ranked:
        if sum(tokens.values()) > _COUNTED * space:
            break
        tokens |= {text: estimated_tokens(text) for _, text in _lines(drafts, each)}
    return list(tokens)


def by_page(chosen: Sequence[Ranked], first: int = 0) -> Iterator[tuple[int, list[int]]]:
    """Yield each page's index with its passages, in the order of the pages (that page ``first``) and of their text."""
    for draft in sorted({each.draft for each in chosen}, key=lambda draft: (draft != first, draft)):
        yield draft, sorted(each.passage for each in chosen if each.draft == draft)


class Summarize(Struct, frozen=True):
    """Summarize these passages of a page, best first, in ``words`` words and at most ``tokens`` tokens."""

    draft: PageDraft
    passages: list[int]
    words: int
    tokens: int


def whole_page(
    drafts: Sequence[PageDraft], best: Ranked, space: int, cost: Callable[[str], int]
) -> list[Ranked]:
    """All passages of the page with the ``best`` one, if their lines cost a share of ``space`` tokens at most."""
    draft = drafts[best.draft]
    every = [Ranked(best.draft, index, best.score) for index in range(len(draft.passages))]
    fits = sum(map(cost, _lines_of(drafts, every).values())) <= _WHOLE_SHARE * space
    return every if fits and best.score > 0.0 and not draft.page.is_file else []


def choose(
    drafts: Sequence[PageDraft],
    ranked: Sequence[Ranked],
    costs: Mapping[str, int],
    space: int,
    whole: Sequence[Ranked] = (),
) -> list[Ranked]:
    """Choose the best passages that fit ``space`` tokens, best first; if none matches, the first ones of the pages.

    ``costs`` are the tokens of each line of the background. The passages of ``whole`` come before all others.
    """
    least = _LEAST_SHARE * ranked[0].score if ranked else 0.0
    chosen = list(whole)
    kept = _lines_of(drafts, whole)
    shown = set(kept)
    space -= sum(costs[text] for text in kept.values())
    for each in ranked:
        lines = dict(_lines(drafts, each))
        if lines.keys() <= shown:
            continue
        if each.score < least or not costs.keys() >= set(lines.values()):
            break
        cost = sum(costs[text] for key, text in lines.items() if key not in shown)
        if cost <= space:
            chosen.append(each)
            shown |= lines.keys()
            space -= cost
    return chosen


def _lines_of(drafts: Sequence[PageDraft], passages: Iterable[Ranked]) -> dict[_Key, str]:
    return dict(line for each in passages for line in _lines(drafts, each))


def _lines(drafts: Sequence[PageDraft], each: Ranked) -> Iterator[tuple[_Key, str]]:
    """The lines that showing a passage needs, each with its key."""
    draft = drafts[each.draft]
    passage = draft.passages[each.passage]
    place = (each.draft, passage.section)
    yield (each.draft,), f"\n{title_line(1, draft.page)}\n"
    if draft.paths[passage.section]:
        yield place, f"{heading_text(draft.paths[passage.section])}:\n"
    if passage.header:
        yield (*place, passage.header), f"{passage.header}\n"
    yield (*place, each.passage, passage.text), f"{passage.text} [1]\n"


def overflowing(
    drafts: Sequence[PageDraft],
    ranked: Sequence[Ranked],
    chosen: Sequence[Ranked],
    space: int,
    limits: Limits,
) -> Summarize | None:
    """The page with too many passages that match the question about equally well, as for an overview.

    Its summary is made of those that were not chosen, and stands beside the chosen ones.
    """
    if not ranked or not chosen or ranked[0].score <= 0.0:
        return None
    number, best = ranked[0].draft, ranked[0].score
    draft = drafts[number]
    good = [each for each in ranked if each.draft == number and each.score >= _GOOD_SHARE * best]
    texts = {each.passage: draft.passages[each.passage].text for each in good}
    if sum(map(estimated_tokens, texts.values())) <= _OVERFLOW * space:
        return None
    shown = {each.passage for each in chosen if each.draft == number}
    left = [index for index in texts if index not in shown]
    tokens = min(space // _SUMMARY_PART, limits.answer)
    per_word = max(
        1.0, sum(map(estimated_tokens, texts.values())) / max(1, len(" ".join(texts.values()).split()))
    )
    words = max(_LEAST_WORDS, int(tokens / per_word))
    return Summarize(draft, left, min(words, limits.compaction_words or words), tokens)
