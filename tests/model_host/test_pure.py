"""Text, slots, scheduler and protocol without a model."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_host import protocol
from model_host.reply import Reply
from model_host.request import Sequence
from model_host.scheduler import Scheduler
from model_host.slots import SlotTable
from model_host.text import IncrementalText, StopMatcher

# --------------------------------------------------------------------------- text


@given(st.text(), st.lists(st.integers(1, 5), min_size=1))
def test_any_cut_of_utf8_gives_the_text_back(text: str, sizes: list[int]) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    expected = raw.decode("utf-8", "replace")
    decoder, shown, start, turn = IncrementalText(), "", 0, 0
    while start < len(raw):
        size = sizes[turn % len(sizes)]
        shown += decoder.push(raw[start : start + size])
        start, turn = start + size, turn + 1
    assert shown + decoder.flush() == expected


@given(
    st.text("ab<>", max_size=40),
    st.lists(st.text("ab<>", min_size=1, max_size=5), max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
)
def test_stop_strings_cut_at_the_first_match_however_text_arrives(
    text: str, stops: list[str], sizes: list[int]
) -> None:
    hits = [text.find(stop) for stop in stops if stop in text]
    expected = text[: min(hits)] if hits else text
    # What had been shown before a longer match completed cannot be taken back: with overlapping stops the earliest
    # completed one wins, so compare with a character-by-character run, the finest arrival there is.
    matcher, shown = StopMatcher(stops), ""
    start, turn = 0, 0
    while start < len(text) and matcher.matched is None:
        size = sizes[turn % len(sizes)]
        shown += matcher.push(text[start : start + size])
        start, turn = start + size, turn + 1
    if matcher.matched is None:
        shown += matcher.flush()
    assert text.startswith(shown)
    assert not any(stop in shown for stop in stops)
    if not hits:
        assert shown == expected
    else:
        assert matcher.matched is not None
        assert len(shown) >= len(expected)


# --------------------------------------------------------------------------- slots


class FakeMemory:
    """What llama.cpp would hold: positions by sequence."""

    def __init__(self) -> None:
        self.lengths: dict[int, int] = {}

    def copy(self, source: int, target: int, end: int) -> None:
        assert self.lengths.get(target, 0) == 0, "copied into a sequence that is not empty"
        assert end <= self.lengths.get(source, 0)
        self.lengths[target] = end

    def trim(self, sequence: int, start: int) -> None:
        self.lengths[sequence] = min(start, self.lengths.get(sequence, 0))

    def length(self, sequence: int) -> int:
        return self.lengths.get(sequence, 0)

    def reusable(self, sequence: int, length: int) -> bool:
        return length <= self.length(sequence)


OPERATION = st.tuples(
    st.integers(0, 2),  # owner
    st.lists(st.integers(0, 2), min_size=1, max_size=12),  # prompt
    st.integers(0, 12),  # shared
    st.integers(0, 3),  # which active slot to end
)


@settings(max_examples=300)
@given(st.lists(OPERATION, max_size=40))
def test_slots_add_up_and_keep_the_fence(operations: list[tuple[int, list[int], int, int]]) -> None:
    memory = FakeMemory()
    table = SlotTable(4, 30, memory)
    active: list[Any] = []
    private: dict[int, list[tuple[int, int]]] = {}  # slot id → (owner, token index) of every token's writer
    for owner_number, prompt, shared, which in operations:
        owner = f"owner{owner_number}"
        shared = min(shared, len(prompt))
        before = {slot.id: (slot.owner, slot.shared, list(slot.tokens)) for slot in table._slots}
        placed = table.acquire(prompt, shared, owner, len(prompt))
        if placed is not None:
            slot, reused = placed
            assert reused <= len(prompt) - 1
            assert slot.tokens == prompt[:reused]
            if reused > shared:  # private text was reused: some slot of the same owner must have held it
                assert any(o == owner and t[:reused] == prompt[:reused] for o, _, t in before.values())
            table.append(slot, prompt[reused:], shared)
            memory.lengths[slot.id] = len(prompt)
            active.append(slot)
        table.check()
        assert table.used <= table.size
        if active and which < len(active):
            table.release(active.pop(which))
            table.check()
    assert private == {}
    for slot in active:
        table.release(slot)
    table.drop_cached()
    assert table.used == 0


def test_another_owners_private_prefix_is_not_reused() -> None:
    memory = FakeMemory()
    table = SlotTable(4, 100, memory)
    placed = table.acquire([1, 2, 3, 4], 2, "a", 4)
    assert placed is not None
    table.append(placed[0], [1, 2, 3, 4], 2)
    memory.lengths[placed[0].id] = 4
    table.release(placed[0])
    assert table.find([1, 2, 3, 4, 5], 2, "b")[1] == 2
    assert table.find([1, 2, 3, 4, 5], 5, "b")[1] == 2
    assert table.find([1, 2, 3, 4, 5], 0, "b")[1] == 0
    assert table.find([1, 2, 3, 4, 5], 0, "a")[1] == 4


def test_books_that_contradict_the_model_cost_the_cache() -> None:
    memory = FakeMemory()
    table = SlotTable(4, 100, memory)
    placed = table.acquire([1, 2, 3, 4], 2, "a", 4)
    assert placed is not None
    table.append(placed[0], [1, 2, 3, 4], 2)
    memory.lengths[placed[0].id] = 4
    table.release(placed[0])
    assert table.repair() is None
    assert table.find([1, 2, 3, 4, 5], 2, "a")[1] == 4
    memory.lengths[placed[0].id] = 3
    assert "disagrees" in str(table.repair())
    assert (table.used, table.find([1, 2, 3, 4, 5], 2, "a")[1], memory.length(placed[0].id)) == (0, 0, 0)
    assert table.repair() is None


# --------------------------------------------------------------------------- scheduler


class CountingSampler:
    """Draws numbers that depend on the sequence alone."""

    seed = 0

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)

    def sample(self, row: int) -> int:
        return self._random.randrange(100)

    def close(self) -> None:
        """Nothing to free."""


def simulate(
    requests: list[tuple[int, str, int, int, int]], *, cells: int, parallel: int, budget: int
) -> dict[str, list[int]]:
    """Run requests (arrival step, lane, owner, prompt length, answer length) to their end; their tokens by id."""
    memory = FakeMemory()
    table = SlotTable(2 * parallel, cells, memory)
    scheduler = Scheduler(table, parallel=parallel, max_waiting=1000, sequence_limit=cells)
    coming = sorted(enumerate(requests), key=lambda r: r[1][0])
    finished: dict[str, list[int]] = {}
    step = 0
    while coming or scheduler.waiting or scheduler.running:
        now = float(step)
        while coming and coming[0][1][0] <= step:
            number, (_, lane, owner, prompt, answer) = coming.pop(0)
            scheduler.add(
                Sequence(
                    id=str(number),
                    lane=lane,  # type: ignore[arg-type]
                    owner=f"o{owner}",
                    tokens=[(number * 7 + i) % 50 for i in range(prompt)],
                    shared=0,
                    max_tokens=answer,
                    sampler=CountingSampler(number),
                    reply=Reply(),
                    arrived=now,
                )
            )
        scheduler.admit(now)
        assert len(scheduler.running) <= parallel
        feeds = scheduler.plan(budget, now)
        assert sum(feed.count for feed in feeds) <= budget
        assert table.free >= sum(feed.count for feed in feeds)
        if not feeds and scheduler.running:
            sequence = scheduler.running[0]
            finished[sequence.id] = sequence.tokens
            scheduler.remove(sequence)
        for feed in feeds:
            sequence = feed.sequence
            assert sequence.slot is not None
            table.append(
                sequence.slot, sequence.tokens[sequence.done : sequence.done + feed.count], sequence.shared
            )
            sequence.done += feed.count
            memory.lengths[sequence.slot.id] = sequence.done
            if feed.last:
                sequence.tokens.append(sequence.sampler.sample(0))
                if sequence.generated >= sequence.max_tokens or len(sequence.tokens) >= cells:
                    finished[sequence.id] = sequence.tokens
                    scheduler.remove(sequence)
        table.check()
        step += 1
        assert step < 1200, "requests starve"
    return finished


REQUEST = st.tuples(
    st.integers(0, 40),
    st.sampled_from(["interactive", "retrieval", "background"]),
    st.integers(0, 2),
    st.integers(1, 60),
    st.integers(1, 30),
)


@settings(max_examples=60)
@given(st.lists(REQUEST, min_size=1, max_size=14), st.integers(1, 4), st.integers(4, 32))
def test_every_request_ends_with_the_tokens_it_has_alone(
    requests: list[tuple[int, str, int, int, int]], parallel: int, budget: int
) -> None:
    """Small caches force preemption; what a sequence generates does not depend on its company."""
    budget = max(budget, parallel)
    together = simulate(requests, cells=96, parallel=parallel, budget=budget)
    assert set(together) == {str(i) for i in range(len(requests))}
    for number, request in enumerate(requests):
        prompt, answer = request[3], request[4]
        assert len(together[str(number)]) == min(prompt + answer, 96)
        sampler = CountingSampler(number)
        generated = together[str(number)][prompt:]
        assert generated == [sampler.sample(0) for _ in generated]


def test_lanes_and_owners() -> None:
    def sequence(name: str, lane: str, owner: str, arrived: float) -> Sequence:
        return Sequence(
            id=name,
            lane=lane,  # type: ignore[arg-type]
            owner=owner,
            tokens=[hash(name) % 1000, *range(5)],
            shared=0,
            max_tokens=5,
            sampler=CountingSampler(1),
            reply=Reply(),
            arrived=arrived,
        )

    scheduler = Scheduler(SlotTable(8, 1000, FakeMemory()), parallel=2, max_waiting=9, sequence_limit=1000)
    for item in (
        sequence("b", "background", "x", 0.0),
        sequence("x1", "interactive", "x", 1.0),
        sequence("x2", "interactive", "x", 2.0),
        sequence("y1", "interactive", "y", 3.0),
    ):
        scheduler.add(item)
    assert [s.id for s in scheduler.admit(4.0)] == ["x1", "x2"]
    scheduler.remove(scheduler.running[0])
    assert [s.id for s in scheduler.admit(4.0)] == ["y1"], "the owner with less running comes first"
    assert [s.id for s in scheduler.waiting] == ["b"]
    for _ in range(2):
        scheduler.remove(scheduler.running[0])
    scheduler.add(sequence("late", "interactive", "z", 50.0))
    # Aged by 50 s, two lanes, the background request is as urgent as a new interactive one, and older.
    assert [s.id for s in scheduler.admit(50.0)] == ["b", "late"]


def test_interactive_takes_the_place_of_running_background() -> None:
    scheduler = Scheduler(SlotTable(4, 500, FakeMemory()), parallel=1, max_waiting=9, sequence_limit=500)

    def add(name: str, lane: str, arrived: float) -> None:
        scheduler.add(
            Sequence(
                id=name,
                lane=lane,  # type: ignore[arg-type]
                owner=name,
                tokens=[ord(name[0]), 1, 2],
                shared=0,
                max_tokens=5,
                sampler=CountingSampler(1),
                reply=Reply(),
                arrived=arrived,
            )
        )

    add("background", "background", 0.0)
    scheduler.admit(0.0)
    add("interactive", "interactive", 1.0)
    scheduler.admit(1.0)
    assert [s.id for s in scheduler.running] == ["interactive"]
    assert [s.id for s in scheduler.waiting] == ["background"]


# --------------------------------------------------------------------------- protocol

GOOD = [
    protocol.Generate("a", messages=[protocol.Message("user", "hi")]),
    protocol.Generate("a", prompt="x", json_schema={"type": "string"}, stop=["\n"], lane="background"),
    protocol.Generate(
        "a",
        messages=[
            protocol.Message("assistant", "", tool_calls=[protocol.ToolCall("c", "f", {"a": [1, None]})]),
            protocol.Message("tool", "x", tool_call_id="c", name="f"),
        ],
        tools=[protocol.Tool("f", "does", {"type": "object"}, strict=True)],
        tool_choice="function:f",
        parallel_tool_calls=False,
        logprobs=20,
    ),
    protocol.Count("a", texts=["x", ""]),
    protocol.Detokenize("a", [0, 5]),
    protocol.Cancel("a", "b"),
    protocol.GetStats("a"),
    protocol.Shutdown("a"),
]


@pytest.mark.parametrize("message", GOOD)
def test_requests_survive_the_wire(message: protocol.Request) -> None:
    assert protocol.decode_request(protocol.encode(message)) == message


@given(st.binary(max_size=200))
def test_random_bytes_raise_protocol_errors_only(line: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_request(line)
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_event(line)


JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=500)
@given(st.sampled_from(GOOD), st.data())
def test_mutated_requests_are_refused_or_in_range(message: protocol.Request, data: st.DataObject) -> None:
    fields = msgspec.json.decode(protocol.encode(message))
    key = data.draw(st.sampled_from([*fields, "extra", "max_tokens", "sampling", "owner"]))
    fields[key] = data.draw(JSON_VALUE)
    try:
        request = protocol.decode_request(msgspec.json.encode(fields))
    except protocol.ProtocolError as error:
        assert str(error)
    else:
        assert 1 <= len(request.id) <= 128
        if isinstance(request, protocol.Generate) and request.max_tokens is not None:
            assert 1 <= request.max_tokens <= 1_048_576


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 5.1),
        ("top_p", 1.01),
        ("min_p", -1),
        ("top_k", -1),
        ("top_k", 10**12),
        ("seed", -1),
        ("seed", 2**32),
        ("repeat_penalty", 0),
        ("penalty_last_n", 10**9),
        ("unknown", 1),
    ],
)
def test_sampling_out_of_range_is_refused(field: str, value: float) -> None:
    line = msgspec.json.encode({"op": "generate", "id": "a", "prompt": "x", "sampling": {field: value}})
    with pytest.raises(protocol.ProtocolError, match=field):
        protocol.decode_request(line)


def test_numbers_that_json_cannot_have_are_refused() -> None:
    for number in (b"NaN", b"Infinity", b"1e999"):
        line = b'{"op":"generate","id":"a","prompt":"x","sampling":{"temperature":' + number + b"}}"
        with pytest.raises(protocol.ProtocolError):
            protocol.decode_request(line)


def test_deep_nesting_is_refused() -> None:
    line = (
        b'{"op":"generate","id":"a","prompt":"x","json_schema":'
        + b'{"a":' * 100_000
        + b"1"
        + b"}" * 100_000
        + b"}"
    )
    with pytest.raises(protocol.ProtocolError):
        protocol.decode_request(line)
