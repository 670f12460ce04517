"""The plan for the background: which pages go in whole, in part, or summarized. Pure functions."""

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

    ``empty`` is the space in a prompt without any page, ``left`` the space left now. No page is added to less
    than ``min_space``. A summary has at most ``most_words`` words (0: no cap) and ``most_summary`` tokens.
    """

    empty: int
    left: int
    min_space: int
    most_words: int = 0
    most_summary: int = 1 << 30


class Show(Struct, frozen=True):
    """Show these passages unchanged."""

    draft: PageDraft
    selection: Selection
    how: How


class Summarize(Struct, frozen=True):
    """Summarize these passages in ``words`` words; header and summary may take ``tokens`` tokens."""

    draft: PageDraft
    selection: Selection
    words: int
    tokens: int


class FitPlan(Struct, frozen=True):
    """The steps to take now, and the pages that fit only if a summary turns out shorter than planned."""

    steps: list[Show | Summarize]
    waiting: list[PageDraft]


def plan(drafts: Sequence[PageDraft], queries: Sequence[str], room: Room) -> FitPlan:
    """Assign the space to the pages in order. ``queries`` are by term.

    A page goes in whole if it fits. A page too long even for an empty prompt is cut to the sections that match
    its term's query. A page that still does not fit is summarized, in half of the space while more pages follow.
    Each later term has up to an equal share of the prompt reserved for its first page, so that the pages of one
    term do not crowd out another's.
    """
    steps: list[Show | Summarize] = []
    waiting: list[PageDraft] = []
    left = room.left
    for index, draft in enumerate(drafts):
        if left < room.min_space:
            waiting.append(draft)
            continue
        reserved = _reserved(draft, drafts[index + 1 :], room.empty // max(1, len(queries)))
        space = max(left - reserved, room.min_space)
        step = _place(draft, queries[draft.term], room, space, last=index + 1 == len(drafts))
        if step is None:
            waiting.append(draft)
            continue
        steps.append(step)
        left -= step.selection.tokens if isinstance(step, Show) else step.tokens
    return FitPlan(steps, waiting)


def _reserved(draft: PageDraft, following: Sequence[PageDraft], share: int) -> int:
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
    return _summary_step(draft, selected, room, space if last else max(space // 2, room.min_space))


def _summary_step(draft: PageDraft, selected: Selection, room: Room, space: int) -> Summarize:
    """Ask for the words that ``space`` tokens hold at the page's own tokens per word, at least 20."""
    words = sum(len(draft.passages[index].text.split()) for index in selected.passages)
    per_word = max(0.1, (selected.tokens - draft.head) / max(1, words))
    wanted = int(min(space - draft.head, room.most_summary) / per_word)
    if room.most_words:
        wanted = min(wanted, room.most_words)
    wanted = max(wanted, _LEAST_WORDS)
    return Summarize(draft, selected, wanted, min(space, draft.head + int(wanted * per_word) + 1))
