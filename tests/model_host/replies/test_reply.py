"""Replies: tokens in, and out the text, the calls and the log-probabilities that may be sent, however they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model_host.protocol import TokenLogprob
from model_host.replies.markers import StopMatcher
from model_host.replies.reply import DEBOUNCE_SECONDS, DeltaBuffer, Reply, Text
from model_host.replies.reply_parser import CallPiece, ReplyParser
from tests.model_host.conftest import StartHost
from tests.model_host.replies.forms import GEMMA, TOOLS, markers


def pieces_of(text: str, lengths: list[int]) -> list[bytes]:
    raw, made = text.encode(), []
    while raw:
        length = lengths[len(made) % len(lengths)]
        made.append(raw[:length])
        raw = raw[length:]
    return made


@given(
    st.text("abß€😀x", max_size=30),
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.lists(st.text("abx€", min_size=1, max_size=3), max_size=2),
)
def test_log_probabilities_go_with_the_text_that_is_shown(
    text: str, lengths: list[int], stops: list[str]
) -> None:
    reply = Reply(StopMatcher(stops))
    shown, told = "", []
    for number, piece in enumerate(pieces_of(text, lengths)):
        for made in reply.push(7, piece, TokenLogprob(str(number), list(piece), -1.0, [])):
            assert isinstance(made, Text)
            shown += made.text
            told += made.logprobs
        if reply.complete:
            break
    for made in reply.finish(ended=True):
        assert isinstance(made, Text)
        shown += made.text
        told += made.logprobs
    assert text.startswith(shown)
    assert [logprob.token for logprob in told] == [str(i) for i in range(len(told))]
    joined = bytes(byte for logprob in told for byte in logprob.bytes)
    if reply.stop_string is None:
        assert (shown, joined) == (text, text.encode())
    else:  # the last token may reach into the stop string; later tokens are not reported
        assert joined.startswith(shown.encode())
        assert len(joined) < len(shown.encode()) + max(lengths)


def test_log_probabilities_of_calls_and_thoughts_are_left_out() -> None:
    known = markers(tokens=True)
    reply = Reply(parser=ReplyParser(known, GEMMA, TOOLS))
    written = [
        "<|channel>",
        "hm",
        "<channel|>",
        "Hi",
        " you",
        "<|tool_call>",
        "call:get{",
        "}",
        "<tool_call|>",
    ]
    told, calls = [], []
    for word in written:
        token = known.tokens.get(word, 7)
        for made in reply.push(token, word.encode(), TokenLogprob(word, [], -1.0, [])):
            if isinstance(made, CallPiece):
                calls.append(made)
            else:
                told += [(made.text, [logprob.token for logprob in made.logprobs])]
    assert reply.finish(ended=True) == []
    assert told == [("hm", []), ("Hi", ["Hi"]), (" you", [" you"])]
    assert "".join(piece.arguments for piece in calls) == "{}"
    assert reply.calls == 1


def test_stop_strings_count_in_the_text_alone() -> None:
    reply = Reply(StopMatcher(["}", "END"]), ReplyParser(markers(tokens=False), GEMMA, TOOLS))
    made = reply.push(7, b"one<|tool_call>call:get{a:1}<tool_call|>two E")
    assert [piece.text for piece in made if isinstance(piece, Text)] == ["one", "two "]
    assert not reply.complete
    assert reply.push(7, b"ND three") == []
    assert reply.stop_string == "END"


@given(st.text(), st.lists(st.integers(1, 5), min_size=1))
def test_any_cut_of_utf8_gives_the_text_back(text: str, sizes: list[int]) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    expected = raw.decode("utf-8", "replace")
    reply, pieces, start, turn = Reply(), [], 0, 0
    while start < len(raw):
        size = sizes[turn % len(sizes)]
        pieces += reply.push(7, raw[start : start + size])
        start, turn = start + size, turn + 1
    pieces += reply.finish(ended=True)
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == expected


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
    # Text shown before a longer match completed cannot be taken back: with overlapping stop strings the first to be
    # completed wins, which depends on how the text is cut.
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
