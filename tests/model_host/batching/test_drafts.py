"""Draft tokens: they are right, change nothing but the speed, and pause when too many are rejected."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from model_host.batching.drafts import GRAM, LONGEST, Drafter
from tests.model_host.conftest import StartHost
from tests.model_host.driver import HostProcess


@given(st.lists(st.integers(0, 3), max_size=60), st.lists(st.integers(0, 3), max_size=30), st.integers(0, 12))
def test_a_guess_is_what_followed_the_same_tokens(prompt: list[int], more: list[int], limit: int) -> None:
    drafter = Drafter()
    for end in range(len(more) + 1):
        tokens = prompt + more[:end]
        draft = drafter.propose(tokens, limit)
        assert len(draft) <= min(limit, LONGEST)
        gram = tokens[-GRAM:]
        if draft:
            whole = [*gram, *draft]
            places = [tokens[i : i + len(whole)] for i in range(len(tokens) - len(whole) + 1)]
            assert whole in places
        elif limit and len(gram) == GRAM:
            assert gram not in [tokens[i : i + GRAM] for i in range(len(tokens) - GRAM)]


def test_failing_guesses_stop_for_longer_and_longer() -> None:
    drafter = Drafter()
    tokens = [1, 2, 3, 4, 5, 6] * 400
    tried = []
    for step in range(2000):
        draft = drafter.propose(tokens, 8)
        if draft:
            drafter.judge(len(draft), 0)
            tried.append(step)
    assert len(tried) < 60
    assert max(later - earlier for earlier, later in itertools.pairwise(tried)) > 100
    for _ in range(600):
        draft = drafter.propose(tokens, 8)
        if draft:
            drafter.judge(len(draft), len(draft))
    assert len(drafter.propose(tokens, 8)) == 6, (
        "and come back when they hold, as far as the last period goes"
    )


# --------------------------------------------------------------------------- through a real host

COPY = "Grids have rows. Grids have rows and columns. Grids have rows. "
CASES: list[dict[str, Any]] = [
    {"sampling": {"temperature": 0}},
    {"sampling": {"temperature": 0, "repeat_penalty": 1.3, "penalty_last_n": 64}},
    {"sampling": {"temperature": 0.7, "seed": 11}},
    {"sampling": {"temperature": 1.5, "top_k": 5, "seed": 3}, "logprobs": 2},
    {
        "sampling": {"temperature": 0},
        "ignore_eos": False,
        "json_schema": {"type": "array", "items": {"enum": ["ab", "cd"]}},
    },
    {"sampling": {"temperature": 0}, "stop": ["e"]},
    {"sampling": {"temperature": 0}, "max_tokens": 1},
]


def outputs(host: HostProcess) -> list[tuple[str, str, int]]:
    """Text, reason and length of each case, run one by one: a shared batch would change the order of sums."""
    result = []
    for number, case in enumerate(CASES):
        host.generate(f"c{number}", COPY * 3, **({"max_tokens": 60, "ignore_eos": True} | case))
        end = host.end(f"c{number}")
        result.append((host.text(f"c{number}"), end["reason"], end["completion_tokens"]))
    return result


def test_guesses_change_nothing_but_speed(start_host: StartHost) -> None:
    guessing, plain = start_host(), start_host("--drafts", "0")
    with_guesses, without = outputs(guessing), outputs(plain)
    # A near tie between two tokens may go the other way when several are computed in one step.
    assert sum(a == b for a, b in zip(with_guesses, without, strict=True)) >= len(CASES) - 1
    guessing.send(op="stats", id="s")
    plain.send(op="stats", id="s")
    counted = guessing.end("s")
    assert counted["accepted_tokens"] > 20, "the outputs of a random model run in circles"
    assert counted["steps"] < plain.end("s")["steps"]
    assert plain.end("s")["drafted_tokens"] == 0


def test_rejected_guesses_leave_nothing_in_the_cache(start_host: StartHost) -> None:
    """A second turn reuses the first one's cells; cells of a rejected draft among them would change its text."""
    texts = []
    for flags in ((), ("--drafts", "0")):
        host = start_host(*flags)
        sampling = {"temperature": 1.2, "seed": 5}
        host.generate("one", COPY * 3, max_tokens=80, ignore_eos=True, sampling=sampling)
        reply = host.text("one")
        history = [{"role": "user", "content": COPY * 3}, {"role": "assistant", "content": reply}]
        host.generate(
            "two", messages=[*history, {"role": "user", "content": "again"}], max_tokens=20, ignore_eos=True
        )
        texts.append((reply, host.text("two")))
    assert texts[0] == texts[1]
