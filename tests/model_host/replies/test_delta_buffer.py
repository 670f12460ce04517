"""Fast replies take fewer deltas than tokens, and lose no text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model_host.protocol import TokenLogprob
from model_host.replies.reply import DEBOUNCE_SECONDS, DeltaBuffer, Text
from tests.model_host.conftest import StartHost


@given(st.lists(st.tuples(st.text(min_size=1), st.floats(0.0001, 0.2))))
def test_nothing_is_lost_and_nobody_waits_long(steps: list[tuple[str, float]]) -> None:
    held, now, told, last = DeltaBuffer(), 0.0, "", 0.0
    for number, (text, seconds) in enumerate(steps):
        now += seconds
        held.add(Text(text, [TokenLogprob(text, [], -float(number), [])]))
        if held.due(now, seconds):
            taken = held.take(now)
            assert len(taken.logprobs) >= 1
            told, last = told + taken.text, now
        assert told, "the first text waited"
        assert not held or now + seconds - last < DEBOUNCE_SECONDS, (
            "another step like this one would be too late"
        )
    rest = held.take(now)
    assert told + rest.text == "".join(text for text, _ in steps)
    assert not held


def test_a_fast_reply_comes_in_fewer_messages_than_tokens(start_host: StartHost) -> None:
    host = start_host()
    host.generate("fast", "Count.", max_tokens=400, ignore_eos=True, logprobs=0)
    end = host.end("fast")
    deltas = [event for event in host.events["fast"] if event["event"] == "delta"]
    assert sum(delta["tokens"] for delta in deltas) == end["completion_tokens"] == 400
    assert len(deltas) < 400
    assert deltas[0]["tokens"] == 1, "the first token waited"
    assert all(len(delta["logprobs"]) == delta["tokens"] for delta in deltas)
