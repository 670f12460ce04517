"""How a wiki wants to be treated: few requests at a time, and none while it asks to wait."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from gateway.wiki.remote.trouble import WikiUnavailableError

REQUESTS_AT_ONCE = 4

_LONGEST_PAUSE = 3600.0  # a server that asks for more is wrong about it
_FIRST_BACKOFF = 0.5
_SPREAD = 0.25  # seconds over which those who waited for the same moment are spread


class Politeness:
    """Slots for requests, and the pause that the wiki asked for. ``patience``: seconds that a request waits."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._resume_at = 0.0  # monotonic

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """One of the slots, after the pause. Raises WikiUnavailableError when that is too long to wait for."""
        async with self._slots:
            while (left := self.paused) > 0:
                if left > self._patience:
                    raise WikiUnavailableError(
                        f"the wiki is busy and asks to wait {left:.0f} seconds",
                        retry_after=left,
                        kind="overload",
                    )
                await asyncio.sleep(left + random.uniform(0, _SPREAD))
            yield

    @property
    def paused(self) -> float:
        """Seconds until the next request may be made."""
        return max(0.0, self._resume_at - time.monotonic())

    def pause(self, seconds: float) -> None:
        """No further request for so long."""
        self._resume_at = max(self._resume_at, time.monotonic() + min(seconds, _LONGEST_PAUSE))


def backoff(attempt: int) -> float:
    """Seconds before trying again after failure number ``attempt`` (from 0): doubled each time, and jittered."""
    return _FIRST_BACKOFF * 2.0**attempt * random.uniform(0.5, 1.0)


def retry_after(header: str | None) -> float | None:
    """Seconds of a Retry-After header, which has a number or a date (RFC 9110); None when it says neither."""
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
