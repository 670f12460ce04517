"""The protocol's five invariants on a real model host, with hostile input."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.model_host.conftest import StartHost
from tests.model_host.driver import ROOT, HostProcess

PROMPT = "Tell me about Befunge and its two-dimensional grid."


# --------------------------------------------------------------------------- invariants


def test_invariant_1_every_request_gets_one_terminal_event(start_host: StartHost) -> None:
    host = start_host("--parallel", "4")
    chance = random.Random(3)
    ids = [f"r{i}" for i in range(60)]
    for request_id in ids:
        host.generate(request_id, f"question {request_id}", max_tokens=chance.randint(1, 40), ignore_eos=True)
        if chance.random() < 0.4:
            host.send(op="cancel", id=f"c{request_id}", target=chance.choice(ids))
        if chance.random() < 0.2:
            host.send(op="count", id=f"n{request_id}", texts=["a b c"])
    for request_id in ids:
        host.end(request_id)
    assert host.stop() == 0  # checks one terminal event for each id


def test_invariant_1_open_requests_end_at_shutdown(start_host: StartHost) -> None:
    host = start_host()
    for i in range(12):
        host.generate(f"r{i}", "never ending", max_tokens=4000, ignore_eos=True)
    host.first("r0", "started")
    assert host.stop() == 0
    assert all(host.end(f"r{i}")["event"] in {"finished", "failed"} for i in range(12))


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"{}",
        b"[]",
        b'{"op":"nonsense","id":"x1"}',
        b'{"op":"generate","id":"x2"}',
        b'{"op":"generate","id":"x3","prompt":"x","max_tokens":0}',
        b'{"op":"generate","id":"x4","prompt":"x","unknown":1}',
        b'{"op":"generate","id":"","prompt":"x"}',
        b"\xff\xfe\x00",
        b'{"op":"generate","prompt":"\\ud800","max_tokens":1}',
        b'{"op":"count","id":"x6"}',
    ],
)
def test_invariant_2_a_bad_line_is_answered_and_the_host_lives_on(host: HostProcess, line: bytes) -> None:
    known = len(host.events[None])
    host.raw(line + b"\n")
    try:
        request_id = json.loads(line)["id"] or None
    except (ValueError, KeyError, TypeError):
        request_id = None
    if request_id is None:
        host.wait(lambda: len(host.events[None]) > known)
    else:
        host.end(request_id)
    good = f"good{time.monotonic_ns()}"
    host.generate(good, "hello", max_tokens=1)
    assert host.end(good)["event"] == "finished"


def test_invariant_2_an_oversized_line_is_refused_and_skipped(start_host: StartHost) -> None:
    host = start_host()
    host.raw(b'{"op":"count","id":"big","texts":["' + b"x" * (8 * 1024 * 1024) + b'"]}\n')
    host.generate("after", "hello", max_tokens=1)
    assert host.end("after")["event"] == "finished"
    assert host.events[None][0]["code"] == "line_too_long"
    assert host.stop() == 0


def test_invariant_3_nothing_but_events_on_stdout(tmp_path: Path, tiny_model: Path) -> None:
    """What a library prints to descriptor 1 goes to stderr."""
    script = tmp_path / "noisy.py"
    script.write_text(
        "import os, runpy, sys\n"
        "import model_host.engine.machine as m\n"
        "be = m.be_first_out_of_memory\n"
        "def later():\n"
        "    be()\n"
        "    import threading\n"
        "    threading.Timer(0.5, lambda: os.write(1, b'noise on descriptor one\\n')).start()\n"
        "m.be_first_out_of_memory = later\n"
        "runpy.run_module('model_host', run_name='__main__')\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script), "--model", str(tiny_model), "--threads", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    time.sleep(1.5)
    out, errors = process.communicate(b'{"op":"shutdown","id":"s"}\n', timeout=20)
    assert b"noise on descriptor one" in errors
    assert all(json.loads(line)["event"] for line in out.splitlines())


@pytest.mark.parametrize("value", ["-1", "99999999999999999999", "1e308", '"a"', "null", "[]", "true"])
def test_invariant_4_numbers_are_checked_before_they_reach_c(host: HostProcess, value: str) -> None:
    request_id = f"range{abs(hash(value))}"
    line = f'{{"op":"generate","id":"{request_id}","prompt":"x","sampling":{{"top_k":{value}}},"max_tokens":1}}\n'
    host.raw(line.encode())
    assert host.end(request_id)["code"] == "bad_request"


def test_invariant_5_started_and_finished_report_tokens_and_times(start_host: StartHost) -> None:
    host = start_host()
    host.generate("first", PROMPT, owner="me")
    first = host.end("first")
    host.generate("second", PROMPT, owner="me")
    second = host.end("second")
    assert host.first("first", "started")["cached_tokens"] == 0
    assert host.first("second", "started")["cached_tokens"] == first["prompt_tokens"] - 1
    assert second["cached_tokens"] == first["prompt_tokens"] - 1
    assert second["completion_tokens"] <= 8
    assert all(first[name] >= 0 for name in ("queue_seconds", "prefill_seconds", "decode_seconds"))
    assert host.stop() == 0
