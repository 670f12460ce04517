"""Rate limiting of requests to a wiki: few at a time, and none until its Retry-After has passed."""

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

_LONGEST_PAUSE = 3600.0  # a longer Retry-After is a mistake of the server
_FIRST_BACKOFF = 0.5
_SPREAD = 0.25  # seconds over which requests resume after a pause


class Politeness:
    """Slots for requests, and the pause that the wiki asked for. ``patience``: seconds that a request may wait."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._slots = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._resume_at = 0.0  # monotonic

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot once the pause is over. Raises WikiUnavailableError when the pause exceeds ``patience``."""
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
        """Make no request for that long."""
        self._resume_at = max(self._resume_at, time.monotonic() + min(seconds, _LONGEST_PAUSE))


def backoff(attempt: int) -> float:
    """Seconds before the retry that follows ``attempt`` (from 0): exponential with jitter."""
    return _FIRST_BACKOFF * 2.0**attempt * random.uniform(0.5, 1.0)


def retry_after(header: str | None) -> float | None:
    """Parse a Retry-After header, a number or a date (RFC 9110), to seconds; None when it is neither."""
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
