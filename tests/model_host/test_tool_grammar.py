"""Grammars for tool calls, judged by llama.cpp: what they take, and what not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from model_host.grammar import check_grammar
from model_host.markers import Markers
from model_host.protocol import Tool
from model_host.tool_forms import ToolForm
from model_host.tool_grammar import ToolGrammarError, tool_grammar
from tests.model_host.test_json_schema import Acceptor

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


@pytest.fixture(scope="module")
def acceptor(tiny_model: Path) -> Iterator[Acceptor]:
    made = Acceptor(tiny_model)
    yield made
    made.close()


def grammar(form: ToolForm, *tools: Tool, parallel: bool = True, opened: bool = False) -> str:
    made = tool_grammar(form, NO_TOKENS, tools, parallel=parallel, opened=opened)
    check_grammar(made)
    return made


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
def test_gemma_arguments(acceptor: Acceptor, arguments: str, taken: bool) -> None:
    assert acceptor.takes(grammar(GEMMA, Tool("get", "", SCHEMA)), gemma(arguments)) is taken


def test_schemas_that_refer_to_themselves_or_choose(acceptor: Acceptor) -> None:
    node = {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}]}
    schema = {"properties": {"first": {"allOf": [{"$ref": "#/$defs/node"}]}}, "$defs": {"node": node}}
    made = grammar(GEMMA, Tool("get", "", schema, strict=True))
    for arguments in ("", "first:null", "first:{next:{next:null}}"):
        assert acceptor.takes(made, gemma(arguments)), arguments
    for arguments in ("first:1", "first:{next:{other:null}}"):
        assert not acceptor.takes(made, gemma(arguments)), arguments


def test_calls_one_after_the_other(acceptor: Acceptor) -> None:
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
        assert acceptor.takes(grammar(HERMES, *tools), text) is taken, text
        single = acceptor.takes(grammar(HERMES, *tools, parallel=False), text)
        assert single is (taken and text.count("<tool_call>") == 1), text
        opened = text.removeprefix("<tool_call>")
        if opened != text:
            assert acceptor.takes(grammar(HERMES, *tools, opened=True), opened) is taken, text


def test_a_call_without_markers_is_the_whole_reply(acceptor: Acceptor) -> None:
    made = grammar(LLAMA, Tool("get"))
    assert acceptor.takes(made, '{"name": "get", "parameters": {}}')
    assert not acceptor.takes(made, '{"name": "get", "parameters": {}}{"name": "get", "parameters": {}}')


ODD: list[tuple[dict[str, Any], str]] = [
    ({"properties": {"a": {"not": {}}}}, "`not`"),
    ({"properties": {"a": {"$ref": "http://x"}}}, "`$ref`"),
    ({"$ref": "#"}, "left-recursive"),
    ({"properties": {"a": {"type": "text"}}}, "`type`"),
    ({"properties": {"a": {"enum": []}}}, "`enum`"),
    ({"properties": []}, "`properties`"),
    ({"properties": {"a": {"type": "string", "minLength": -1}}}, "`minLength`"),
]


@pytest.mark.parametrize(("schema", "says"), ODD)
@pytest.mark.parametrize("form", [GEMMA, HERMES])
def test_what_cannot_be_enforced_is_any_object_or_refused(
    acceptor: Acceptor, form: ToolForm, schema: dict[str, Any], says: str
) -> None:
    loose = grammar(form, Tool("get", "", schema))
    text = (
        gemma("x:[1,{}]")
        if form is GEMMA
        else '<tool_call>{"name": "get", "arguments": {"x": 1}}</tool_call>'
    )
    assert acceptor.takes(loose, text)
    with pytest.raises(ToolGrammarError, match="tool get") as refused:
        grammar(form, Tool("get", "", schema, strict=True))
    assert says in str(refused.value)


def test_strict_enforces_all_or_nothing() -> None:
    schema = {"properties": {"a": {"type": "string", "pattern": "^a$", "title": "A"}}}
    grammar(GEMMA, Tool("get", "", schema))
    with pytest.raises(ToolGrammarError, match="`pattern` is not enforced"):
        grammar(GEMMA, Tool("get", "", schema, strict=True))
    grammar(HERMES, Tool("get", "", schema, strict=True))


def test_schemas_without_end_are_refused() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(500):
        deep = {"allOf": [deep]}
    with pytest.raises(ToolGrammarError, match="nested deeper"):
        grammar(GEMMA, Tool("get", "", deep, strict=True))
    wide = {"properties": {f"p{i}": {"enum": [f"{i}.{j}" for j in range(300)]} for i in range(10)}}
    with pytest.raises(ToolGrammarError, match="too large"):
        grammar(GEMMA, *(Tool(f"get{i}", "", wide) for i in range(128)))
