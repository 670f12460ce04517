"""Placeholders for user text, so that a chat template sees the form of a prompt but none of its text. Pure.

Every string of a message, a tool or a tool call is replaced, except for the words that templates compare with: the
keywords and type names of JSON schemas. Placeholders are numbered in the alphabetical order of their texts, so that a
template that sorts them gets the order of the texts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from model_host.protocol import Message, Tool, ToolCall
from model_host.replies.tool_forms import LFM2_FORM

# Private-use characters around digits: nothing that `upper`, `trim` or JSON would change.
OPEN, CLOSE = "\ue000", "\ue001"
# The worker's `tojson` puts one before each placeholder: the text goes into a JSON string, and must be escaped.
ESCAPED = "\ue002"

MAX_FIELDS = 99_999
MAX_NESTING = 64

_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SCHEMA_KEYWORDS = """
items additionalItems additionalProperties not contains propertyNames if then else anyOf oneOf allOf prefixItems
"""
_SCHEMAS = frozenset(_SCHEMA_KEYWORDS.split())
_OTHER_KEYWORDS = """
type description title format pattern nullable minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength
maxLength minItems maxItems uniqueItems minProperties maxProperties enum const default examples required strict
deprecated readOnly writeOnly $ref $id $schema $comment
"""
_KEYWORDS = _SCHEMAS_BY_NAME | _SCHEMAS | frozenset(_OTHER_KEYWORDS.split())
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}

Leaf = Callable[[str], str]  # replaces a string


class NestingError(ValueError):
    """A tool or its arguments are nested too deeply, or have too many strings."""


class Placeholder(Struct, frozen=True):
    """A placeholder in rendered text: the body of message ``index``, or field ``index``.

    Its text must be escaped for a JSON string ``escapes`` times.
    """

    body: bool
    index: int
    escapes: int


class Placeholders:
    """The placeholders of one rendering. ``nonce`` is a string of digits that the template cannot know."""

    def __init__(self, nonce: str, messages: Sequence[Message], tools: Sequence[Tool]) -> None:
        self._nonce = nonce
        found: list[str] = []
        note = _recorder(found)
        for tool in tools:
            _tool(tool, note)
        for message in messages:
            _beside_content(message, note)
        # Jinja2's `dictsort` ignores case.
        self.fields = sorted(set(found), key=lambda text: (text.lower(), text))
        if len(self.fields) > MAX_FIELDS:
            raise NestingError(f"the tools and tool calls have more than {MAX_FIELDS} strings")
        self._numbers = {text: number for number, text in enumerate(self.fields)}

    def tool(self, tool: Tool) -> dict[str, Any]:
        """A tool as templates expect it, in OpenAI's shape."""
        return _tool(tool, self.field)

    def message(self, index: int, message: Message, *, empty: bool) -> dict[str, Any]:
        """A message as templates expect it. ``empty``: it has no text, which templates check beside tool calls."""
        silent = empty and bool(message.tool_calls)
        content = "" if silent else f"{OPEN}{self._nonce}.1.{index:05d}{CLOSE}"
        return {"role": message.role, "content": content, **_beside_content(message, self.field)}

    def field(self, text: str) -> str:
        """The placeholder of a string; the empty one is its own."""
        return f"{OPEN}{self._nonce}.0.{self._numbers[text]:05d}{CLOSE}" if text else text

    def number(self, text: str) -> int:
        return self._numbers[text]


def cut(text: str, nonce: str) -> list[str | Placeholder]:
    """Split rendered text at its placeholders."""
    pattern = re.compile(f"({ESCAPED}*){OPEN}{nonce}\\.([01])\\.([0-9]{{5}}){CLOSE}")
    pieces: list[str | Placeholder] = []
    at = 0
    for match in pattern.finditer(text):
        pieces += [text[at : match.start()], Placeholder(match[2] == "1", int(match[3]), len(match[1]))]
        at = match.end()
    return [piece for piece in [*pieces, text[at:]] if piece]


def lfm2_text(calls: Sequence[dict[str, Any]]) -> str:
    """The calls of a message in LFM2's form, for its templates that leave them to the message's text."""
    made = []
    for function in (call["function"] for call in calls):
        values = {
            key: json.dumps(value, ensure_ascii=False).replace(OPEN, ESCAPED + OPEN)
            for key, value in function["arguments"].items()
        }
        made.append(f"{function['name']}({', '.join(f'{key}={value}' for key, value in values.items())})")
    return f"{LFM2_FORM.open}[{', '.join(made)}]{LFM2_FORM.section[0]}"


def field_texts(message: Message) -> list[str]:
    """The names and strings of a message's tool calls, which a template must not leave out."""
    found: list[str] = []
    note = _recorder(found)
    for call in message.tool_calls:
        found.append(call.name)
        _data(call.arguments, note)
    return [text for text in found if text]


def _recorder(found: list[str]) -> Leaf:
    """A function that adds each string to ``found`` and returns it."""

    def note(text: str) -> str:
        found.append(text)
        return text

    return note


def _tool(tool: Tool, leaf: Leaf) -> dict[str, Any]:
    function = {
        "name": leaf(tool.name),
        "description": leaf(tool.description),
        "parameters": _schema(tool.parameters or _NO_PARAMETERS, leaf),
    }
    return {"type": "function", "function": function}


def _beside_content(message: Message, leaf: Leaf) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if message.tool_calls:
        fields["tool_calls"] = [_call(call, leaf) for call in message.tool_calls]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = _short(message.tool_call_id)
    if message.name is not None:
        fields["name"] = leaf(message.name)
    return fields


def _call(call: ToolCall, leaf: Leaf) -> dict[str, Any]:
    function = {"name": leaf(call.name), "arguments": _data(call.arguments, leaf)}
    return {"id": _short(call.id), "type": "function", "function": function}


def _short(call_id: str) -> str:
    """An id that says nothing of its text: Mistral's templates want nine letters and digits."""
    return hashlib.blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()[:9]


def _data(value: Any, leaf: Leaf, depth: int = 0, *, types: bool = False) -> Any:
    """A JSON value with its keys and strings replaced; with ``types``, all but the names of types."""
    _check(depth)
    if isinstance(value, str):
        return value if types and value in _TYPES else leaf(value)
    if isinstance(value, list):
        return [_data(item, leaf, depth + 1, types=types) for item in value]
    if isinstance(value, dict):
        return {leaf(key): _data(item, leaf, depth + 1) for key, item in value.items()}
    return value


def _schema(value: Any, leaf: Leaf, depth: int = 0) -> Any:
    _check(depth)
    if isinstance(value, list):
        return [
            _schema(item, leaf, depth) if isinstance(item, dict) else _data(item, leaf, depth)
            for item in value
        ]
    if not isinstance(value, dict):
        return _data(value, leaf, depth)
    made: dict[str, Any] = {}
    for key, inner in value.items():
        name = key if key in _KEYWORDS else leaf(key)
        if key in _SCHEMAS_BY_NAME and isinstance(inner, dict):
            made[name] = {leaf(k): _schema(v, leaf, depth + 1) for k, v in inner.items()}
        elif key in _SCHEMAS:
            made[name] = _schema(inner, leaf, depth + 1)
        else:
            made[name] = _data(inner, leaf, depth + 1, types=key == "type")
    return made


def _check(depth: int) -> None:
    if depth > MAX_NESTING:
        raise NestingError(f"a tool or its arguments are nested deeper than {MAX_NESTING} levels")
