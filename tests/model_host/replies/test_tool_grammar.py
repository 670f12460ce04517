"""Grammars of tool calls: the texts that they allow and reject."""

from __future__ import annotations

from typing import Any

import pytest

from model_host.grammar.gbnf.program import Program
from model_host.grammar.gbnf.syntax import GrammarError
from model_host.protocol import Tool
from model_host.replies.markers import Markers
from model_host.replies.tool_forms import ToolForm
from model_host.replies.tool_grammar import tool_grammar
from tests.model_host.grammar.gbnf.sentences import takes

GEMMA = ToolForm("gemma", "<|tool_call>", "<tool_call|>", quote='<|"|>')
HERMES = ToolForm("json", "<tool_call>", "</tool_call>", key="arguments")
LLAMA = ToolForm("json", key="parameters")
NO_TOKENS = Markers((), lambda _: None)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "unit": {"enum": ["C", "K", 3]},
        "b c": {"type": "array", "items": {"type": ["boolean", "null"]}},
        "city": {"type": "string", "minLength": 2, "maxLength": 4},
        "deep": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 2}}, "required": ["n"]},
    },
    "required": ["city"],
}


def grammar(form: ToolForm, *tools: Tool, parallel: bool = True, opened: bool = False) -> Program:
    return tool_grammar(form, NO_TOKENS, tools, parallel=parallel, opened=opened)


def hermes(arguments: str) -> str:
    return f'<tool_call>{{"name": "get", "arguments": {arguments}}}</tool_call>'


def gemma(arguments: str) -> str:
    return "<|tool_call>call:get{" + arguments + "}<tool_call|>"


@pytest.mark.parametrize(
    ("arguments", "taken"),
    [
        ('city:<|"|>Rom<|"|>', True),
        ('<|"|>b c<|"|>:[true,null],city:<|"|>Rom<|"|>,deep:{n:2},unit:<|"|>K<|"|>', True),
        ('city:<|"|>Rom<|"|>,unit:3', True),
        ("", False),
        ('city:<|"|>R<|"|>', False),
        ('city:<|"|>Vienna<|"|>', False),
        ("city:Rom", False),
        ('unit:3,city:<|"|>Rom<|"|>', False),
        ('city:<|"|>Rom<|"|>,unit:4', False),
        ('city:<|"|>Rom<|"|>,deep:{}', False),
        ('city:<|"|>Rom<|"|>,deep:{n:1}', False),
        ('city:<|"|>Rom<|"|>,other:1', False),
        ('city:<|"|>Rom<|"|>}', False),
    ],
)
def test_gemma_arguments(arguments: str, taken: bool) -> None:
    assert takes(grammar(GEMMA, Tool("get", "", SCHEMA)), gemma(arguments)) is taken


def test_schemas_that_refer_to_themselves_or_choose() -> None:
    node = {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}]}
    schema = {"properties": {"first": {"allOf": [{"$ref": "#/$defs/node"}]}}, "$defs": {"node": node}}
    made = grammar(GEMMA, Tool("get", "", schema, strict=True))
    for arguments in ("", "first:null", "first:{next:{next:null}}"):
        assert takes(made, gemma(arguments)), arguments
    for arguments in ("first:1", "first:{next:{other:null}}"):
        assert not takes(made, gemma(arguments)), arguments


def test_calls_one_after_the_other() -> None:
    tools = [Tool("get"), Tool("set", "", {"properties": {"a": {"type": "integer"}}, "required": ["a"]})]
    get, put = '{"name": "get", "arguments": {}}', '{"name": "set", "arguments": {"a": 5}}'
    calls = {
        f"<tool_call>\n{get}\n</tool_call>": True,
        f"<tool_call>\n{get}\n</tool_call>\n<tool_call>\n{put}\n</tool_call>": True,
        f"<tool_call>{put}</tool_call>": True,
        f"Well: <tool_call>{put}</tool_call>": False,
        f"<tool_call>{put}": False,
        f"<tool_call>{put}</tool_call> Done": False,
        "<tool_call>" + get.replace("get", "set") + "</tool_call>": False,
        "<tool_call>" + get.replace("get", "other") + "</tool_call>": False,
        "": False,
    }
    for text, taken in calls.items():
        assert takes(grammar(HERMES, *tools), text) is taken, text
        single = takes(grammar(HERMES, *tools, parallel=False), text)
        assert single is (taken and text.count("<tool_call>") == 1), text
        opened = text.removeprefix("<tool_call>")
        if opened != text:
            assert takes(grammar(HERMES, *tools, opened=True), opened) is taken, text


