"""Values that the planner, the composer and the summarizer exchange; stored rows are defined beside their SQL."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from msgspec import Struct

from gateway.store.memory.summaries import SummaryLevel


class ContextBudget(Struct, frozen=True, kw_only=True):
    """Token limits from the settings and the loaded model; ``context`` holds the prompt and a reply of ``answer``."""

    context: int
    ceiling: int
    floor: int
    answer: int

    @property
    def limit(self) -> int:
        """Maximum tokens of a prompt."""
        return self.context - self.answer


class Compaction(Struct, frozen=True, kw_only=True):
    """A summary to write: of messages ``first`` to ``last`` (``seq``, inclusive), of summaries (``folds``), or both.

    It spans all of them, supersedes the folded ones, and has at most ``target_tokens``. ``first`` and ``last`` are None
    when it only folds summaries.
    """

    level: SummaryLevel
    first: int | None
    last: int | None
    folds: tuple[int, ...]
    target_tokens: int


class Block(Struct, frozen=True):
    """A part of the prompt.

    ``said``: by line that is a fact or a task, the message of this conversation (``seq``) that it was learned from or
    last changed by; None if there is none.
    """

    # core, biography, reflection, elsewhere, month, today, now, round, conversation, tasks, facts, messages, project,
    # recalled, history, tasks_now
    name: str
    tokens: int
    text: str
    said: dict[str, int | None] = {}


class LeftOut(Struct, frozen=True):
    """Something that the prompt leaves out, and why."""

    what: str
    why: str


class Character(Struct, frozen=True, kw_only=True):
    """An assistant as a prompt shows it; nothing without one.

    ``reflected`` are the conversation's summaries (``seq``) that its reflection stands for.
    """

    name: str = ""
    biography: Block | None = None
    reflection: Block | None = None
    elsewhere: Block | None = None
    reflected: AbstractSet[int] = frozenset()
    left_out: list[LeftOut] = []


class Offer(Struct, frozen=True):
    """Blocks for a prompt, and what exceeded their budgets.

    They are named ``facts``, ``tasks``, ``tasks_now``, ``recalled`` or ``project``. ``answer`` replaces the model's
    reply, ``after`` comes after it.
    """

    blocks: list[Block] = []
    left_out: list[LeftOut] = []
    answer: str = ""
    after: str = ""


class BudgetReport(Struct, frozen=True, kw_only=True):
    """The size of a reply's prompt by block, and the limits of :class:`ContextBudget`."""

    total: int
    limit: int
    ceiling: int
    floor: int
    blocks: dict[str, int]  # name: tokens
    left_out: list[LeftOut]
    cached_tokens: int = 0
