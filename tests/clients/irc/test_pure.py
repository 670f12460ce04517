"""Addressing, limits, backoff, the queue, answers, state: what needs no network."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.irc.bot import CommandLine, addressed
from clients.irc.gateway import Answer, Citation, GatewayError, QueuePlace
from clients.irc.memory import Memory, StateError, StateFile
from clients.irc.outbox import Backoff, Buckets
from clients.irc.replies import WAIT_MESSAGES, failure, shaped, source_line, wait_messages
from clients.irc.requests import Queue, Request

BEFUNGE = Citation(1, "Befunge", "History", "https://wiki.example/Befunge#History")
CHEF = Citation(2, "Chef", "", "https://wiki.example/Chef")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("hearth: who?", "who?"),
        ("Hearth, who?", "who?"),
        ("hearth:who?", "who?"),
        ("\x02hearth\x02: \x0304who?", "who?"),
        ("hearth:", ""),
        ("@hearth who?", "who?"),
        ("@Hearth: who?", "who?"),
        ("@hearth", ""),
        ("@hearths who?", None),
        ("?who", "who"),
        ("hearth who?", None),
        ("hearths: who?", None),
        ("well, hearth: who?", None),
        ("!sources", CommandLine("sources", "")),
        ("!unknown thing", None),
        ("hearth: !unknown thing", CommandLine("unknown", "thing")),
        ("hearth: !Forget me", CommandLine("forget", "me")),
        ("!!sources", None),
        ("hearth: !?", "!?"),
        ("", None),
    ],
)
def test_what_is_meant_for_the_bot(line: str, wanted: object) -> None:
    known = {"sources", "forget"}
    found = addressed(
        line, nick="hearth", private=False, prefix="?", mark="!", commands=known, fold=str.lower
    )
    assert found == wanted


@given(st.text(max_size=100), st.booleans())
def test_any_line_can_be_looked_at(line: str, private: bool) -> None:
    found = addressed(line, nick="hearth", private=private, prefix="", mark="!", commands=(), fold=str.lower)
    assert private <= (found is not None)


def test_buckets_fill_with_time_and_follow_a_nick() -> None:
    now = [0.0]
    buckets = Buckets(2, 10.0, lambda: now[0])
    assert [buckets.take("a") for _ in range(3)] == [0.0, 0.0, 10.0]
    now[0] = 4.0
    assert buckets.take("a") == pytest.approx(6.0)
    assert buckets.take("b") == 0.0
    buckets.rename("a", "b")
    assert buckets.take("b") == pytest.approx(6.0), "a new nick is no new bucket"
    now[0] = 1000.0
    assert [buckets.take("b") for _ in range(3)] == [0.0, 0.0, 10.0]


@given(st.lists(st.floats(0, 30), max_size=40))
def test_a_bucket_never_gives_more_than_its_rate(pauses: list[float]) -> None:
    now = [0.0]
    buckets = Buckets(3, 5.0, lambda: now[0])
    taken = 0
    for pause in pauses:
        now[0] += pause
        taken += buckets.take("a") == 0
    assert taken <= 3 + now[0] / 5.0 + 1e-6


def test_buckets_do_not_pile_up() -> None:
    buckets = Buckets(1, 10.0, lambda: 0.0)
    for number in range(10_000):
        buckets.take(str(number))
    assert len(buckets._buckets) <= 4096


def test_backoff_doubles_with_jitter_up_to_its_limit() -> None:
    backoff = Backoff(2.0, 60.0, random.Random(1))
    waits = [backoff.next() for _ in range(100)]
    for attempt, wait in enumerate(waits):
        full = min(60.0, 2.0 * 2**attempt)
        assert full / 2 <= wait <= full
    assert len(set(waits)) > 90
    backoff.reset()
    assert backoff.next() <= 2.0


def test_wait_messages_come_once_before_they_come_again() -> None:
    assert len(WAIT_MESSAGES) >= 30 and len(set(WAIT_MESSAGES)) == len(WAIT_MESSAGES)
    assert all(0 < len(text) <= 120 and text.isascii() for text in WAIT_MESSAGES)
    messages = wait_messages(random.Random(1))
    for _ in range(3):
        assert sorted(next(messages) for _ in WAIT_MESSAGES) == sorted(WAIT_MESSAGES)


def asked() -> Request:
    return Request(Any, *("someone" for _ in range(6)))


async def test_the_queue_is_first_come_first_served() -> None:
    queue = Queue(at_once=2, most_waiting=3)
    order: list[int] = []
    gates = [asyncio.Event() for _ in range(5)]
    requests = [asked() for _ in range(5)]

    async def run(number: int) -> None:
        async with queue.turn(requests[number]):
            order.append(number)
            await gates[number].wait()

    tasks = [asyncio.create_task(run(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert (order, queue.running, queue.waiting, queue.full) == ([0, 1], 2, 3, True)
    assert [queue.place(request).position for request in requests] == [0, 0, 1, 2, 3]
    requests[0].move(QueuePlace(4, 2.5))
    assert queue.place(requests[0]) == QueuePlace(4, 2.5)
    tasks[2].cancel()
    gates[1].set()
    await asyncio.wait({tasks[1], tasks[2]})
    await asyncio.sleep(0)
    assert order == [0, 1, 3] and queue.place(requests[4]).position == 1
    for gate in gates:
        gate.set()
    await asyncio.wait(tasks)
    assert order == [0, 1, 3, 4] and (queue.running, queue.waiting) == (0, 0)


async def test_a_turn_that_comes_with_its_cancellation_is_passed_on() -> None:
    queue = Queue(at_once=1, most_waiting=3)
    gate, done = asyncio.Event(), asyncio.Event()

    async def run(event: asyncio.Event) -> None:
        async with queue.turn(asked()):
            await event.wait()

    first = asyncio.create_task(run(gate))
    second = asyncio.create_task(run(done))
    third = asyncio.create_task(run(done))
    await asyncio.sleep(0)
    gate.set()
    await first
    second.cancel()
    done.set()
    await asyncio.wait({second, third})
    assert (queue.running, queue.waiting) == (0, 0) and third.exception() is None


@pytest.mark.parametrize(
    ("text", "citations", "said", "link"),
    [
        ("Chris Pressey made it. [1]", [BEFUNGE], "Chris Pressey made it.", BEFUNGE.url),
        ("A [2]. B [1].", [BEFUNGE, CHEF], "A [2]. B [1].", CHEF.url),
        ("Nothing is said.", [BEFUNGE], "Nothing is said.", ""),
        ("The wiki does not say.", [], "The wiki does not say.", ""),
        ("hearth: two\nlines", [], "two lines", ""),
        ("<hearth> hi", [], "hi", ""),
        ("alice: hi", [], "hi", ""),
        ("Note: hi", [], "Note: hi", ""),
        ("buy at https://evil.example/x now [9]", [], "buy at (link removed) now [9]", ""),
        ("a[1] = b[0]", [], "a[1] = b[0]", ""),
        ("see www.evil.example and mailto:a@b", [], "see (link removed) and (link removed)", ""),
        (f"see {CHEF.url}. [2]", [CHEF], f"see {CHEF.url}.", CHEF.url),
        ("x [1]", [Citation(1, "x", "", "javascript:alert(1)")], "x", ""),
        ("x [1]", [Citation(1, "x", "", "https://a b\r\nQUIT")], "x", ""),
    ],
)
def test_answers_take_the_shape_of_irc(text: str, citations: list[Citation], said: str, link: str) -> None:
    found = shaped(Answer(text, citations), foreign_links=False, names=("hearth", "alice"))
    assert found == (said, link)


def test_links_stay_when_they_are_wanted() -> None:
    assert shaped(Answer("see https://a.b/c"), foreign_links=True, names=()) == ("see https://a.b/c", "")


def test_a_source_on_one_line() -> None:
    assert source_line(BEFUNGE) == "[1] Befunge, History: https://wiki.example/Befunge#History"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (GatewayError("x", code="unreachable"), "cannot reach"),
        (GatewayError("x", code="timeout"), "too long"),
        (GatewayError("x", code="deadline_exceeded", status=504), "too long"),
        (GatewayError("x", code="overloaded", status=503, retry_after=7.2), "again in 7 s"),
        (GatewayError("x", code="model_unavailable", status=503), "no model"),
        (GatewayError("x", code="model_unavailable", status=500), "no model"),
        (GatewayError("x", code="overloaded", status=500), "in a while"),
        (GatewayError("x", code="too_large", status=413), "too long for me"),
        (GatewayError("x", code="unauthorized", status=401), "operator"),
        (GatewayError("secret path /etc/x", code="internal", status=500), "went wrong"),
    ],
)
def test_failures_are_short_and_carry_the_id(error: GatewayError, words: str) -> None:
    text = failure(error, "1a2b")
    assert words in text and text.endswith(" [#1a2b]") and len(text) < 120
    assert "secret" not in text


def test_state_survives_a_restart(tmp_path: Path) -> None:
    first = StateFile(tmp_path / "new" / "folder")
    first.state.conversations["net/#c"] = "id"
    first.state.forgotten.add("net/nick:x")
    first.save()
    assert StateFile(tmp_path / "new" / "folder").state == first.state
    assert [each.name for each in first.path.parent.iterdir()] == ["state.json"]
    first.path.write_text("{")
    with pytest.raises(StateError, match="damaged"):
        StateFile(tmp_path / "new" / "folder")
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="state_dir"):
        StateFile(tmp_path / "file")


class Slow:
    """A gateway that takes a line only when it is told to."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.takes = asyncio.Semaphore(0)
        self.asked = asyncio.Event()

    async def begin(self, title: str, instructions: str) -> str:
        return "c"

    async def keep(self, conversation: str, speaker: str, text: str) -> None:
        self.asked.set()
        await self.takes.acquire()
        self.kept.append(text)


