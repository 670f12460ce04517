"""The policies ``window`` and ``conversations``: lines of people who come and go, and what remains of them.

``window`` keeps one rolling summary. ``conversations`` cuts the log into episodes by silence, summarizes each by
itself, and lets old summaries flow into a reflection: for 100 to 150 lines about ten summaries and one reflection.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.memory.planning.policies import ConversationsPolicy, WindowPolicy
from gateway.memory.planning.situation import (
    Round,
    Situation,
    at_once,
    compaction,
    rounds_of,
    said,
    summary_room,
)
from gateway.memory.types import Compaction
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary

# At most so many summaries in one plan: a long log that was never summarized does not stampede.
AT_ONCE = 4
# Share of the room that a single episode's summary, and the reflection, may take.
_EPISODE_SHARE, _REFLECTION_SHARE = 0.2, 0.5


def plan_window(situation: Situation, policy: WindowPolicy) -> list[Compaction]:
    """The oldest lines join the rolling summary once the window is full."""
    rounds = _units(situation.messages, policy)
    cut = _window_cut(rounds, policy, situation.force)
    if not cut:
        return []
    kept = [message for each in rounds[cut:] for message in each]
    room = summary_room(situation, kept)
    gone = at_once(situation, rounds[:cut])
    return [compaction(situation, "conversation", gone, situation.chain, room)]


def plan_episodes(situation: Situation, policy: ConversationsPolicy) -> list[Compaction]:
    """Summaries of episodes that have ended, of the running one when it is long, and a reflection when due."""
    episodes = split_episodes(situation.messages, policy.gap)
    room = summary_room(situation, episodes[-1] if episodes else [])
    target = int(room * _EPISODE_SHARE)
    planned: list[Compaction] = []
    for index, lines in enumerate(episodes):
        running = index == len(episodes) - 1 and situation.now - lines[-1].created_at <= policy.gap
        begun = _begun(situation, lines, policy) if index == 0 else []
        rounds = _units(lines, policy.window)
        cut = _window_cut(rounds, policy.window, situation.force) if running else len(rounds)
        gone = at_once(situation, rounds[:cut])
        if gone:
            planned.append(compaction(situation, "conversation", gone, begun, target))
        if len(gone) < len(rounds):  # what follows comes when the rest of this episode has gone
            break
    return planned[:AT_ONCE] or _reflection(situation, policy, int(room * _REFLECTION_SHARE))


def split_episodes(messages: Sequence[StoredMessage], gap: float) -> list[list[StoredMessage]]:
    """The log cut where a silence was longer than ``gap`` seconds, or where wholly other people take over."""
    episodes: list[list[StoredMessage]] = []
    for lines in rounds_of(messages):
        if not episodes or _others(episodes[-1], lines):
            episodes.append([])
        for line in lines:
            if episodes[-1] and line.created_at - episodes[-1][-1].created_at > gap:
                episodes.append([])
            episodes[-1].append(line)
    return episodes


def _others(before: Sequence[StoredMessage], lines: Round) -> bool:
    earlier, now = _people(before), _people(lines)
    return bool(earlier and now) and earlier.isdisjoint(now)


def _people(messages: Sequence[StoredMessage]) -> set[str]:
    return {message.speaker for message in messages if message.role == "user"}


def _begun(
    situation: Situation, lines: Sequence[StoredMessage], policy: ConversationsPolicy
) -> list[Summary]:
    """The summary of the same episode's beginning, if the window has cut it before."""
    last = situation.chain[-1:]
    if last and last[0].level == "conversation" and lines[0].created_at - last[0].to_time <= policy.gap:
        return last
    return []


def _units(messages: Sequence[StoredMessage], policy: WindowPolicy) -> list[Round]:
    """What goes or stays as a whole: rounds, but single lines of a round that the window could not keep.

    In a channel people talk for long before somebody addresses the model.
    """
    most = policy.size - policy.summarized
    return [
        unit
        for lines in rounds_of(messages)
        for unit in ([lines] if said(lines) <= most else [[line] for line in lines])
    ]


def _window_cut(rounds: Sequence[Round], policy: WindowPolicy, force: bool) -> int:
    """How many units go: as many as hold the oldest lines, so that the others remain; 0 while nothing is due."""
    lines, kept = sum(map(said, rounds)), policy.size - policy.summarized
    if lines < policy.size and not (force and lines > kept):
        return 0
    gone = 0
    for cut, each in enumerate(rounds):
        gone += said(each)
        if gone > min(policy.summarized, lines - kept):
            return max(1, cut)  # the window has to move, even by one round that is larger than what may go
    return len(rounds) - 1


def _reflection(situation: Situation, policy: ConversationsPolicy, target: int) -> list[Compaction]:
    chain = situation.chain
    waiting = [summary for summary in chain if summary.level == "conversation"]
    if len(waiting) < policy.reflect_after:
        return []
    reflected = [summary for summary in chain if summary.level == "reflection"]
    return [compaction(situation, "reflection", [], reflected + waiting[: policy.reflect_folds], target)]
