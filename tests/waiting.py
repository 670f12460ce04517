"""Waiting for what another task, thread or process brings about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Seconds. Bounds a failure; no test measures it. Only a broken program takes this long, even on an overloaded machine.
PATIENCE = 120.0


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Let the other tasks run until ``condition`` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.005)


def eventually(found: Callable[[], T], message: str, seconds: float = PATIENCE) -> T:
    """Wait until ``found`` gives something true, and return that; ``message`` says what it means if it never does."""
    deadline = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < deadline, message
        time.sleep(0.01)
    return result