def place(name: str) -> SimpleNamespace:
    network = SimpleNamespace(nick="hearth")
    return SimpleNamespace(
        channel_config=None, account="ann", user="net/account:ann", speaker="ann", place=name, network=network
    )


async def test_a_full_buffer_drops_no_line_that_was_not_sent(tmp_path: Path) -> None:
    gateway, here = Slow(), place("net/#here")
    memory = Memory(gateway, StateFile(tmp_path))
    for number in range(400):
        memory.overhear(here, f"line {number}")
    keeping = asyncio.create_task(memory.keep_overheard(here))
    await gateway.asked.wait()
    memory.overhear(here, "line 400")  # while the first one is being sent
    for _ in range(401):
        gateway.takes.release()
    await keeping
    assert gateway.kept == [f"line {number}" for number in range(401)]


async def test_a_line_that_could_not_be_sent_is_sent_again(tmp_path: Path) -> None:
    gateway, here = Slow(), place("net/#here")
    memory = Memory(gateway, StateFile(tmp_path))
    memory.overhear(here, "first")
    keeping = asyncio.create_task(memory.keep_overheard(here))
    await gateway.asked.wait()
    keeping.cancel()
    await asyncio.wait({keeping})
    gateway.takes.release()
    await memory.keep_overheard(here)
    assert gateway.kept == ["first"]


async def test_a_place_has_a_lock_only_while_it_is_used(tmp_path: Path) -> None:
    gateway = Slow()
    memory = Memory(gateway, StateFile(tmp_path))
    for number in range(100):
        await memory.keep_overheard(place(f"net/#{number}"))
    assert (len(memory._locks), len(memory._overheard)) == (0, 0)
