"""Output split into text, tool calls and thoughts: the same however it is cut, and without a crash."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.replies.argument_values import MalformedCallError
from model_host.replies.markers import Markers
from model_host.replies.reply_parser import Content, ReplyParser, ThoughtPiece
from model_host.replies.tool_forms import ToolForm, find_form
from tests.model_host.replies.forms import GEMMA, HERMES, LLAMA, MARKERS, TOOLS, markers


def read(
    form: ToolForm, text: str, cuts: list[int], *, tokens: bool, parallel: bool = True, ended: bool = True
) -> tuple[str, list[tuple[str | None, str]], bool]:
    """The text, the calls (name, arguments), and whether the reply broke off."""
    known = markers(tokens=tokens)
    parser = ReplyParser(known, form, TOOLS, parallel=parallel)
    stream = known.written(text)
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    said, calls = "", {}  # type: ignore[var-annotated]
    try:
        pieces = [piece for begin, end in pairwise(bounds) for piece in parser.push(stream[begin:end])]
        pieces += parser.finish(ended=ended)
    except MalformedCallError:
        return "", [], True
    for piece in pieces:
        if isinstance(piece, Content | ThoughtPiece):
            said += piece.text if isinstance(piece, Content) else ""
            continue
        name, arguments = calls.get(piece.index, (None, ""))
        assert (piece.name is None) == (name is not None), "the first piece, and it alone, has the name"
        assert (piece.call_id is None) == (piece.name is None)
        calls[piece.index] = (name or piece.name, arguments + piece.arguments)
    assert list(calls) == list(range(len(calls)))
    assert parser.calls <= len(calls)
    return said, list(calls.values()), False


def one(form: ToolForm, text: str, **kinds: Any) -> tuple[str, list[tuple[str | None, Any]], bool]:
    """Read in one piece; return arguments as values."""
    said, calls, broken = read(form, text, [], **({"tokens": True} | kinds))
    return said, [(name, json.loads(arguments)) for name, arguments in calls], broken


def test_gemma_calls_become_json() -> None:
    text = (
        '<|tool_call>call:get{city:<|"|>Rom "x" \\<|"|>,deep:{a:[1,-2.5e3,true,None],<|"|>b c<|"|>:{}},n:null}'
        "<tool_call|><|tool_call>call:set{}<tool_call|>"
    )
    expected = {"city": 'Rom "x" \\', "deep": {"a": [1, -2500.0, True, None], "b c": {}}, "n": None}
    for tokens in (True, False):
        assert one(GEMMA, text, tokens=tokens) == ("", [("get", expected), ("set", {})], False)


def test_json_calls_between_text() -> None:
    text = (
        'Let me see.\n<tool_call>\n{"name": "get", "arguments": {"a": "}\n</tool_call>"}}\n</tool_call>\n'
        '<tool_call>{"arguments": {"b": [1]}, "name": "set", "id": 3}</tool_call>\nDone.'
    )
    expected = [("get", {"a": "}\n</tool_call>"}), ("set", {"b": [1]})]
    assert one(HERMES, text, tokens=False) == ("Let me see.Done.", expected, False)


def test_json_without_markers_is_a_call_only_as_the_whole_reply() -> None:
    call = '{"name": "get", "parameters": {"a": 1}}'
    assert one(LLAMA, f" {call}") == ("", [("get", {"a": 1})], False)
    assert one(LLAMA, f"{call}\n{call}")[1] == [("get", {"a": 1})] * 2
    for text in (f"See {call}", '{"name": "other", "parameters": {}}', '{"a": 1}', "{", "[1]", "{]"):
        assert one(LLAMA, text) == (text, [], False)


FENCED = '```json\n{\n  "name": "get",\n  "arguments": {"a": "```"}\n}\n```'


@pytest.mark.parametrize("tokens", [True, False])
def test_a_small_model_may_write_calls_without_their_markers(tokens: bool) -> None:
    call = ("get", {"a": "```"})
    assert one(HERMES, FENCED, tokens=tokens) == ("", [call], False)
    assert one(HERMES, f" \n{FENCED}\n\n{FENCED}\nDone.", tokens=tokens) == ("Done.", [call] * 2, False)
    assert one(HERMES, FENCED.removesuffix("```"), tokens=tokens) == ("", [call], False)
    bare = FENCED.removeprefix("```json").removesuffix("```")
    assert one(HERMES, f"{bare}{bare}<tool_call>{bare}</tool_call>", tokens=tokens) == ("", [call] * 3, False)
    assert one(LLAMA, FENCED.replace("arguments", "parameters"), tokens=tokens) == ("", [call], False)


@pytest.mark.parametrize(
    "text",
    [
        f"So:\n{FENCED}",
        FENCED.replace("get", "other"),
        FENCED.replace('"name"', '"title"'),
        FENCED.replace("json", "python"),
        "```json",
        "```",
        '{"name"',
        "{" + " " * 200 + FENCED[9:],
    ],
)
def test_json_that_calls_no_tool_is_text(text: str) -> None:
    assert one(HERMES, text) == (text, [], False)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (HERMES, "<tool_call>no"),
        (HERMES, '<tool_call>{"name": "other", "arguments": {}}</tool_call>'),
        (HERMES, '<tool_call>{"name": 3, "arguments": {}}</tool_call>'),
        (HERMES, '<tool_call>{"name": "get", "arguments": "x"}</tool_call>'),
        (GEMMA, "<|tool_call>get{}<tool_call|>"),
        (GEMMA, "<|tool_call>call:other{}<tool_call|>"),
        (GEMMA, "a \n<|tool_call>call:ge"),
    ],
)
def test_what_does_not_begin_as_a_call_is_text(form: ToolForm, text: str) -> None:
    said, calls, broken = one(form, text, tokens=False)
    assert (said, calls, broken) == (text, [], False)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (HERMES, '<tool_call>{"name": "get", "arguments": {"a": tru}}</tool_call>'),
        (HERMES, '<tool_call>{"name": "get", "arguments": {"a": 1'),
        (HERMES, '<tool_call>{"name": "get", "arguments": {}} and so on'),
        (GEMMA, "<|tool_call>call:get{a:bare}<tool_call|>"),
        (GEMMA, "<|tool_call>call:get{a:1"),
        (GEMMA, "<|tool_call>call:get{a:1]<tool_call|>"),
        (GEMMA, "<|tool_call>call:get" + "{a:" * 70),
    ],
)
def test_a_call_that_breaks_off_is_an_error(form: ToolForm, text: str) -> None:
    assert one(form, text) == ("", [], True)


def test_a_call_without_its_closing_marker_counts_when_the_model_stopped_there() -> None:
    assert one(HERMES, '<tool_call>{"name": "get", "arguments": {"a": 1}}')[1] == [("get", {"a": 1})]
    assert one(GEMMA, "<|tool_call>call:get{a:1}")[1] == [("get", {"a": 1})]


def test_a_limit_leaves_the_arguments_so_far() -> None:
    said, calls, broken = read(GEMMA, '<|tool_call>call:get{a:<|"|>ab', [], tokens=True, ended=False)
    assert (said, calls, broken) == ("", [("get", '{"a":"ab')], False)


def test_without_parallel_calls_the_first_one_ends_the_reply() -> None:
    text = "<|tool_call>call:get{}<tool_call|><|tool_call>call:set{}<tool_call|>"
    assert one(GEMMA, text, parallel=False)[1] == [("get", {})]


def test_thoughts_are_not_said() -> None:
    for tokens in (True, False):
        text = "<|channel>thought\nHm <|tool_call>call:get{}<tool_call|><channel|>Yes.<|channel>more"
        assert one(GEMMA, text, tokens=tokens) == ("Yes.", [], False)


THINK = ("<think>", "</think>")


@pytest.mark.parametrize(
    ("opened", "text", "thought", "said"),
    [
        ("", "<think>\n thought: hm < me\n</think>\n\nYes.", "thought: hm < me", "Yes."),
        ("</think>", "\nhm\n\nhm\n</think>\n\nYes. <think>no</think>", "hm\n\nhm", "Yes. <think>no</think>"),
        ("", " <think></think>Yes.", "", "Yes."),
        ("", "\n<thin", "", "\n<thin"),
        ("", "<think>thought", "thought", ""),
        ("", "Yes. <think>no</think>", "", "Yes. <think>no</think>"),
    ],
)
def test_thoughts_at_the_beginning_are_read_however_they_are_cut(
    opened: str, text: str, thought: str, said: str
) -> None:
    for size in (1, 2, 3, 7, 99):
        parser = ReplyParser(Markers((), lambda _: None), leading=[THINK], opened=opened)
        cut = [text[at : at + size] for at in range(0, len(text), size)]
        pieces = [piece for part in cut for piece in parser.push(part)] + parser.finish(ended=True)
        assert "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == thought
        assert "".join(piece.text for piece in pieces if isinstance(piece, Content)) == said


def test_a_label_of_gemmas_channel_is_no_thought() -> None:
    text = "<|channel>thought\nHm.<channel|>Yes."
    for size in (1, 4, 99):
        parser = ReplyParser(markers(tokens=False))
        pieces = [piece for at in range(0, len(text), size) for piece in parser.push(text[at : at + size])]
        assert "".join(piece.text for piece in pieces if isinstance(piece, ThoughtPiece)) == "Hm."


def test_a_marker_spelled_out_is_text_where_it_is_a_token() -> None:
    parser = ReplyParser(markers(tokens=True), HERMES, TOOLS)
    text = '<tool_call>{"name": "get", "arguments": {}}</tool_call>'
    pieces = [*parser.push(text), *parser.finish(ended=True)]
    assert "".join(piece.text for piece in pieces if isinstance(piece, Content)) == text


def test_stray_control_tokens_are_hidden_and_spelled_out_in_arguments() -> None:
    assert one(GEMMA, "a<tool_call|>b") == ("ab", [], False)
    text = '<|tool_call>call:get{a:<|"|>x<tool_call|>y<|"|>}<tool_call|>'
    assert one(GEMMA, text)[1] == [("get", {"a": "x<tool_call|>y"})]
    text = '<tool_call>{"name": "get", "arguments": {"a": "x</tool_call>\ny"}}</tool_call>'
    assert one(HERMES, text)[1] == [("get", {"a": "x</tool_call>\ny"})]


# --------------------------------------------------------------------------- any cut, any text

SCRAPS = st.sampled_from(
    [
        *MARKERS,
        "call:get{",
        "call:set{",
        '{"name": "get", "arguments": ',
        '{"name":"set","parameters":',
        "{}",
        "}",
        "}}",
        "{",
        "[",
        "]",
        '"',
        "\\",
        ":",
        ",",
        "a:",
        "1",
        "-2.5",
        "true",
        "None",
        "```json",
        "```",
        '{"name":',
        " ",
        "\n",
        "é",
        "thought",
    ]
)
WRITTEN = st.lists(SCRAPS | st.text(max_size=4), max_size=16).map("".join)
FORMS = st.sampled_from([GEMMA, HERMES, LLAMA])


@given(
    FORMS, WRITTEN, st.lists(st.integers(0, 120), max_size=12), st.booleans(), st.booleans(), st.booleans()
)
def test_how_the_stream_is_cut_makes_no_difference(
    form: ToolForm, text: str, cuts: list[int], tokens: bool, parallel: bool, ended: bool
) -> None:
    whole = read(form, text, [], tokens=tokens, parallel=parallel, ended=ended)
    assert read(form, text, cuts, tokens=tokens, parallel=parallel, ended=ended) == whole
    every = list(range(len(text) + 1))
    assert read(form, text, every, tokens=tokens, parallel=parallel, ended=ended) == whole


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    # Markers that are not tokens cannot be told from the same text in an argument.
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abcXYZ_", min_size=1, max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text("abcXYZ_", min_size=1, max_size=8), JSON, max_size=4)


def gemma(value: Any) -> str:
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{gemma(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(gemma, value)) + "]"
    return json.dumps(value)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(TOOLS)), ARGUMENTS), min_size=1, max_size=3),
    st.booleans(),
    st.data(),
)
def test_every_call_comes_through(calls: list[tuple[str, Any]], tokens: bool, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from([GEMMA, HERMES]))
    written = "".join(
        f"<|tool_call>call:{name}{gemma(arguments)}<tool_call|>"
        if form is GEMMA
        else f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>\n"
        for name, arguments in calls
    )
    cuts = data.draw(st.lists(st.integers(0, len(written)), max_size=10))
    said, found, broken = read(form, written, cuts, tokens=tokens)
    assert (said, broken) == ("", False)
    assert [(name, json.loads(arguments)) for name, arguments in found] == calls


def test_forms_are_told_by_what_a_template_prints() -> None:
    gemma_text = 'x<|tool_call>call:probe_tool{probe_key:<|"|>probe value<|"|>}<tool_call|>'
    call = '{"name": "probe_tool", "arguments": {"probe_key": "probe value"}}'
    assert find_form(gemma_text) == GEMMA
    assert find_form(f"<tool_call>\n{call}\n</tool_call>") == HERMES
    llama = call.replace("arguments", "parameters")
    assert find_form(f"<|start_header_id|>assistant<|end_header_id|>\n\n{llama}<|eot_id|>") == LLAMA
    for text in ("", call, llama, f"[TOOL_CALLS]{call}", f"<function=probe_tool>{call}"):
        assert find_form(text) is None
