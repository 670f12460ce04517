"""The values between planner, composer and summarizer; the stored rows are defined beside their SQL.

Everything here is data. The planner (``plan``) and the composer (``compose``) are pure functions over it, and the
service moves it between them and ``gateway.store``.
"""

from __future__ import annotations

from msgspec import Struct

from gateway.store.memory.summaries import SummaryLevel


class ContextBudget(Struct, frozen=True, kw_only=True):
    """Tokens, from the settings and the loaded model: ``context`` holds prompt and reply (``answer``)."""

    context: int
    ceiling: int
    floor: int
    answer: int

    @property
    def limit(self) -> int:
        """The most a prompt may have."""
        return self.context - self.answer


class Compaction(Struct, frozen=True, kw_only=True):
    """One summary to be made: of the messages ``first`` to ``last``, of older summaries (``folds``), or of both.

    The new summary spans all of it and supersedes what it folds. ``target_tokens`` is the most it may have.
    ``first`` and ``last`` (``seq``, both included) are None when only summaries are folded.
    """

    level: SummaryLevel
    first: int | None
    last: int | None
    folds: tuple[int, ...]
    target_tokens: int


class Block(Struct, frozen=True):
    """A part of the prompt with its tokens, in the order in which it is sent."""

    name: str  # core, persona, reflection, conversation, month, today, now, round, tasks, facts, messages, recalled, …
    tokens: int
    text: str


class LeftOut(Struct, frozen=True):
    """Something that is not in the prompt, and why."""

    what: str
    why: str


class Offer(Struct, frozen=True):
    """Blocks for a prompt, named ``facts``, ``tasks`` or ``recalled``, and what found no room in them."""

    blocks: list[Block] = []
    left_out: list[LeftOut] = []


class BudgetReport(Struct, frozen=True, kw_only=True):
    """What a reply tells of its prompt. ``limit``, ``ceiling`` and ``floor`` are those of the budget."""

    total: int
    limit: int
    ceiling: int
    floor: int
    blocks: dict[str, int]  # name: tokens
    left_out: list[LeftOut]
    cached_tokens: int = 0
