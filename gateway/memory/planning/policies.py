"""The four compaction policies and the token budget, made from the settings."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from gateway.base.errors import ConfigurationError
from gateway.config.settings import MemorySettings
from gateway.memory.types import ContextBudget
from gateway.store.memory.conversations import PolicyName

# The smallest context that holds the last messages, a summary and a short reply.
MIN_CONTEXT = 512


class CeilingPolicy(Struct, frozen=True, kw_only=True):
    """Over ``budget.ceiling`` tokens, all messages except the last ``verbatim`` ones go into the tiers."""

    verbatim: int
    zone: tzinfo | None  # where days begin; None is the machine's zone


class RoundsPolicy(Struct, frozen=True, kw_only=True):
    """With ``compress`` + ``retain`` rounds, the older ones join the rolling summary."""

    compress: int
    retain: int


class WindowPolicy(Struct, frozen=True, kw_only=True):
    """With ``size`` messages, the oldest ``summarized`` ones join the rolling summary."""

    size: int
    summarized: int


class ConversationsPolicy(Struct, frozen=True, kw_only=True):
    """``gap`` seconds of silence end an episode, which gets its own summary; ``window`` limits a long one.

    With ``reflect_after`` summaries, the oldest ``reflect_folds`` of them are folded into the reflection.
    """

    gap: float
    window: WindowPolicy
    reflect_after: int
    reflect_folds: int


Policy = CeilingPolicy | RoundsPolicy | WindowPolicy | ConversationsPolicy


def make_policy(name: PolicyName, settings: MemorySettings) -> Policy:
    """The policy of that name. Raises ConfigurationError when the time zone is unknown."""
    if name == "ceiling":
        return CeilingPolicy(verbatim=settings.verbatim_messages, zone=time_zone(settings.time_zone))
    if name == "rounds":
        return RoundsPolicy(compress=settings.rounds_to_compress, retain=settings.rounds_to_retain)
    window = WindowPolicy(size=settings.window_messages, summarized=settings.window_summarized)
    if name == "window":
        return window
    return ConversationsPolicy(
        gap=settings.episode_gap_seconds,
        window=window,
        reflect_after=settings.reflection_after,
        reflect_folds=settings.reflection_folds,
    )


def make_budget(settings: MemorySettings, context: int) -> ContextBudget:
    """The budget for a model with ``context`` tokens per sequence; below the configured context it scales down.

    Raises ConfigurationError when the context is too small.
    """
    if context < MIN_CONTEXT:
        raise ConfigurationError(
            f"the model's context of {context} tokens is too small for conversations ({MIN_CONTEXT} at least)"
        )
    share = min(1.0, context / settings.context)
    return ContextBudget(
        context=min(context, settings.context),
        ceiling=int(settings.ceiling * share),
        floor=int(settings.floor * share),
        answer=max(1, int(settings.answer_tokens * share)),
    )


def time_zone(name: str) -> tzinfo | None:
    """The zone of that name, None for the machine's own. Raises ConfigurationError."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(
            f"memory.time_zone is {name!r}, which is not a time zone of this machine: give a name "
            'such as Europe/Berlin, or "" for the machine\'s own'
        ) from None
