"""The policies ``window`` and ``conversations``, for channels where people come and go.

``window`` keeps one rolling summary. ``conversations`` splits the log into episodes at silences and summarizes each:
100 to 150 messages give about ten summaries, which become one reflection (:mod:`gateway.memory.character`).
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.memory.planning.situation import Round, Situation, rounds_of, said
from gateway.memory.types import Compaction
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import Summary

# Summaries per plan, so that a long unsummarized log does not flood the model with calls.
AT_ONCE = 4
# Share of the room for summaries.
_EPISODE_SHARE = 0.2


def plan_window(situation: Situation) -> list[Compaction]:
    """The oldest messages join the rolling summary once the window is full."""
    rounds = situation.units(situation.messages)
    cut = _window_cut(situation, rounds)
    if not cut:
        return []
    kept = [message for each in rounds[cut:] for message in each]
    room = situation.summary_room(kept)
    gone = situation.at_once(rounds[:cut])
    return [situation.compaction("conversation", gone, situation.chain, room)]


def plan_episodes(situation: Situation) -> list[Compaction]:
    """Summaries of finished episodes, and of the current one when it is long."""
    gap = situation.settings.episode_gap_seconds
    episodes = split_episodes(situation.messages, gap)
    room = situation.summary_room(episodes[-1] if episodes else [])
    target = int(room * _EPISODE_SHARE)
    planned: list[Compaction] = []
    for index, lines in enumerate(episodes):
        running = index == len(episodes) - 1 and situation.now - lines[-1].created_at <= gap
        folds = _beginning(situation, lines) if index == 0 else []
        rounds = situation.units(lines)
        cut = _window_cut(situation, rounds) if running else len(rounds)
        gone = situation.at_once(rounds[:cut])
        if gone:
            planned.append(situation.compaction("conversation", gone, folds, target))
        if len(gone) < len(rounds):  # later episodes wait for the rest of this one
            break
    return planned[:AT_ONCE]


def split_episodes(messages: Sequence[StoredMessage], gap: float) -> list[list[StoredMessage]]:
    """The log, split at silences of more than ``gap`` seconds and where entirely different people take over."""
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


def _beginning(situation: Situation, lines: Sequence[StoredMessage]) -> list[Summary]:
    """The summary of the same episode's first part, if the window has cut it before."""
    last, gap = situation.chain[-1:], situation.settings.episode_gap_seconds
    if last and last[0].level == "conversation" and lines[0].created_at - last[0].to_time <= gap:
        return last
    return []


def _window_cut(situation: Situation, rounds: Sequence[Round]) -> int:
    """How many units to summarize, so that the policy's number of messages remains; 0 while nothing is due."""
    size, summarized = situation.settings.window_messages, situation.settings.window_summarized
    lines, kept = sum(map(said, rounds)), size - summarized
    if lines < size and not (situation.force and lines > kept):
        return 0
    gone = 0
    for cut, each in enumerate(rounds):
        gone += said(each)
        if gone > min(summarized, lines - kept):
            return max(1, cut)  # the window must move, even by a round larger than ``summarized``
    return len(rounds) - 1
