"""Another model takes over while the server runs: real child processes, without a model."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from gateway.base.errors import HearthError, ModelUnavailableError, OverloadedError
from gateway.config.settings import ModelSettings
from gateway.inference.host import HostInference
from gateway.inference.interface import GenerationEvent
from gateway.inference.process.memory import Memory
from gateway.inference.switch import Resolve, SwitchableInference
from gateway.models.catalog import ResolvedModel
from gateway.models.served import ServedModel
from model_host.protocol import Finished, owner_digest
from tests.gateway.inference.helpers import FAKE_HOST, call, first_delta, own_children
from tests.waiting import until


class Switching:
    """A switchable inference of fake hosts; ``switches`` are those of the hosts by the model's name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.switches: dict[str, list[object]] = {}
        self.drain_seconds = 20.0

    def model(self, name: str) -> ResolvedModel:
        path = self.folder / f"{name}.gguf"
        path.write_bytes(b"GGUF")
        return ResolvedModel(
            name=name, path=path, size_bytes=4, ram_bytes=600, context=2048, context_given=True
        )

    def open(self) -> SwitchableInference:
        old = self.model("old")
        self.served = ServedModel(old)
        return SwitchableInference(self.served, lambda: old, self.make, self.drain_seconds)

    def make(self, resolve: Resolve, beside: Callable[[], Sequence[ResolvedModel]]) -> HostInference:
        switches = map(str, self.switches.get(resolve().name, []))
        return HostInference(
            resolve,
            ModelSettings(stop_grace_seconds=2.0, start_timeout_seconds=20.0, memory_headroom_bytes=0),
            command=[sys.executable, str(FAKE_HOST), *switches],
            snapshots=self.folder / "snapshots",
            beside=beside,
        )


@pytest.fixture
def switching(tmp_path: Path) -> Switching:
    return Switching(tmp_path)


@pytest.fixture
async def inference(switching: Switching) -> AsyncIterator[SwitchableInference]:
    opened = switching.open()
    yield opened
    await opened.close()
    assert own_children() == []


def room_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(1000, 1000, "this test")
    monkeypatch.setattr("gateway.inference.process.memory.read_memory", lambda: memory)


async def switch(inference: SwitchableInference, model: ResolvedModel) -> None:
    await inference.switch(model, lambda: model)


async def name_of(inference: SwitchableInference) -> str:
    return (await inference.model_info()).name


async def rest(events: AsyncIterator[GenerationEvent]) -> list[GenerationEvent]:
    return [event async for event in events]


async def test_running_requests_end_on_the_old_model(
    switching: Switching, inference: SwitchableInference
) -> None:
    switching.switches["old"] = ["--deltas", 200]
    inference = switching.open()
    async with aclosing(inference.generate(call())) as events:
        await first_delta(events)
        old = inference.health().pid
        await switch(inference, switching.model("new"))
        assert (await name_of(inference), switching.served.current.name) == ("new", "new")
        assert inference.health().pid != old
        assert isinstance((await rest(events))[-1], Finished)
    await until(lambda: [child.pid for child in own_children()] == [inference.health().pid])
    await inference.close()


async def test_a_model_that_cannot_be_loaded_leaves_the_old_one(
    switching: Switching, inference: SwitchableInference
) -> None:
    pid = (await name_of(inference), inference.health().pid)[1]
    switching.switches["bad"] = ["--fail-load", "model_corrupt"]
    with pytest.raises(ModelUnavailableError, match="told to fail"):
        await switch(inference, switching.model("bad"))
    assert (await name_of(inference), inference.health().pid) == ("old", pid)
    assert (inference.switching_to, switching.served.current.name) == (None, "old")
    await until(lambda: [child.pid for child in own_children()] == [pid])


async def test_a_second_switch_is_refused_while_one_runs(
    switching: Switching, inference: SwitchableInference
) -> None:
    switching.switches["slow"] = ["--load-seconds", 0.5]
    first = asyncio.create_task(switch(inference, switching.model("slow")))
    await until(lambda: inference.switching_to == "slow")
    with pytest.raises(HearthError, match="a switch to slow is in progress") as refused:
        await switch(inference, switching.model("new"))
    assert (refused.value.status, refused.value.code) == (409, "switch_in_progress")
    assert await name_of(inference) == "old"  # it answers while the other one loads
    await first
    assert await name_of(inference) == "slow"


async def test_a_kill_of_either_host_does_not_stop_the_switch(
    switching: Switching, inference: SwitchableInference
) -> None:
    await inference.warm()
    old = inference.health().pid
    switching.switches["slow"] = ["--load-seconds", 0.5]
    switched = asyncio.create_task(switch(inference, switching.model("slow")))
    await until(lambda: len(own_children()) == 2)
    for child in own_children():
        os.kill(child.pid, signal.SIGKILL)
    await until(lambda: inference.health().pid != old)
    assert await name_of(inference) == "old"
    await switched
    assert await name_of(inference) == "slow"


async def test_without_room_for_both_the_old_model_ends_first(
    switching: Switching, inference: SwitchableInference, monkeypatch: pytest.MonkeyPatch
) -> None:
    room_for_one(monkeypatch)
    switching.switches["slow"] = ["--load-seconds", 0.3]
    async with aclosing(inference.generate(call())) as events:
        await first_delta(events)
        switched = asyncio.create_task(switch(inference, switching.model("slow")))
        await until(lambda: inference.switching_to == "slow")
        assert isinstance((await rest(events))[-1], Finished)
    waiting = asyncio.create_task(name_of(inference))
    await switched
    assert await waiting == "slow"


async def test_without_room_a_model_that_cannot_be_loaded_brings_the_old_one_back(
    switching: Switching, inference: SwitchableInference, monkeypatch: pytest.MonkeyPatch
) -> None:
    room_for_one(monkeypatch)
    await inference.warm()
    switching.switches["bad"] = ["--fail-load", "model_corrupt"]
    with pytest.raises(ModelUnavailableError, match="told to fail"):
        await switch(inference, switching.model("bad"))
    assert await name_of(inference) == "old"


async def test_requests_that_do_not_end_leave_the_old_model(
    switching: Switching, inference: SwitchableInference, monkeypatch: pytest.MonkeyPatch
) -> None:
    room_for_one(monkeypatch)
    switching.switches["old"] = ["--deltas", 100_000]
    switching.drain_seconds = 0.1
    inference = switching.open()
    async with aclosing(inference.generate(call())) as events:
        await first_delta(events)
        with pytest.raises(OverloadedError, match="memory does not hold both models"):
            await switch(inference, switching.model("new"))
        await first_delta(events)
        assert await name_of(inference) == "old"
    await inference.close()


async def test_an_owner_is_forgotten_by_the_old_host_too(
    switching: Switching, inference: SwitchableInference
) -> None:
    saved = switching.folder / "snapshots" / "of-old" / f"{owner_digest('ann')}-1"
    saved.parent.mkdir(parents=True)
    switching.switches["old"] = ["--save-at-end", saved]
    inference = switching.open()
    await inference.warm()
    await switch(inference, switching.model("new"))
    await inference.forget("ann")  # while the old host ends, and writes
    assert not saved.exists()
    await inference.close()
