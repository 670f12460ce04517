"""What the tests of inference share."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol

import psutil

from gateway.inference.host import HostInference
from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.inference.process.breaker import Breaker
from gateway.inference.process.thread_plans import ThreadPlans
from model_host.protocol import Delta, Message

FAKE_HOST = Path(__file__).with_name("fake_host.py")


class MakeHost(Protocol):
    """Keyword arguments are fields of ModelSettings."""

    def __call__(
        self,
        *switches: object,
        breaker: Breaker | None = None,
        thread_plans: ThreadPlans | None = None,
        **settings: Any,
    ) -> HostInference: ...


_others: set[int] = set()


def children_before_the_test() -> None:
    """Servers that fixtures of other tests keep for the whole run are not looked at by :func:`own_children`."""
    _others.clear()
    _others.update(child.pid for child in psutil.Process(os.getpid()).children())


def own_children() -> list[psutil.Process]:
    """Child processes that the test started, zombies included."""
    return [child for child in psutil.Process(os.getpid()).children() if child.pid not in _others]


def call(request_id: str = "r1", **fields: Any) -> GenerateCall:
    return GenerateCall(id=request_id, messages=[Message("user", "hello")], **fields)


async def collect(host: HostInference, request: GenerateCall | None = None) -> list[GenerationEvent]:
    async with aclosing(host.generate(request or call())) as events:
        return [event async for event in events]


async def first_delta(events: AsyncIterator[GenerationEvent]) -> Delta:
    async for event in events:
        if isinstance(event, Delta):
            return event
    raise AssertionError("no delta")
