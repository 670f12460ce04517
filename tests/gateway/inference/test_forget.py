"""What the host keeps of an owner is gone after a forget, whatever the host does meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from gateway.inference.host import HostInference
from model_host.protocol import owner_digest
from tests.gateway.inference.helpers import MakeHost
from tests.waiting import PATIENCE, until


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A file of the owner's, where the hosts of ``make_host`` have theirs."""
    path = tmp_path / "snapshots" / "key" / f"{owner_digest('somebody')}-1"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a conversation")
    return path


def there(path: Path) -> bool:
    return path.exists()


async def test_a_host_that_is_being_ended_saves_nothing_behind_it(make_host: MakeHost, saved: Path) -> None:
    host = make_host("--save-at-end", saved)
    await host.warm()
    unloading = asyncio.create_task(host.unload())
    await until(lambda: host.health().state == "stopping")
    await host.forget("somebody")
    assert not there(saved)
    await unloading
    assert not there(saved)


async def forgotten_by_a_frozen_host(host: HostInference) -> tuple[asyncio.Task[None], int]:
    """Start to forget an owner at a host that does not answer. Return that work and the host's process."""
    await host.warm()
    pid = host.health().pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    forgetting = asyncio.create_task(host.forget("somebody"))
    await until(lambda: host.health().open_requests == 1)
    return forgetting, pid


async def test_a_host_that_dies_instead_of_answering_leaves_no_file(make_host: MakeHost, saved: Path) -> None:
    forgetting, pid = await forgotten_by_a_frozen_host(make_host())
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(forgetting, PATIENCE)
    assert not there(saved)


async def test_a_caller_that_leaves_does_not_keep_the_files(make_host: MakeHost, saved: Path) -> None:
    forgetting, _ = await forgotten_by_a_frozen_host(make_host())
    forgetting.cancel()
    await asyncio.wait({forgetting})
    assert not there(saved)