def test_a_call_without_markers_is_the_whole_reply() -> None:
    made = grammar(LLAMA, Tool("get"))
    assert takes(made, '{"name": "get", "parameters": {}}')
    assert not takes(made, '{"name": "get", "parameters": {}}{"name": "get", "parameters": {}}')


ODD: list[tuple[dict[str, Any], str]] = [
    ({"properties": {"a": {"$ref": "http://x"}}}, "(at #/properties/a/$ref)"),
    ({"$ref": "#"}, "refers to itself"),
    ({"properties": {"a": {"type": "text"}}}, "the type"),
    ({"properties": {"a": {"enum": []}}}, "(at #/properties/a/enum)"),
    ({"properties": []}, "`properties`"),
    ({"properties": {"a": {"type": "string", "minLength": -1}}}, "`minLength`"),
]


@pytest.mark.parametrize(("schema", "says"), ODD)
@pytest.mark.parametrize("form", [GEMMA, HERMES])
def test_what_makes_no_sense_is_any_object_or_refused(
    form: ToolForm, schema: dict[str, Any], says: str
) -> None:
    loose = grammar(form, Tool("get", "", schema))
    text = gemma("x:[1,{}]") if form is GEMMA else hermes('{"x": 1}')
    assert takes(loose, text)
    with pytest.raises(GrammarError, match="tool get") as refused:
        grammar(form, Tool("get", "", schema, strict=True))
    assert says in str(refused.value)


def test_strict_enforces_all_or_nothing() -> None:
    enforced = {"properties": {"a": {"type": "string", "pattern": "^[a<]$", "title": "A"}}, "required": ["a"]}
    for form, good, bad in (
        (GEMMA, gemma('a:<|"|>a<|"|>'), gemma('a:<|"|><<|"|>')),
        (HERMES, hermes('{"a": "<"}'), hermes('{"a": "b"}')),
    ):
        made = grammar(form, Tool("get", "", enforced, strict=True))
        assert takes(made, good) and not takes(made, bad)
    partly = {"properties": {"a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}}}
    for form, good, bad in (
        (GEMMA, gemma("a:[1,1]"), gemma("a:[null]")),
        (HERMES, hermes('{"a": [1, 1]}'), hermes('{"a": [null]}')),
    ):
        with pytest.raises(GrammarError, match=r"tool get: .*`uniqueItems`, which is not supported"):
            grammar(form, Tool("get", "", partly, strict=True))
        made = grammar(form, Tool("get", "", partly))
        assert takes(made, good) and not takes(made, bad)


def test_gemma_constants_and_names_of_any_kind() -> None:
    schema = {
        "properties": {"c": {"const": {"b": ["x", 1], "a b": None}}, "a": {"type": "integer"}},
        "required": ["c"],
        "additionalProperties": {"type": "boolean"},
    }
    made = grammar(GEMMA, Tool("get", "", schema, strict=True))
    constant = 'c:{<|"|>a b<|"|>:null,b:[<|"|>x<|"|>,1]}'
    for text in (constant, f"a:3,{constant}", f"{constant},aa:true,d:false"):
        assert takes(made, gemma(text)), text
    for text in ("a:3", f"{constant},a:true", f"{constant},d:1"):
        assert not takes(made, gemma(text)), text
    with pytest.raises(GrammarError, match="quote marker"):
        grammar(GEMMA, Tool("get", "", {"properties": {"a": {"const": 'x<|"|>y'}}}, strict=True))


def test_schemas_without_end_are_refused() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(500):
        deep = {"allOf": [deep]}
    with pytest.raises(GrammarError, match=r"nested (deeper|too deeply)"):
        grammar(GEMMA, Tool("get", "", deep, strict=True))
    wide = {"properties": {f"p{i}": {"enum": [f"{i}.{j}" for j in range(300)]} for i in range(10)}}
    with pytest.raises(GrammarError, match="too large"):
        grammar(GEMMA, *(Tool(f"get{i}", "", wide) for i in range(128)))
