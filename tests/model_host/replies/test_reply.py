"""Replies: tokens in, and out the text, the calls and the log-probabilities that may be sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model_host.protocol import TokenLogprob
from model_host.replies.markers import StopMatcher
from model_host.replies.reply import Reply, Text
from model_host.replies.reply_parser import CallPiece, ReplyParser
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
