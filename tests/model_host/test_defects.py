"""A defect in a thread ends the host with a traceback; a defect in one request ends only that request."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model_host.conftest import StartHost
from tests.model_host.driver import HostProcess
from tests.waiting import PATIENCE

LONG = " ".join(f"word{i}" for i in range(100))


def planted(place: str, name: str) -> str:
    """Runs a host in which the function ``name`` of the module ``place`` raises."""
    return (
        "import runpy\n"
        f"import {place} as module\n"
        "def broken(*_, **__):\n"
        "    raise RuntimeError('a planted defect')\n"
        f"module.{name} = broken\n"
        "runpy.run_module('model_host', run_name='__main__')\n"
    )


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("model_host.wire.intake", "Intake._receive"),
        ("model_host.host", "ModelHost._arrived"),
        ("model_host.batching.scheduler", "Scheduler.plan"),
        ("model_host.snapshots.writer", "write_file"),
    ],
    ids=["reader", "preparer", "loop", "snapshots"],
)
def test_a_dead_thread_ends_the_host(start_host: StartHost, tmp_path: Path, place: str, name: str) -> None:
    flags = ("--snapshots", str(tmp_path), "--snapshot-after", "0")
    host = start_host(*flags, code=planted(place, name))
    host.generate("g", LONG, max_tokens=2, owner="o")
    assert host.process.wait(PATIENCE) == 70
    assert host.stop_reading().count(b"Traceback") == 1
    assert host.stderr.rstrip().endswith(b"RuntimeError: a planted defect")


def test_a_reply_that_cannot_be_read_ends_its_request_alone(start_host: StartHost) -> None:
    host = start_host(code=planted("model_host.replies.reply", "Reply.push"))
    host.generate("g", LONG)
    assert host.end("g")["code"] == "internal"
    host.send(op="count", id="c", texts=["a"])
    assert host.end("c")["counts"] == [1]
    assert host.stop() == 0


@pytest.mark.parametrize("pieces", [False, True])
def test_a_reply_over_the_line_limit_fails_its_request_alone(host: HostProcess, pieces: bool) -> None:
    """It used to end the preparer thread, so that every later request waited forever."""
    request_id = f"long-{pieces}"
    if pieces:
        host.send(op="detokenize", id=request_id, tokens=[300] * 1_000_000, return_pieces=True)
    else:
        host.send(op="count", id=request_id, texts=["7" * 3_900_000], return_tokens=True)
    end = host.end(request_id)
    assert (end["event"], end["code"]) == ("failed", "reply_too_long")
    assert "in parts" in end["message"]
    host.generate(f"after-{pieces}", "hello", max_tokens=1)
    assert host.end(f"after-{pieces}")["event"] == "finished"


def test_a_line_that_is_no_text_is_refused_by_its_id(host: HostProcess) -> None:
    """It used to end the reader thread."""
    host.raw(b'{"op":"count","id":"no-text","texts":["\xff"]}\n')
    assert host.end("no-text")["code"] == "bad_request"
    host.generate("after", "hello", max_tokens=1)
    assert host.end("after")["event"] == "finished"
