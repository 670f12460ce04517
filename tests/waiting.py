"""Waiting for what another task, thread or process brings about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

# Seconds. Bounds a failure; no test measures it. Only a broken program takes this long, even on an overloaded machine.
PATIENCE = 120.0


async def until(
    found: Callable[[], T | Awaitable[T]],
    message: str = "it did not happen in time",
    seconds: float = PATIENCE,
) -> T:
    """:func:`eventually` that lets the other tasks run; ``found`` may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while not (result := await made if isinstance(made := found(), Awaitable) else made):
        assert time.monotonic() < deadline, message
        await asyncio.sleep(0.005)
    return result


def eventually(found: Callable[[], T], message: str, seconds: float = PATIENCE) -> T:
    """Wait until ``found`` gives something true, and return that; ``message`` says what it means if it never does."""
    deadline = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < deadline, message
        time.sleep(0.01)
    return result
