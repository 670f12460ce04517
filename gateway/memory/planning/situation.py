"""The planner's input, and arithmetic that all policies share. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

from msgspec import Struct

from gateway.config.settings import MemorySettings
from gateway.memory.types import Compaction, ContextBudget
from gateway.store.memory.conversations import PolicyName
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary, SummaryLevel

Round = list[StoredMessage]

# A shorter summary says too little.
MIN_TARGET_TOKENS = 64


class Situation(Struct, frozen=True, kw_only=True):
    """A conversation at one moment, and the policy that it is compacted by.

    ``messages`` are those after the last summary of the chain, oldest first, failed ones included; ``summaries`` are
    the live ones in order. ``fixed_tokens`` is the prompt without summaries and messages, ``turn_tokens`` what the chat
    template adds to a message. ``force`` asks for a compaction that is not due.
    """

    policy: PolicyName
    settings: MemorySettings
    messages: Sequence[StoredMessage]
    summaries: Sequence[Summary]
    now: float
    budget: ContextBudget
    fixed_tokens: int
    turn_tokens: int
    force: bool = False
    # Summaries (``seq``) that the assistant's reflection stands for.
    reflected: AbstractSet[int] = frozenset()

    @property
    def chain(self) -> list[Summary]:
        """The summaries without the stand-ins for single messages."""
        return [summary for summary in self.summaries if summary.level != "message"]

    @property
    def reflection_due(self) -> bool:
        """Whether the next reflection makes room."""
        waiting = [summary for summary in self.chain if summary.seq not in self.reflected]
        return self.policy == "conversations" and len(waiting) >= self.settings.reflection_after

    @property
    def stand_ins(self) -> dict[int, Summary]:
        """The stand-ins by ``seq`` of the message that they replace."""
        return {summary.first: summary for summary in self.summaries if summary.level == "message"}

    def prompt_tokens(self, messages: Sequence[StoredMessage]) -> int:
        """Tokens of ``messages`` in a prompt: none for a failed one, those of the stand-in where there is one."""
        stand_ins = self.stand_ins
        return sum(
            (stand_ins[each.seq].tokens if each.seq in stand_ins else each.tokens) + self.turn_tokens
            for each in messages
            if not each.failed
        )

    @property
    def total(self) -> int:
        return (
            self.fixed_tokens
            + sum(summary.tokens for summary in self.chain if summary.seq not in self.reflected)
            + self.prompt_tokens(self.messages)
        )

    def units(self, messages: Sequence[StoredMessage]) -> list[Round]:
        """Units that are summarized as a whole: rounds, or single messages of a round that exceeds the window.

        In a channel a round is long: people talk among themselves before somebody addresses the model.
        """
        most = self.settings.window_messages - self.settings.window_summarized
        return [
            unit
            for lines in rounds_of(messages)
            for unit in ([lines] if said(lines) <= most else [[line] for line in lines])
        ]

    def compaction(
        self, level: SummaryLevel, rounds: Sequence[Round], folds: Sequence[Summary], target: int
    ) -> Compaction:
        """The summary of ``rounds`` and ``folds`` with at most ``target`` tokens.

        It has at most half of its messages' tokens plus the folded summaries'.
        """
        messages = [message for each in rounds for message in each]
        enough = self.prompt_tokens(messages) // 2 + sum(summary.tokens for summary in folds)
        return Compaction(
            level=level,
            first=messages[0].seq if messages else None,
            last=messages[-1].seq if messages else None,
            folds=tuple(summary.seq for summary in folds),
            target_tokens=max(MIN_TARGET_TOKENS, min(target, enough)),
        )

    def at_once(self, rounds: Sequence[Round], most: int | None = None) -> Sequence[Round]:
        """The first of ``rounds``, at least one, that fit into a prompt or into ``most`` tokens.

        So a long imported log is read in several plans, and each summary is checked against what was read for it.
        """
        used = 0
        for number, lines in enumerate(rounds):
            used += self.prompt_tokens(lines)
            if number and used > (most or self.budget.limit):
                return rounds[:number]
        return rounds

    def summary_room(self, kept: Sequence[StoredMessage]) -> int:
        """Tokens of all summaries together that bring a prompt with ``kept`` to about the floor."""
        room = self.budget.floor - self.fixed_tokens - self.prompt_tokens(kept)
        return max(room, self.budget.floor // 4, 2 * MIN_TARGET_TOKENS)


def rounds_of(messages: Sequence[StoredMessage]) -> list[Round]:
    return [list(lines) for _, lines in groupby(messages, key=lambda message: message.round)]


def said(messages: Sequence[StoredMessage]) -> int:
    """How many messages did not fail."""
    return sum(not message.failed for message in messages)
