"""A ping is answered whatever the host does, with the age of its current work."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model_host.conftest import StartHost
from tests.model_host.driver import HostProcess
from tests.waiting import eventually

_numbers = itertools.count()


def busy(host: HostProcess) -> float:
    """``busy_seconds`` of a new ping."""
    ping = f"ping{next(_numbers)}"
    host.send(op="ping", id=ping)
    seconds: float = host.end(ping)["busy_seconds"]
    return seconds


@pytest.mark.parametrize("embedding", [False, True])
def test_a_host_that_loads_answers(
    start_host: StartHost, tiny_model: Path, tiny_embedding_model: Path, embedding: bool
) -> None:
    flags = ["--embedding"] if embedding else []
    model = tiny_embedding_model if embedding else tiny_model
    host = start_host(*flags, model=model, wait_ready=False)
    host.send(op="ping", id="early")
    answer = host.end("early")
    assert answer["busy_seconds"] == 0
    host.wait(lambda: host.ready is not None)
    assert host.ready is not None
    assert answer["_at"] < host.ready["_at"]


def read_a_prompt(host: HostProcess) -> None:
    host.generate("work", prompt="word " * 2000, max_tokens=1)


def count_a_text(host: HostProcess) -> None:
    host.send(op="count", id="work", texts=["word " * 1_000_000])


@pytest.mark.parametrize("work", [read_a_prompt, count_a_text])
def test_the_answer_tells_how_long_a_piece_of_work_has_taken(
    start_host: StartHost, wide_model: Path, work: Callable[[HostProcess], None]
) -> None:
    host = start_host("--chunk", "2048", model=wide_model)
    eventually(lambda: busy(host) == 0, "an idle host is busy")
    work(host)
    eventually(lambda: busy(host) > 0.05, "long work is not told")
    host.end("work")
    eventually(lambda: busy(host) == 0, "an idle host is busy")


def test_what_is_cancelled_before_its_turn_is_not_tokenized(host: HostProcess) -> None:
    text = "word wherever " * 70_000
    begun = time.monotonic()
    host.send(op="count", id="one", texts=[text])
    took = host.end("one")["_at"] - begun
    waiting = [f"waiting{n}" for n in range(20)]
    for number, request_id in enumerate(waiting):
        if number % 2:
            host.generate(request_id, prompt=text)
        else:
            host.send(op="count", id=request_id, texts=[text])
    for request_id in waiting:
        host.send(op="cancel", id=f"no-{request_id}", target=request_id)
    cancelled = time.monotonic()
    ends = [host.end(request_id) for request_id in waiting]
    # The first ones may have had their turn while the others were being sent.
    assert [end.get("code") for end in ends[6::2]] == ["cancelled"] * 7
    assert [end.get("reason") for end in ends[7::2]] == ["cancelled"] * 7
    assert time.monotonic() - cancelled < 10 * took
