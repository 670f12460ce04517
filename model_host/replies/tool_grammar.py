"""Grammars of tool calls: of what follows an opening marker, or of a whole reply that must be calls. Pure.

Names are those of the tools, and arguments follow their schemas. Keywords that :mod:`model_host.grammar.schema` does
not support are an error for a ``strict`` tool and ignored otherwise; then an invalid schema allows any object.
"""

from __future__ import annotations

from collections.abc import Sequence

from model_host.grammar.gbnf.program import MAX_STEPS, Program
from model_host.grammar.gbnf.syntax import (
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
from model_host.grammar.schema.notation import GemmaNotation, JsonNotation
from model_host.protocol import Tool
from model_host.replies.markers import Markers
from model_host.replies.tool_forms import ToolForm

_COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})  # what they refer to names the type


def tool_grammar(
    form: ToolForm, markers: Markers, tools: Sequence[Tool], *, parallel: bool, opened: bool
) -> Program:
    """The grammar of one call of ``tools``, or with ``parallel`` of one or more.

    ``opened``: the text begins behind the first opening marker. Raises GrammarError.
    """
    rules: Rules = {}
    calls: list[Node] = []
    steps = 0
    notation = (
        GemmaNotation(form.quote, markers.tokens.get(form.quote)) if form.kind == "gemma" else JsonNotation()
    )
    for number, tool in enumerate(tools):
        arguments = _arguments(notation, tool, f"t{number}-")
        rules |= arguments.rules
        calls.append(_call(form, tool.name, Rule(f"t{number}-root")))
        steps += len(arguments.kinds)
        if steps > MAX_STEPS:
            raise GrammarError(
                "the parameters of the tools are too large to be enforced; send fewer tools or simpler ones"
            )
    space = optional("\n") if form.kind == "json" and form.open else row()
    start, call = _marker(form.open, markers), Rule("call")
    rules["call"] = row(space, either(calls), space, _marker(form.close, markers))
    more = Repeat(row(space, start, call)) if parallel and form.open else row()
    rules["root"] = row(call, more) if opened else row(start, call, more)
    return Program(rules)


def _call(form: ToolForm, name: str, arguments: Node) -> Node:
    if form.kind == "gemma":
        return row(f"call:{name}", arguments)
    return row(f'{{"name": "{name}", "{form.key}": ', arguments, "}")


def _arguments(notation: JsonNotation, tool: Tool, prefix: str) -> Program:
    """The grammar of a tool's arguments; ``prefix`` begins the names of its rules."""
    schema = tool.parameters or {"type": "object", "properties": {}, "additionalProperties": False}
    if _COMBINERS.isdisjoint(schema):
        schema = {"type": "object", **schema}
    try:
        return schema_to_grammar(schema, notation, lenient=not tool.strict, prefix=prefix)
    except GrammarError as error:
        if tool.strict:
            raise GrammarError(f"the parameters of the tool {tool.name}: {error}") from None
        return schema_to_grammar({"type": "object"}, notation, prefix=prefix)


def _marker(spelling: str, markers: Markers) -> Node:
    token = markers.tokens.get(spelling)
    return Literal(spelling) if token is None else Token(token)
