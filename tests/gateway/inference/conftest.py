"""A gateway's view of a fake host: a real child process, started with switches."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.config.settings import ModelSettings
from gateway.inference.host import HostInference
from gateway.inference.process.breaker import Breaker
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.models.catalog import ResolvedModel
from tests.gateway.inference.helpers import FAKE_HOST, MakeHost, children_before_the_test, own_children


@pytest.fixture(autouse=True)
def _others() -> None:
    children_before_the_test()


@pytest.fixture
def model(tmp_path: Path) -> ResolvedModel:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    return ResolvedModel(name="fake", path=path, size_bytes=4, ram_bytes=1, context=2048)


@pytest.fixture
async def make_host(model: ResolvedModel) -> AsyncIterator[MakeHost]:
    """Make HostInference objects on the fake host; at the end each is closed and no child may be left."""
    made: list[HostInference] = []

    def make(
        *switches: object,
        breaker: Breaker | None = None,
        thread_plans: ThreadPlans | None = None,
        **settings: Any,
    ) -> HostInference:
        command = [sys.executable, str(FAKE_HOST), *map(str, switches)]
        defaults = {"stop_grace_seconds": 2.0, "start_timeout_seconds": 20.0, "memory_headroom_bytes": 0}
        host = HostInference(
            model,
            ModelSettings(**(defaults | settings)),
            command=command,
            breaker=breaker,
            snapshots=model.path.parent / "snapshots",
            thread_plans=thread_plans,
        )
        made.append(host)
        return host

    yield make
    await asyncio.gather(*(host.close() for host in made))
    for host in made:
        assert host.health().state in ("stopped", "broken")
        assert host.health().open_requests == 0
    assert not own_children(), "a child was left, alive or as a zombie"
