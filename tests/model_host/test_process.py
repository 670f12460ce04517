"""The life of the host process, models that cannot load, and defects, which end the host or one request."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.server import alive
from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT, HostProcess
from tests.waiting import PATIENCE, eventually

PROMPT = "Tell me about Befunge and its two-dimensional grid."


# --------------------------------------------------------------------------- the process


def test_closed_stdin_ends_the_host(start_host: StartHost) -> None:
    host = start_host()
    host.generate("open", PROMPT, max_tokens=8000, ignore_eos=True)
    host.first("open", "started")
    assert host.process.stdin is not None
    host.process.stdin.close()
    assert host.process.wait(PATIENCE) == 0
    assert host.end("open")["reason"] == "cancelled"


def test_sigterm_ends_the_host(start_host: StartHost) -> None:
    host = start_host()
    host.process.send_signal(signal.SIGTERM)
    # The loop sleeps while idle; the signal must wake it.
    assert host.process.wait(PATIENCE) == 0


def test_the_host_dies_with_its_parent(tiny_model: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        f"p = subprocess.Popen([sys.executable, '-m', 'model_host', '--model', {str(tiny_model)!r}, '--threads', '1',\n"
        "    '--parent', str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "p.stdout.readline()\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    eventually(lambda: not alive(pid), "the host outlived its parent")


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "model_missing"),
        (b"not a model", "model_corrupt"),
        (b"GGUF\3\0\0\0", "model_corrupt"),
        (b"", "model_corrupt"),
    ],
)
def test_models_that_cannot_load_say_why(
    tmp_path: Path, start_host: StartHost, content: bytes | None, code: str
) -> None:
    model = tmp_path / "broken.gguf"
    if content is not None:
        model.write_bytes(content)
    host = start_host(model=model, wait_ready=False)
    assert host.end(None)["code"] == code
    assert host.process.wait(PATIENCE) == 1


def test_an_unknown_architecture_is_unsupported(
    tmp_path: Path, tiny_model: Path, start_host: StartHost
) -> None:
    model = tmp_path / "other.gguf"
    model.write_bytes(tiny_model.read_bytes().replace(b"gemma3", b"gemmaX"))
    host = start_host(model=model, wait_ready=False)
    assert host.end(None)["code"] == "model_unsupported"


def test_damaged_models_never_hang(tmp_path: Path, tiny_model: Path, start_host: StartHost) -> None:
    whole = tiny_model.read_bytes()
    chance = random.Random(11)
    for number in range(10):
        model = tmp_path / f"damaged{number}.gguf"
        data = bytearray(whole[: chance.randrange(100, len(whole))] if number % 2 else whole)
        for _ in range(20):
            data[chance.randrange(4, min(len(data), 60_000))] = chance.randrange(256)
        model.write_bytes(data)
        host = start_host(model=model, wait_ready=False)
        # It loads, reports why not, or dies: the gateway handles all three.
        eventually(
            lambda host=host: (
                host.ready is not None or bool(host.events[None]) or host.process.poll() is not None
            ),
            "a damaged model hung the host",
        )
        host.kill()


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
