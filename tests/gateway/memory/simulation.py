"""A conversation without a model: messages arrive, plans are made and carried out, and every promise is checked.

Used by the property tests and by the cost measurements; summaries get a size within their target.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec

from gateway.config.settings import MemorySettings
from gateway.memory.planning.planner import plan
from gateway.memory.planning.situation import Situation
from gateway.memory.types import Compaction, ContextBudget
from gateway.store.memory.conversations import PolicyName
from gateway.store.memory.messages import MessageRole, StoredMessage
from gateway.store.memory.summaries import Summary

SETTINGS = MemorySettings(time_zone="Asia/Ho_Chi_Minh")
# Plans in a row until nothing is left to do; a real one takes two or three, a log switched on late more.
MAX_PLANS = 60


@dataclass
class Simulation:
    """One conversation. ``fill`` is how much of its target a summary uses, from 0 to 1."""

    policy: PolicyName
    budget: ContextBudget
    settings: MemorySettings = SETTINGS
    fixed_tokens: int = 100
    turn_tokens: int = 5
    fill: Callable[[], float] = random.Random(1).random
    log: list[StoredMessage] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    calls: int = 0
    reflected: set[int] = field(default_factory=set)
    read: list[int] = field(default_factory=list)  # seq of every message that a chain summary read

    def say(
        self, role: MessageRole, tokens: int, at: float, speaker: str = "Ann", failed: bool = False
    ) -> None:
        """A message arrives."""
        last = self.log[-1] if self.log else None
        new_round = role == "user" and (last is None or last.role == "assistant")
        number = (last.round if last else 0) + new_round
        self.log.append(
            StoredMessage(
                seq=len(self.log) + 1, id=f"m{len(self.log)}", conversation="c", role=role, speaker=speaker,
                text="", tokens=tokens, round=max(1, number), failed=failed, summarized_by=None, redactions=0,
                created_at=at,
            )
        )  # fmt: skip

    @property
    def live(self) -> list[Summary]:
        found = [summary for summary in self.summaries if summary.superseded_by is None]
        return sorted(found, key=lambda summary: (summary.first, summary.seq))

    @property
    def chain(self) -> list[Summary]:
        return [summary for summary in self.live if summary.level != "message"]

    @property
    def tail(self) -> list[StoredMessage]:
        return [message for message in self.log if message.summarized_by is None]

    def situation(self, now: float, force: bool = False) -> Situation:
        return Situation(
            policy=self.policy, settings=self.settings, messages=self.tail, summaries=self.live, now=now,
            budget=self.budget, fixed_tokens=self.fixed_tokens, turn_tokens=self.turn_tokens, force=force,
            reflected=self.reflected,
        )  # fmt: skip

    def settle(self, now: float, force: bool = False) -> None:
        """Plan and carry out until nothing is to do."""
        for _ in range(MAX_PLANS):
            planned = plan(self.situation(now, force))
            if not planned and not self._reflect(now):
                return
            self.carry_out(planned, now)
        raise AssertionError("planning does not come to an end")

    def _reflect(self, now: float) -> bool:
        """Fold the oldest summaries into the assistant's reflection, if it is due."""
        if not self.situation(now).reflection_due:
            return False
        waiting = [summary.seq for summary in self.chain if summary.seq not in self.reflected]
        self.reflected |= set(waiting[: self.settings.reflection_folds])
        self.calls += 1
        return True

    def carry_out(self, planned: Sequence[Compaction], now: float) -> None:
        """Make the planned summaries, and check what a plan and its result promise."""
        self._check_plan(planned)
        for compaction in planned:
            self._carry_out(compaction, now)
        self.check()

    def _check_plan(self, planned: Sequence[Compaction]) -> None:
        folds = [seq for compaction in planned for seq in compaction.folds]
        assert len(folds) == len(set(folds)), "a summary is folded twice"
        assert set(folds) <= {summary.seq for summary in self.live}
        spans = sorted((c.first, c.last) for c in planned if c.first is not None and c.last is not None)
        assert all(before[1] < after[0] for before, after in pairwise(spans)), "spans overlap"

    def _carry_out(self, compaction: Compaction, now: float) -> None:
        assert compaction.target_tokens >= 1
        assert compaction.folds or compaction.first is not None
        self.calls += 1
        folded = [summary for summary in self.summaries if summary.seq in compaction.folds]
        seqs = [s for summary in folded for s in (summary.first, summary.last)]
        if compaction.first is not None and compaction.last is not None:
            seqs += [compaction.first, compaction.last]
            if compaction.level != "message":
                self.read += range(compaction.first, compaction.last + 1)
        first, last = min(seqs), max(seqs)
        seq = 1000 + len(self.summaries)
        tokens = int(compaction.target_tokens * self.fill())
        made = Summary(
            seq=seq, conversation="c", level=compaction.level, first=first, last=last,
            from_time=self.log[first - 1].created_at, to_time=self.log[last - 1].created_at, text="a", pins=[],
            tokens=tokens, prompt_name="", prompt_version=1, model="", superseded_by=None, created_at=now,
        )  # fmt: skip
        self.summaries = [
            msgspec.structs.replace(summary, superseded_by=seq)
            if summary.seq in compaction.folds
            else summary
            for summary in self.summaries
        ]
        self.summaries.append(made)
        if compaction.level != "message":
            self.log = [
                msgspec.structs.replace(message, summarized_by=seq)
                if first <= message.seq <= last and message.summarized_by is None
                else message
                for message in self.log
            ]

    def check(self) -> None:
        """Chain and tail are the whole log, each message once, in order; every message was read at most once."""
        covered = [seq for summary in self.chain for seq in range(summary.first, summary.last + 1)]
        assert covered + [message.seq for message in self.tail] == [message.seq for message in self.log]
        assert len(self.read) == len(set(self.read)), "a message was summarized twice"
        assert sorted(self.read) == covered, "a message is in a span but no summary has read it"
