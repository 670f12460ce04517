"""GBNF for tool calls: what follows an opening marker, or a whole reply that must be calls. Pure.

Names are always those of the tools, and arguments follow their schemas. What :mod:`model_host.grammar.schema` does
not support
is refused for a tool that is ``strict``, and else left out; a schema that makes no sense leaves any well-formed object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from model_host.grammar.gbnf.syntax import GrammarError, Range, others
from model_host.grammar.schema.converter import schema_to_grammar
from model_host.grammar.schema.gemma_notation import GemmaNotation, Quoting
from model_host.grammar.schema.json_notation import JsonNotation
from model_host.grammar.schema.notation import character_set, literal
from model_host.grammar.schema.rules import MAX_GRAMMAR_CHARACTERS
from model_host.protocol import Tool
from model_host.replies.markers import Markers
from model_host.replies.tool_forms import ToolForm

# Literals and character classes stay; the names of rules get a prefix.
_NAME = re.compile(r"""("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|!?<\[[0-9]+\]>)|([A-Za-z][A-Za-z0-9-]*)""")

_ELSEWHERE = frozenset({"$ref", "allOf", "anyOf", "oneOf"})  # there the type is said within


def tool_grammar(
    form: ToolForm, markers: Markers, tools: Sequence[Tool], *, parallel: bool, opened: bool
) -> str:
    """GBNF with the rule ``root`` for calls of ``tools``: one, or with ``parallel`` one or more.

    ``opened``: the first opening marker is there already. Raises GrammarError.
    """
    rules: list[str] = []
    calls = []
    room = MAX_GRAMMAR_CHARACTERS
    for number, tool in enumerate(tools):
        rules.append(_prefixed(_arguments(form, markers, tool), f"t{number}-"))
        calls.append(_call(form, tool.name, f"t{number}-root"))
        room -= len(rules[-1])
        if room < 0:
            raise GrammarError(
                "the parameters of the tools are too large to be enforced; send fewer tools or simpler ones"
            )
    start, end = _marker(form.open, markers), _marker(form.close, markers)
    space = '"\\n"?' if form.kind == "json" and form.open else ""
    rules.append(f"call ::= {space} ({' | '.join(calls)}) {space} {end}")
    more = f"({space} {start} call)*" if parallel and form.open else ""
    rules.append(f"root ::= {'' if opened else start} call {more}")
    return "\n".join(rules) + "\n"


def _call(form: ToolForm, name: str, arguments: str) -> str:
    if form.kind == "gemma":
        return f'"call:{name}" {arguments}'
    head = literal(f'{{"name": "{name}", "{form.key}": ')
    return f'{head} {arguments} "}}"'


def _arguments(form: ToolForm, markers: Markers, tool: Tool) -> str:
    """A grammar with the rule ``root`` for the arguments."""
    schema = tool.parameters or {"type": "object", "properties": {}, "additionalProperties": False}
    if _ELSEWHERE.isdisjoint(schema):
        schema = {"type": "object", **schema}
    notation = GemmaNotation(_quoting(form.quote, markers)) if form.kind == "gemma" else JsonNotation()
    try:
        return schema_to_grammar(schema, notation, lenient=not tool.strict)
    except GrammarError as error:
        if tool.strict:
            raise GrammarError(f"the parameters of the tool {tool.name}: {error}") from None
        return schema_to_grammar({"type": "object"}, notation)


def _marker(spelling: str, markers: Markers) -> str:
    token = markers.tokens.get(spelling)
    if token is not None:
        return f"<[{token}]>"
    return literal(spelling) if spelling else ""


def _quoting(quote: str, markers: Markers) -> Quoting:
    """Text has no quote marker in it. Where characters are counted it has not even the first one of a marker."""
    characters = _all_but(quote[0])
    token = markers.tokens.get(quote)
    if token is not None:
        return Quoting(quote, _marker(quote, markers), f"!<[{token}]>", characters)
    piece = f"({character_set(characters)} | {literal(quote[0])} {character_set(_all_but(quote[1]))})"
    return Quoting(quote, literal(quote), piece, characters)


def _all_but(character: str) -> tuple[Range, ...]:
    return others([(ord(character), ord(character))])


def _prefixed(grammar: str, prefix: str) -> str:
    return _NAME.sub(lambda match: match[1] or prefix + match[2], grammar)
