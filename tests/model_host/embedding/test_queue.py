"""Which texts are embedded next, without a model."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from model_host.batching.request import AGING_SECONDS
from model_host.embedding.queue import EmbedQueue, Job
from model_host.protocol import Lane

LANES: list[Lane] = ["interactive", "retrieval", "background"]


def job(name: str, sizes: list[int], *, owner: str = "", lane: Lane = "interactive", at: float = 0.0) -> Job:
    return Job(name, lane, owner, [[1] * size for size in sizes], True, 4, at)


def run(queue: EmbedQueue, now: float = 0.0) -> list[list[tuple[str, int]]]:
    """Compute until nothing is left; the batches as (job, tokens) pairs."""
    batches = []
    while pieces := queue.plan(now):
        batches.append([(piece.job.id, len(piece.tokens)) for piece in pieces])
        for piece in pieces:
            queue.advance(piece, b"v")
        for done in [each for each in queue.jobs if each.done]:
            queue.remove(done)
    return batches


def test_texts_are_packed_up_to_the_budget() -> None:
    queue = EmbedQueue(budget=10, sequences=3)
    queue.add(job("a", [4, 4, 4, 30, 1, 1, 1, 1]))
    assert [[size for _, size in batch] for batch in run(queue)] == [[4, 4], [4], [30], [1, 1, 1], [1]]


def test_lanes_go_first_and_never_mix() -> None:
    queue = EmbedQueue(budget=10, sequences=8)
    queue.add(job("import", [5, 5, 5], lane="background"))
    queue.add(job("search", [3], lane="retrieval"))
    queue.add(job("user", [3]))
    assert [sorted({name for name, _ in batch}) for batch in run(queue)] == [
        ["user"],
        ["search"],
        ["import"],
        ["import"],
    ]


def test_waiting_raises_a_request() -> None:
    queue = EmbedQueue(budget=4, sequences=8)
    queue.add(job("old", [4], lane="background", owner="a", at=0.0))
    queue.add(job("new", [4], lane="interactive", owner="b", at=2 * AGING_SECONDS))
    assert run(queue, now=2 * AGING_SECONDS)[0][0][0] == "old"  # level now, and it came first


def test_owners_take_turns_whatever_they_ask_for() -> None:
    queue = EmbedQueue(budget=4, sequences=8)
    queue.add(job("greedy1", [4] * 50, owner="greedy"))
    queue.add(job("greedy2", [4] * 50, owner="greedy"))
    queue.add(job("modest", [4] * 5, owner="modest"))
    served = [name for batch in run(queue) for name, _ in batch]
    assert served.index("modest") <= 1
    assert Counter(name.startswith("modest") for name in served[:10])[True] == 5


def test_a_new_owner_starts_level_and_not_with_a_claim_on_the_past() -> None:
    queue = EmbedQueue(budget=4, sequences=8)
    queue.add(job("first", [4] * 100, owner="first"))
    for _ in range(50):
        pieces = queue.plan(0.0)
        for piece in pieces:
            queue.advance(piece, b"v")
    queue.add(job("second", [4] * 10, owner="second"))
    served = [name for batch in run(queue) for name, _ in batch]
    assert "first" in served[:3]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from(LANES),
            st.lists(st.integers(1, 40), min_size=1, max_size=6),
        ),
        max_size=8,
    ),
    st.integers(1, 20),
    st.integers(1, 4),
)
def test_every_text_is_computed_once_in_its_order(
    asked: list[tuple[str, Lane, list[int]]], budget: int, sequences: int
) -> None:
    queue = EmbedQueue(budget=budget, sequences=sequences)
    for number, (owner, lane, sizes) in enumerate(asked):
        queue.add(job(str(number), sizes, owner=owner, lane=lane))
    batches = run(queue)
    for batch in batches:
        assert len(batch) <= sequences
        assert len(batch) == 1 or sum(size for _, size in batch) <= budget
    for number, (_, _, sizes) in enumerate(asked):
        assert [size for batch in batches for name, size in batch if name == str(number)] == sizes
