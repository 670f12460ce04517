"""The forms in which models other than Gemma's and Hermes' write calls: detected, read in any pieces, constrained."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.protocol import Tool
from model_host.replies.argument_values import MalformedCallError
from model_host.replies.markers import CHANNEL_MARKERS, Markers
from model_host.replies.reply_parser import CallPiece, Content, ReplyParser
from model_host.replies.tool_forms import ToolForm, find_form
from model_host.replies.tool_grammar import tool_grammar
from tests.model_host.grammar.gbnf.sentences import takes

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"enum": ["C", "K"]},
        "deep": {"type": ["object", "string"]},
    },
    "required": ["city"],
}
TOOLS: dict[str, Any] = {"get": SCHEMA, "now": {}}

# A call of `probe_tool` as a template of this family renders it, and two calls as its model writes them.
FAMILIES = {
    "mistral": (
        '[TOOL_CALLS]probe_tool[ARGS]{"probe_key": "probe value"}</s>',
        '[TOOL_CALLS]get[ARGS]{"city": "Rome", "days": 2}[TOOL_CALLS]now[ARGS]{}',
    ),
    "mistral-ids": (
        '[TOOL_CALLS]probe_tool[CALL_ID]367efe2fc[ARGS]{"probe_key": "probe value"}</s>',
        '[TOOL_CALLS]get[CALL_ID]a1b2c3d4e[ARGS]{"city": "Rome", "days": 2}[TOOL_CALLS]now[CALL_ID]x[ARGS]{}',
    ),
    "mistral-list": (
        '[TOOL_CALLS][{"name": "probe_tool", "arguments": {"probe_key": "probe value"}, "id": "367efe2fc"}]</s>',
        '[TOOL_CALLS][{"name": "get", "arguments": {"city": "Rome", "days": 2}}, {"name": "now", "arguments": {}}]',
    ),
    "nemotron": (
        '<TOOLCALL>[{"name": "probe_tool", "arguments": {"probe_key": "probe value"}}]</TOOLCALL>',
        '<TOOLCALL>[{"name": "get", "arguments": {"city": "Rome", "days": 2}}, '
        '{"name": "now", "arguments": {}}]</TOOLCALL>',
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.probe_tool:0<|tool_call_argument_begin|>"
        '{"probe_key": "probe value"}<|tool_call_end|><|tool_calls_section_end|>',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>"
        '{"city": "Rome", "days": 2}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>'
        "{}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    "deepseek-r1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>probe_tool\n```json\n"
        '{"probe_key": "probe value"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n"
        '{"city": "Rome", "days": 2}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n'
        "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    "deepseek": (
        '<｜tool▁call▁begin｜>probe_tool<｜tool▁sep｜>{"probe_key": "probe value"}<｜tool▁call▁end｜>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{"city": "Rome", "days": 2}<｜tool▁call▁end｜>'
        "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    "glm": (
        "<tool_call>probe_tool\n<arg_key>probe_key</arg_key>\n<arg_value>probe value</arg_value>\n</tool_call>",
        "<tool_call>get\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>\n<tool_call>now\n</tool_call>",
    ),
    "qwen-coder": (
        "<tool_call>\n<function=probe_tool>\n<parameter=probe_key>\nprobe value\n</parameter>\n</function>\n"
        "</tool_call>",
        "<tool_call>\n<function=get>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
    ),
    "seed": (
        "<seed:tool_call>\n<function=probe_tool>\n<parameter=probe_key>probe value</parameter>\n</function>\n"
        "</seed:tool_call>",
        "<seed:tool_call>\n<function=get>\n<parameter=city>Rome</parameter>\n<parameter=days>2</parameter>\n"
        "</function>\n</seed:tool_call><seed:tool_call>\n<function=now>\n</function>\n</seed:tool_call>",
    ),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="probe_tool">\n<parameter name="probe_key">probe value</parameter>\n'
        "</invoke>\n</minimax:tool_call>",
        '<minimax:tool_call>\n<invoke name="get">\n<parameter name="city">Rome</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>',
    ),
    "dsml": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="probe_tool">\n<｜DSML｜parameter name="probe_key" '
        'string="true">probe value</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get">\n<｜DSML｜parameter name="city" string="true">Rome'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        '<｜DSML｜invoke name="now">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    ),
    "hunyuan": (
        "<tool_calls:opensource>\n<tool_call:opensource>probe_tool<tool_sep:opensource>\n<arg_key:opensource>probe_key"
        "</arg_key:opensource>\n<arg_value:opensource>probe value</arg_value:opensource>\n</tool_call:opensource>\n"
        "</tool_calls:opensource>",
        "<tool_calls:opensource>\n<tool_call:opensource>get<tool_sep:opensource>\n<arg_key:opensource>city"
        "</arg_key:opensource>\n<arg_value:opensource>Rome</arg_value:opensource>\n<arg_key:opensource>days"
        "</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n</tool_call:opensource>\n"
        "<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
    ),
    "command": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "probe_tool", "parameters": '
        '{"probe_key": "probe value"}}\n]<|END_ACTION|>',
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get", "parameters": {"city": "Rome", "days": 2}}, '
        '{"tool_call_id": "1", "tool_name": "now", "parameters": {}}]<|END_ACTION|>',
    ),
    "gigachat": (
        '<|function_call|>{"name": "probe_tool", "arguments": {"probe_key": "probe value"}}<|message_sep|>',
        '<|function_call|>{"name": "get", "arguments": {"city": "Rome", "days": 2}}'
        '<|function_call|>{"name": "now", "arguments": {}}',
    ),
    "functionary": (
        '<function=probe_tool>{"probe_key": "probe value"}</function>',
        '<function=get>{"city": "Rome", "days": 2}</function><function=now>{}</function>',
    ),
    "lfm2": (
        "<|tool_call_start|>[probe_tool(probe_key='probe value')]<|tool_call_end|>",
        "<|tool_call_start|>[get(city='Rome', days=2), now()]<|tool_call_end|>",
    ),
    "gpt-oss": (
        '<|start|>assistant to=functions.probe_tool<|channel|>commentary json<|message|>{"probe_key": "probe value"}'
        "<|call|>",
        '<|channel|>commentary to=functions.get <|constrain|>json<|message|>{"city": "Rome", "days": 2}<|call|>'
        "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
    ),
}
NAMES = sorted(FAMILIES)


def form_of(name: str) -> ToolForm:
    form = find_form(FAMILIES[name][0])
    assert form is not None
    return form


def markers_of(form: ToolForm, *, tokens: bool) -> Markers:
    spellings = [*CHANNEL_MARKERS, *form.markers]
    return Markers(spellings, lambda text: 100 + spellings.index(text) if tokens else None)


def read(
    form: ToolForm,
    text: str,
    cuts: Sequence[int] = (),
    *,
    tokens: bool = True,
    written: bool = True,
    **kinds: Any,
) -> tuple[str, list[tuple[str | None, Any]]]:
    """The text and the calls. Unless ``written``, markers in ``text`` are spelled out by ordinary tokens."""
    known = markers_of(form, tokens=tokens)
    parser = ReplyParser(known, form, TOOLS, **kinds)
    stream = known.written(text) if written else text
    bounds = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [piece for begin, end in pairwise(bounds) for piece in parser.push(stream[begin:end])]
    pieces += [] if parser.over else parser.finish(ended=True)
    said = "".join(piece.text for piece in pieces if isinstance(piece, Content))
    calls: dict[int, tuple[str | None, str]] = {}
    for piece in pieces:
        if isinstance(piece, CallPiece):
            name, arguments = calls.get(piece.index, (piece.name, ""))
            calls[piece.index] = (name, arguments + piece.arguments)
    return said, [(name, json.loads(arguments)) for name, arguments in calls.values()]


BOTH: list[Any] = [("get", {"city": "Rome", "days": 2}), ("now", {})]


@pytest.mark.parametrize("name", NAMES)
def test_two_calls_are_read_however_they_are_cut(name: str) -> None:
    form, text = form_of(name), FAMILIES[name][1]
    for tokens in (True, False) if name != "gpt-oss" else (True,):
        assert read(form, text, tokens=tokens) == ("", BOTH)
        for cut in range(len(text)):
            assert read(form, text, [cut], tokens=tokens) == ("", BOTH), cut
        assert read(form, text, list(range(len(text))), tokens=tokens) == ("", BOTH)
    assert read(form, f"I look. {text}")[0] == "I look."
    assert read(form, text, parallel=False) == ("", BOTH[:1])


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_streamed(name: str) -> None:
    form = form_of(name)
    known = markers_of(form, tokens=True)
    parser = ReplyParser(known, form, TOOLS)
    text = known.written(FAMILIES[name][1])
    before = [piece for piece in parser.push(text[: text.index("Rome") + 4]) if isinstance(piece, CallPiece)]
    if form.kind == "python":
        assert before == [], "such a call is reported as a whole"
        return
    assert before[0].name == "get"
    assert "".join(piece.arguments for piece in before).replace(" ", "").startswith('{"city":"Rome')


@given(st.sampled_from(NAMES), st.data())
def test_text_that_spells_a_call_is_no_call(name: str, data: st.DataObject) -> None:
    """Where the vocabulary has the opening marker as a token, text from a page or a user cannot forge it."""
    form, text = form_of(name), FAMILIES[name][1]
    if not markers_of(form, tokens=True).has_tokens(form.open):
        return
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=4))
    said, calls = read(form, f"A {text} B", cuts, written=False)
    assert calls == []
    assert "Rome" in said and said.startswith("A") and said.endswith("B")


@given(st.sampled_from(NAMES), st.sampled_from(["gat", "", "get\n x", "__import__", "probe_tool", "ge t"]))
def test_a_call_of_no_tool_is_text(name: str, other: str) -> None:
    form = form_of(name)
    text = FAMILIES[name][0].replace("probe_tool", other).replace("functions.:0", "functions.x:0")
    said, calls = read(form, text)
    assert calls == []
    assert "probe value" in said


@given(st.sampled_from(NAMES), st.data())
def test_garbage_ends_as_text_or_as_a_malformed_call(name: str, data: st.DataObject) -> None:
    form, text = form_of(name), FAMILIES[name][1]
    pieces = [
        *form.markers,
        "get",
        "now",
        "{",
        "}",
        '"',
        "(",
        ")",
        "=",
        "\n",
        ",",
        "]",
        "\\",
        text[:60],
        "'",
        "é",
    ]
    garbage = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=30)))
    try:
        _, calls = read(form, garbage, data.draw(st.lists(st.integers(0, 80), max_size=3)))
    except (MalformedCallError, json.JSONDecodeError):  # the latter: cut off by the end
        return
    assert all(made in TOOLS and isinstance(arguments, dict) for made, arguments in calls)


TAGGED = [name for name in NAMES if form_of(name).kind == "tagged"]


@given(
    st.sampled_from(TAGGED),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).map(lambda text: text + "."),
    st.lists(st.integers(0, 200), max_size=3),
)
def test_texts_between_tags_are_taken_as_they_are(name: str, city: str, cuts: list[int]) -> None:
    form = form_of(name)
    if form.argument[2] in city:
        return
    text = FAMILIES[name][1].replace(
        "Rome", "\n" + city if city[0] == "\n" and name != "qwen-coder" else city
    )
    assert read(form, text, cuts)[1][0] == ("get", {"city": city, "days": 2})


@pytest.mark.parametrize("name", TAGGED)
def test_values_between_tags_follow_the_schema(name: str) -> None:
    form = form_of(name)

    def value(key: str, text: str) -> Any:
        return read(
            form,
            FAMILIES[name][1]
            .replace("days", key)
            .replace(">2<", f">{text}<")
            .replace("\n2\n", f"\n{text}\n"),
        )[1][0][1][key]

    assert value("days", "-3") == -3
    assert value("unit", "7") == "7"
    assert value("deep", '{"a": [1]}') == {"a": [1]}
    assert value("deep", "[1") == "[1"
    assert value("other", "true") is True
    assert value("other", "hello") == "hello"


@pytest.mark.parametrize("name", NAMES)
def test_the_grammar_allows_what_is_read(name: str) -> None:
    form = form_of(name)
    tools = [Tool("get", "", SCHEMA), Tool("now")]
    plain = Markers((), lambda _: None)
    made = tool_grammar(form, plain, tools, parallel=True, opened=False)
    text = FAMILIES[name][1]
    if form.also_open:
        text = text.replace(
            "<|start|>assistant to=functions.now<|channel|>commentary json",
            f"{form.open}now <|constrain|>json",
        )
    if name == "mistral-ids":
        return  # the ids may be left out
    text = re.sub(r'"tool_call_id": "\d", ', "", text).replace(":1<", ":0<").replace("'", '"')
    text = (
        text
        if not form.section or form.section[0] in text or len(form.section) == 1
        else form.section[0] + text
    )
    assert takes(made, text)
    assert not takes(made, text.replace("get", "gat"))
    assert not takes(made, text.replace("days", "weeks"))
    assert not takes(made, text.replace("2", "two"))
    single = tool_grammar(form, plain, tools, parallel=False, opened=False)
    assert not takes(single, text)


def test_the_channels_of_gpt_oss_are_no_text() -> None:
    form = form_of("gpt-oss")
    text = (
        "<|channel|>analysis<|message|>The user wants weather.<|end|><|start|>assistant<|channel|>commentary<|message|>"
        "I look.<|end|><|start|>assistant<|channel|>final<|message|>It is warm."
    )
    known = markers_of(form, tokens=True)
    for tools in (TOOLS, {}):
        for cut in range(len(text)):
            parser = ReplyParser(known, form, tools)
            stream = known.written(text)
            pieces = [*parser.push(stream[:cut]), *parser.push(stream[cut:]), *parser.finish(ended=True)]
            assert (
                "".join(piece.text for piece in pieces if isinstance(piece, Content)) == "I look.It is warm."
            )
    spelled = ReplyParser(known, form, TOOLS)
    pieces = [*spelled.push(text), *spelled.finish(ended=True)]
    assert "The user wants" in "".join(piece.text for piece in pieces if isinstance(piece, Content))
