"""What is erased of an owner: memory, files, and what is on its way to either. The batch loop never waits for it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from model_host.protocol.parts import owner_digest
from model_host.snapshots.snapshot_file import PARTIAL, Snapshot, write_file
from tests.model_host.conftest import StartHost
from tests.model_host.snapshots.test_snapshots import (
    LONG,
    NEXT,
    ask,
    flags,
    folder_of,
    put,
    turn,
    until_saved,
)
from tests.waiting import eventually


def test_forget_drops_memory_and_files(start_host: StartHost, tmp_path: Path) -> None:
    histories: dict[str, list[dict[str, Any]]] = {"alice": [], "bob": []}
    host = start_host(*flags(tmp_path, after=0.0))
    for owner, history in histories.items():
        turn(host, f"one-{owner}", history, owner + LONG[:3000], owner=owner)
    until_saved(tmp_path, 2)
    host.send(op="forget", id="f", owner="alice")
    assert host.end("f")["event"] == "forgotten"
    assert [path.name.split("-")[0] for path in tmp_path.glob("*/*.kv")] == [owner_digest("bob")]
    for owner, history in histories.items():
        turn(host, f"two-{owner}", history, NEXT, owner=owner)
    assert host.end("two-alice")["cached_tokens"] < 16
    assert host.end("two-bob")["cached_tokens"] > 300


SLOW_DISK = """
import pathlib, runpy, threading, time
import model_host.snapshots.writer as module
write = module.write_file
def slow(snapshot, state):
    snapshot.path.with_suffix(".begun").touch()
    while not snapshot.path.with_suffix(".go").exists():
        time.sleep(0.01)
    write(snapshot, state)
module.write_file = slow
runpy.run_module("model_host", run_name="__main__")
"""


def test_nobody_waits_for_an_erasure(start_host: StartHost, tmp_path: Path) -> None:
    """It used to stop the batch loop until everything was written."""
    history: list[dict[str, Any]] = []
    host = start_host(*flags(tmp_path, after=0.0), code=SLOW_DISK)
    turn(host, "one", history, LONG[:3000], owner="alice")
    begun = eventually(lambda: list(tmp_path.glob("*/*.begun")), "nothing is saved")
    host.send(op="forget", id="f", owner="alice")
    ask(host, "two", [{"role": "user", "content": "hello"}], owner="bob", max_tokens=4)
    assert host.events["f"] == []
    begun[0].with_suffix(".go").touch()
    assert host.end("f")["event"] == "forgotten"
    assert list(tmp_path.glob("*/*.kv")) == []


def test_a_file_that_cannot_be_erased_is_told(start_host: StartHost, tmp_path: Path) -> None:
    host = start_host(*flags(tmp_path))
    stubborn = tmp_path / "older-model" / f"{owner_digest('alice')}-1.kv"
    stubborn.mkdir(parents=True)  # unlink fails, for root too
    gone = stubborn.with_name(f"{owner_digest('alice')}-2.kv")
    gone.touch()
    host.send(op="forget", id="f", owner="alice")
    end = host.end("f")
    assert (end["event"], end["code"], end["retriable"]) == ("failed", "not_erased", True)
    assert str(stubborn) in end["message"]
    assert not gone.exists()
    stubborn.rmdir()
    host.send(op="forget", id="again", owner="alice")
    assert host.end("again")["event"] == "forgotten"


@pytest.mark.parametrize("saving", [True, False])
def test_requests_of_a_forgotten_owner_leave_nothing(
    start_host: StartHost, tmp_path: Path, saving: bool
) -> None:
    """Those that run, those that wait, and those whose prompt is being prepared."""
    host = start_host("--parallel", "1", *(flags(tmp_path, after=0.0) if saving else []))
    host.generate("runs", "x" + LONG[:1000], owner="alice", max_tokens=6000, ignore_eos=True)
    host.first("runs", "delta")
    host.generate("waits", "y" + LONG[:1000], owner="alice")
    host.first("waits", "queued")
    host.generate("comes", "z" + LONG[:1000], owner="alice")
    host.send(op="forget", id="f", owner="alice")
    assert host.end("f")["event"] == "forgotten"
    host.send(op="cancel", id="c", target="runs")
    for name in ("runs", "waits", "comes"):
        assert host.end(name)["event"] == "finished"
    for letter in "" if saving else "xyz":
        host.generate(letter, letter + LONG[:1000], owner="alice", max_tokens=1)
        assert host.end(letter)["cached_tokens"] < 16
    assert host.stop() == 0
    assert list(tmp_path.glob("*/*.kv")) == []


def test_erasing_waits_for_a_file_that_is_being_written_and_drops_those_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_write = threading.Event(), threading.Event()

    def slow(snapshot: Snapshot, state: bytes) -> None:
        begun.set()
        assert may_write.wait(20)
        write_file(snapshot, state)

    monkeypatch.setattr("model_host.snapshots.writer.write_file", slow)
    folder = folder_of(tmp_path)
    assert put(folder, "alice", 0, [1, 2], b"s") and begun.wait(20)
    assert put(folder, "alice", 0, [3, 4], b"s")
    (folder.folder / f"left{PARTIAL}").write_bytes(b"of a crash: nobody knows whose")
    ends: list[OSError | None] = []
    folder.forget("alice")
    folder.writer.erase("alice", ends.append)
    assert folder.find([1, 2, 3], 0, "alice")[0] is None
    assert put(folder, "bob", 0, [3, 4], b"s")
    assert ends == [] and folder.writer.saved == 0
    may_write.set()
    assert folder.writer.flush(10)
    assert ends == [None] and folder.writer.saved == 2
    assert [path.name.split("-")[0] for path in tmp_path.glob("*/*")] == [owner_digest("bob")]
