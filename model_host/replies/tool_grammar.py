"""Grammars of tool calls: of what follows an opening marker, or of a whole reply that must be calls. Pure.

Names are those of the tools, and arguments follow their schemas. Keywords that :mod:`model_host.grammar.schema` does
not support are an error for a ``strict`` tool and ignored otherwise; then an invalid schema allows any object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from model_host.grammar.gbnf.program import MAX_STEPS, Program
from model_host.grammar.gbnf.syntax import (
    Alternatives,
    Concatenation,
    GrammarError,
    Literal,
    Node,
    Repeat,
    Rules,
    Token,
    either,
    optional,
    row,
)
from model_host.grammar.gbnf.syntax import Reference as Rule
from model_host.grammar.schema.converter import schema_to_grammar
from model_host.grammar.schema.notation import GemmaNotation, JsonNotation, PlainNotation
from model_host.protocol import Tool
from model_host.replies.argument_values import is_text
from model_host.replies.markers import Markers
from model_host.replies.tool_forms import ToolForm

_SPACE = optional("\n")
_COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})  # what they refer to names the type


def tool_grammar(
    form: ToolForm, markers: Markers, tools: Sequence[Tool], *, parallel: bool, opened: bool
) -> Program:
    """The grammar of one call of ``tools``, or with ``parallel`` of one or more.

    ``opened``: the text begins behind the first opening marker. Raises GrammarError.
    """
    rules: Rules = {}
    calls: list[Node] = []
    inside: Node
    steps = 0
    notation = (
        GemmaNotation(form.quote, markers.tokens.get(form.quote)) if form.kind == "gemma" else JsonNotation()
    )
    for number, tool in enumerate(tools):
        prefix = f"t{number}-"
        if form.kind == "tagged":
            inside, made = _tagged(form, markers, tool, prefix)
        elif form.kind == "python":
            inside, made = _keywords(tool, prefix)
        else:
            arguments = _arguments(notation, tool, prefix)
            inside, made = Rule(f"{prefix}root"), [arguments]
        for each in made:
            rules |= each.rules
        calls.append(_call(form, markers, tool.name, inside))
        steps += sum(len(each.kinds) for each in made)
        if steps > MAX_STEPS:
            raise GrammarError(
                "the parameters of the tools are too large to be enforced; send fewer tools or simpler ones"
            )
    space = _SPACE if form.kind != "gemma" and form.open else row()
    start = _text(form.open, markers)
    call: Node = Rule("call")
    rules["call"] = row(space, either(calls), space, _text(form.close, markers))
    more = row()
    if form.listed:
        more = row(Repeat(row(",", optional(" "), call)) if parallel else row(), "]")
        call = row("[", call)
    elif parallel and form.open:
        more = Repeat(row(space, start, call))
    end = _text(form.section[-1], markers) if form.section else row()
    begin = _text(form.section[0], markers) if len(form.section) > 1 else row()
    tail = row(more, space, end) if form.section else more
    rules["root"] = row(call, tail) if opened else row(begin, space, start, call, tail)
    return Program(rules)


def _call(form: ToolForm, markers: Markers, name: str, arguments: Node) -> Node:
    if form.kind == "gemma":
        return row(f"call:{name}", arguments)
    if form.kind == "json":
        return row(f'{{"{form.name_key}": "{name}", "{form.key}": ', arguments, "}")
    if form.kind == "python":
        return row(f"{name}(", arguments, ")")
    before, behind = (_text(text, markers) for text in form.name)
    return row(before, name, behind, _SPACE, arguments)


def _keywords(tool: Tool, prefix: str) -> tuple[Node, list[Program]]:
    """``KEY=value, …``, the required ones first, with the grammars of the values."""
    pairs, made = [], []
    required = tool.parameters.get("required", [])
    for number, (name, schema) in enumerate(_properties(tool)):
        made.append(_schema(JsonNotation(), tool, schema, {}, f"{prefix}{number}-"))
        pairs.append((name in required, row(f"{name}=", Rule(f"{prefix}{number}-root"))))
    pairs.sort(key=lambda pair: not pair[0])
    node: Node = row()
    for number, (needed, pair) in reversed([*enumerate(pairs)]):
        comma = ", " if number and pairs[0][0] else ""
        node = row(comma, pair, node) if needed else optional(comma, pair, node if comma else row())
    return node, made


def _renamed(program: Program, prefix: str) -> Program:
    """The same with ``prefix`` before the names of all rules, so that the notation's own do not meet JSON's."""

    def new(name: str) -> str:
        return name if name.startswith(prefix) else prefix + name

    def node(old: Node) -> Node:
        match old:
            case Rule():
                return Rule(new(old.rule))
            case Concatenation() | Alternatives():
                return type(old)(tuple(map(node, old.items)))
            case Repeat():
                return Repeat(node(old.item), old.least, old.most)
        return old

    return Program({new(name): node(old) for name, old in program.rules.items()}, f"{prefix}root")


def _properties(tool: Tool) -> list[tuple[str, Any]]:
    """The parameters and their schemas, with the definitions that these refer to. Raises GrammarError as others do."""
    if tool.strict:
        _arguments(JsonNotation(), tool, "")
    properties = tool.parameters.get("properties")
    shared = {key: tool.parameters[key] for key in ("$defs", "definitions") if key in tool.parameters}
    return [
        (name, {**schema, **shared} if isinstance(schema, dict) else schema)
        for name, schema in (properties.items() if isinstance(properties, dict) else ())
    ]


def _tagged(form: ToolForm, markers: Markers, tool: Tool, prefix: str) -> tuple[Node, list[Program]]:
    """The arguments of a call, each between tags, and the grammars of those that are not plain text."""
    key_open, close = (_text(text, markers) for text in form.argument[::2])
    as_json = form.argument[1].replace('"true"', '"false"')
    required = tool.parameters.get("required", [])
    made: list[Program] = []
    found: list[Node] = []
    for number, (name, schema) in enumerate(_properties(tool)):
        inner = f"{prefix}{number}-"
        if is_text(schema):
            plain = PlainNotation(form.argument[2], markers.tokens.get(form.argument[2]))
            made.append(_renamed(_schema(plain, tool, schema, {"type": "string"}, inner), inner))
            value: Node = Rule(f"{inner}root")
        else:
            made.append(_schema(JsonNotation(), tool, schema, {}, inner))
            value = row(_SPACE, Rule(f"{inner}root"), _SPACE)
        key_close = _text(form.argument[1] if is_text(schema) else as_json, markers)
        pair = row(key_open, name, key_close, value, close, _SPACE)
        found.append(pair if name in required else optional(pair))
    return row(*found), made


def _arguments(notation: JsonNotation, tool: Tool, prefix: str) -> Program:
    """The grammar of a tool's arguments; ``prefix`` begins the names of its rules."""
    schema = tool.parameters or {"type": "object", "properties": {}, "additionalProperties": False}
    if _COMBINERS.isdisjoint(schema):
        schema = {"type": "object", **schema}
    return _schema(notation, tool, schema, {"type": "object"}, prefix)


def _schema(notation: JsonNotation, tool: Tool, schema: Any, instead: Any, prefix: str) -> Program:
    """The grammar of ``schema``; of ``instead`` if it cannot be used and the tool is not strict."""
    try:
        return schema_to_grammar(schema, notation, lenient=not tool.strict, prefix=prefix)
    except GrammarError as error:
        if tool.strict:
            raise GrammarError(f"the parameters of the tool {tool.name}: {error}") from None
        return schema_to_grammar(instead, notation, prefix=prefix)


def _text(text: str, markers: Markers) -> Node:
    """``text`` with its markers as tokens, and with a line break or nothing for its white space."""
    nodes: list[Node] = []
    for piece in re.split(r"(\s+)", text):
        if piece.isspace() and piece != " ":
            nodes.append(_SPACE)
            continue
        for part in (
            re.split(f"({'|'.join(map(re.escape, markers.tokens))})", piece) if markers.tokens else [piece]
        ):
            if part:
                nodes.append(Token(markers.tokens[part]) if part in markers.tokens else Literal(part))
    return row(*nodes)
