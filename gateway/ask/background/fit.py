"""Which pages go into the background whole, in parts, or summarized. Pure functions over token counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from gateway.ask.background.draft import PageDraft
from gateway.ask.background.sections import Selection, everything, pick_sections

_LEAST_WORDS = 20

How = Literal["whole", "sections", "truncated", "summary", "passages"]


class Room(Struct, frozen=True, kw_only=True):
    """Space for the background in tokens.

    ``empty`` is what an answer prompt without any page leaves, ``left`` what is left now. Below ``min_space``
    no page is added. A summary has at most ``most_words`` words (0: no cap) and ``most_summary`` tokens.
    """

    empty: int
    left: int
    min_space: int
    most_words: int = 0
    most_summary: int = 1 << 30


class Show(Struct, frozen=True):
    """Put these passages into the background as they are."""

    draft: PageDraft
    selection: Selection
    how: How


class Summarize(Struct, frozen=True):
    """Have these passages summarized in ``words`` words; header and summary may take ``tokens`` tokens."""

    draft: PageDraft
    selection: Selection
    words: int
    tokens: int


class FitPlan(Struct, frozen=True):
    """What to do now, and the pages for which there is no space unless a summary comes out smaller."""

    steps: list[Show | Summarize]
    waiting: list[PageDraft]


def plan(drafts: Sequence[PageDraft], queries: Sequence[str], room: Room) -> FitPlan:
    """Give the space to the pages in order.

    A page goes in whole if it fits. One that is too long even for an empty prompt is cut to the sections that
    match its term's query. What still does not fit is summarized; it gets half of the space while more pages
    follow. For each later term, up to an equal share of the prompt is kept free for its first page, so that
    the pages of one term do not crowd out another's. ``queries`` are by term.
    """
    steps: list[Show | Summarize] = []
    waiting: list[PageDraft] = []
    left = room.left
    for index, draft in enumerate(drafts):
        if left < room.min_space:
            waiting.append(draft)
            continue
        kept_free = _kept_free(draft, drafts[index + 1 :], room.empty // max(1, len(queries)))
        space = max(left - kept_free, room.min_space)
        step = _place(draft, queries[draft.term], room, space, last=index + 1 == len(drafts))
        if step is None:
            waiting.append(draft)
            continue
        steps.append(step)
        left -= step.selection.tokens if isinstance(step, Show) else step.tokens
    return FitPlan(steps, waiting)


def _kept_free(draft: PageDraft, following: Sequence[PageDraft], share: int) -> int:
    first_of: dict[int, int] = {}
    for other in following:
        if other.term > draft.term:
            first_of.setdefault(other.term, min(other.whole, share))
    return sum(first_of.values())


def _place(draft: PageDraft, query: str, room: Room, space: int, last: bool) -> Show | Summarize | None:
    if draft.whole <= space:
        return Show(draft, everything(draft), "whole")
    selected = everything(draft)
    if draft.whole > room.empty:
        selected = pick_sections(draft, query, room.empty)
        if not selected.passages:
            return None
        if selected.tokens <= space:
            return Show(draft, selected, "truncated" if selected.cut else "sections")
    if draft.head >= space:
        return None
    return summary_step(draft, selected, room, space if last else max(space // 2, room.min_space))


def summary_step(draft: PageDraft, selected: Selection, room: Room, space: int) -> Summarize:
    """The number of words that ``space`` tokens hold, by the page's own tokens per word; at least 20."""
    text = [draft.passages[index].text for index in selected.passages]
    words = sum(len(each.split()) for each in text)
    per_word = max(0.1, (selected.tokens - draft.head) / max(1, words))
    within = min(space - draft.head, room.most_summary)
    wanted = int(within / per_word)
    if room.most_words:
        wanted = min(wanted, room.most_words)
    wanted = max(wanted, _LEAST_WORDS)
    return Summarize(draft, selected, wanted, min(space, draft.head + int(wanted * per_word) + 1))
