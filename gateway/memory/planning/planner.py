"""The planner: what to summarize next, as a pure function of the log, its summaries, the clock and a policy.

Invariants of every policy: the live summaries and the messages after them have no gap and no overlap; a message is
summarized once; only whole rounds are summarized, unless one round exceeds the window; a prompt over the context is
made to fit, if need be by stand-ins for single messages. A message that no prompt can hold gets its stand-in first.
Plans are carried out one after the other until :func:`plan` returns none.
"""

from __future__ import annotations

from gateway.memory.planning.episodes import AT_ONCE, plan_episodes, plan_window
from gateway.memory.planning.situation import MIN_TARGET_TOKENS, Situation, rounds_of
from gateway.memory.planning.tiers import plan_tiers
from gateway.memory.types import Compaction
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import SummaryLevel

# A stand-in for a smaller message would save too little.
_MIN_MESSAGE_TOKENS = 256


def plan(situation: Situation) -> list[Compaction]:
    """The summaries to write now; they are independent, so they may be written in parallel."""
    too_large = [message for message in situation.messages if _too_large(situation, message)]
    if too_large:
        return [_stand_in(situation, message) for message in too_large[:AT_ONCE]]
    if situation.policy == "ceiling":
        return plan_tiers(situation) or _stand_ins(situation)
    if situation.policy == "rounds":
        return _plan_rounds(situation) or _keep_within(situation, "round")
    if situation.policy == "window":
        return plan_window(situation) or _keep_within(situation, "conversation")
    return plan_episodes(situation) or _keep_within(situation, "conversation")


def _plan_rounds(situation: Situation) -> list[Compaction]:
    compress, retain = situation.settings.rounds_to_compress, situation.settings.rounds_to_retain
    rounds = rounds_of(situation.messages)
    # Rounds without a reply do not count: the last one may still get it, failed ones go with the rounds before them.
    answered = [
        index
        for index, each in enumerate(rounds)
        if any(message.role == "assistant" and not message.failed for message in each)
    ]
    due = len(answered) >= compress + retain
    if not due and not (situation.force and len(answered) > retain):
        return []
    cut = answered[-retain]
    kept = [message for each in rounds[cut:] for message in each]
    # A new message stops a summary that is being written: one that reads a long backlog would never be finished.
    gone = situation.at_once(rounds[:cut], situation.budget.floor // 2)
    return [situation.compaction("round", gone, situation.chain, situation.summary_room(kept))]


def _keep_within(situation: Situation, level: SummaryLevel) -> list[Compaction]:
    """Compact more than the policy asks for when the prompt would exceed the context.

    First every round except the last joins the newest summary, then single messages get stand-ins.
    """
    rounds = situation.units(situation.messages)
    if situation.reflection_due:
        return []
    if situation.total <= situation.budget.limit or len(rounds) < 2:
        return _stand_ins(situation)
    folds = [summary for summary in situation.chain[-1:] if summary.level == level]
    gone = situation.at_once(rounds[:-1])
    return [situation.compaction(level, gone, folds, situation.summary_room(rounds[-1]))]


def _stand_ins(situation: Situation) -> list[Compaction]:
    """Stand-ins for the largest messages, until the prompt fits the context."""
    over = situation.total - situation.budget.limit
    planned: list[Compaction] = []
    for message in sorted(situation.messages, key=lambda message: -message.tokens):
        if over <= 0 or message.tokens < _MIN_MESSAGE_TOKENS:
            break
        if message.failed or message.seq in situation.stand_ins:
            continue
        planned.append(_stand_in(situation, message))
        over -= message.tokens - planned[-1].target_tokens
    return planned


def _too_large(situation: Situation, message: StoredMessage) -> bool:
    """Whether no prompt can hold the message, even alone."""
    room = situation.budget.limit - situation.fixed_tokens - situation.turn_tokens
    return (
        message.tokens > max(room, _MIN_MESSAGE_TOKENS)
        and not message.failed
        and message.seq not in situation.stand_ins
    )


def _stand_in(situation: Situation, message: StoredMessage) -> Compaction:
    target = max(MIN_TARGET_TOKENS, min(message.tokens // 4, situation.budget.floor // 4))
    return Compaction(level="message", first=message.seq, last=message.seq, folds=(), target_tokens=target)
