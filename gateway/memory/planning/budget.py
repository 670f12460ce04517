"""The token budget and the time zone, made from the settings."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.base.errors import ConfigurationError
from gateway.config.settings import MemorySettings
from gateway.memory.types import ContextBudget

# The smallest context that holds the last messages, a summary and a short reply.
MIN_CONTEXT = 512


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
