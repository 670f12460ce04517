"""GBNF for tool calls: what follows an opening marker, or a whole reply that must be calls. Pure.

Names are always those of the tools. In JSON forms the arguments follow the tool's schema, in Gemma's form as far as
:mod:`model_host.gemma_schema` has it. A schema that cannot be expressed leaves its tool with any well-formed object,
unless the tool is ``strict``: then the request is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from model_host.gbnf.check import check
from model_host.gbnf.parser import parse
from model_host.gbnf.syntax import GrammarError
from model_host.gemma_schema import Quoting, gemma_arguments
from model_host.json_schema import schema_to_grammar
from model_host.json_text import literal
from model_host.markers import Markers
from model_host.protocol import Tool
from model_host.tool_forms import ToolForm

# Literals and character classes stay; the names of rules get a prefix.
_NAME = re.compile(r"""("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|!?<\[[0-9]+\]>)|([A-Za-z][A-Za-z0-9-]*)""")

MAX_GRAMMAR_CHARACTERS = 2**19  # reading more would keep others waiting for seconds
_ELSEWHERE = frozenset({"$ref", "allOf", "anyOf", "oneOf"})  # there the type is said within


class ToolGrammarError(GrammarError):
    """The parameters of a strict tool cannot be enforced."""


def tool_grammar(
    form: ToolForm, markers: Markers, tools: Sequence[Tool], *, parallel: bool, opened: bool
) -> str:
    """GBNF with the rule ``root`` for calls of ``tools``: one, or with ``parallel`` one or more.

    ``opened``: the first opening marker is there already. Raises ToolGrammarError.
    """
    rules: list[str] = []
    calls = []
    room = MAX_GRAMMAR_CHARACTERS
    for number, tool in enumerate(tools):
        rules.append(_prefixed(_arguments(form, markers, tool), f"t{number}-"))
        calls.append(_call(form, tool.name, f"t{number}-root"))
        room -= len(rules[-1])
        if room < 0:
            raise ToolGrammarError(
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
    try:
        grammar = _from_schema(form, markers, schema, strict=tool.strict)
        check(parse(grammar))
    except GrammarError as error:
        if tool.strict:
            raise ToolGrammarError(f"the parameters of the tool {tool.name}: {error}") from None
        return _from_schema(form, markers, {"type": "object"}, strict=False)
    return grammar


def _from_schema(form: ToolForm, markers: Markers, schema: dict[str, Any], *, strict: bool) -> str:
    if form.kind == "gemma":
        return gemma_arguments(schema, _quoting(form.quote, markers), strict=strict)
    return schema_to_grammar(schema)


def _marker(spelling: str, markers: Markers) -> str:
    token = markers.tokens.get(spelling)
    if token is not None:
        return f"<[{token}]>"
    return literal(spelling) if spelling else ""


def _quoting(quote: str, markers: Markers) -> Quoting:
    """Text has no quote marker in it. Where characters are counted it has not even the first one of a marker."""
    character = _any_but(quote[0])
    token = markers.tokens.get(quote)
    if token is not None:
        return Quoting(_marker(quote, markers), f"!<[{token}]>", character)
    return Quoting(literal(quote), f"({character} | {literal(quote[0])} {_any_but(quote[1])})", character)


def _any_but(ascii_character: str) -> str:
    """Every other character that Unicode has: a negated class would take bytes that are none."""
    code = ord(ascii_character)
    return rf"[\x01-\x{code - 1:02X}\x{code + 1:02X}-\uD7FF\uE000-\U0010FFFF]"


def _prefixed(grammar: str, prefix: str) -> str:
    return _NAME.sub(lambda match: match[1] or prefix + match[2], grammar)
