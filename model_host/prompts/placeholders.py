"""Placeholders for everything that people wrote, so that a chat template decides about form and never sees text. Pure.

Every string of a message, a tool or a tool call is replaced, but for the words that templates compare with: the
keywords and type names of JSON schemas. The numbers of the placeholders are in the alphabetical order of what they
stand for, so that a template that sorts gives the order it would give to the real text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from model_host.protocol import Message, Tool, ToolCall

# Private-use characters around digits: nothing that `upper`, `trim` or JSON would change.
OPEN, CLOSE = "\ue000", "\ue001"
# The worker's `tojson` puts one before each placeholder it meets: the text belongs in a JSON string, and is escaped.
ESCAPED = "\ue002"

MAX_FIELDS = 99_999
MAX_NESTING = 64

_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SCHEMAS = frozenset(
    {"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"}
)
_LISTS_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_DATA = frozenset({"enum", "const", "default", "examples", "required"})
_PLAIN = frozenset(
    [
        "type",
        "description",
        "title",
        "format",
        "pattern",
        "nullable",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "$ref",
        "$id",
        "$schema",
        "$comment",
        "strict",
        "deprecated",
        "readOnly",
        "writeOnly",
    ]
)
_KEYWORDS = _SCHEMAS_BY_NAME | _SCHEMAS | _LISTS_OF_SCHEMAS | _DATA | _PLAIN
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}

Leaf = Callable[[str], str]


class NestingError(ValueError):
    """A tool or its arguments are nested too deeply, or have too many strings."""


class Placeholder(Struct, frozen=True):
    """A placeholder in rendered text: of message ``index``, or of field ``index``.

    The text goes in escaped for a JSON string, ``escapes`` times.
    """

    body: bool
    index: int
    escapes: int


class Placeholders:
    """Marks for one rendering; ``nonce`` is a string of digits that the template cannot know."""

    def __init__(self, nonce: str, messages: Sequence[Message], tools: Sequence[Tool]) -> None:
        self._nonce = nonce
        found: set[str] = set()

        def note(text: str) -> str:
            found.add(text)
            return text

        for tool in tools:
            _tool(tool, note)
        for message in messages:
            _beside_content(message, note)
        if len(found) > MAX_FIELDS:
            raise NestingError(f"the tools and tool calls have more than {MAX_FIELDS} strings")
        # Jinja2's `dictsort` ignores case.
        self.fields = sorted(found, key=lambda text: (text.lower(), text))
        self._numbers = {text: number for number, text in enumerate(self.fields)}

    def tool(self, tool: Tool) -> dict[str, Any]:
        """A tool as templates know it, in OpenAI's shape."""
        return _tool(tool, self.field)

    def message(self, index: int, message: Message, *, empty: bool) -> dict[str, Any]:
        """A message as templates know it. Templates ask whether there is text beside a tool call: see ``empty``."""
        silent = empty and bool(message.tool_calls)
        content = "" if silent else f"{OPEN}{self._nonce}.1.{index:05d}{CLOSE}"
        return {"role": message.role, "content": content, **_beside_content(message, self.field)}

    def field(self, text: str) -> str:
        """The placeholder of a string; the empty one stands for itself."""
        return f"{OPEN}{self._nonce}.0.{self._numbers[text]:05d}{CLOSE}" if text else text

    def number(self, text: str) -> int:
        """The index of a field."""
        return self._numbers[text]


def cut(text: str, nonce: str) -> list[str | Placeholder]:
    """Rendered text, cut at its placeholders."""
    pattern = re.compile(f"({ESCAPED}*){OPEN}{nonce}\\.([01])\\.([0-9]{{5}}){CLOSE}")
    pieces: list[str | Placeholder] = []
    at = 0
    for match in pattern.finditer(text):
        if match.start() > at:
            pieces.append(text[at : match.start()])
        pieces.append(Placeholder(match[2] == "1", int(match[3]), len(match[1])))
        at = match.end()
    return [*pieces, text[at:]] if at < len(text) else pieces


def field_texts(message: Message) -> Iterator[str]:
    """The names and strings of a message's tool calls: what a template must not leave out."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    for call in message.tool_calls:
        found.append(call.name)
        _data(call.arguments, note)
    yield from (text for text in found if text)


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
        fields["tool_call_id"] = leaf(message.tool_call_id)
    if message.name is not None:
        fields["name"] = leaf(message.name)
    return fields


def _call(call: ToolCall, leaf: Leaf) -> dict[str, Any]:
    function = {"name": leaf(call.name), "arguments": _data(call.arguments, leaf)}
    return {"id": leaf(call.id), "type": "function", "function": function}


def _data(value: Any, leaf: Leaf, depth: int = 0) -> Any:
    """A JSON value; keys are people's text like the rest."""
    _check(depth)
    if isinstance(value, str):
        return leaf(value)
    if isinstance(value, list):
        return [_data(item, leaf, depth + 1) for item in value]
    if isinstance(value, dict):
        return {leaf(key): _data(item, leaf, depth + 1) for key, item in value.items()}
    return value


def _schema(value: Any, leaf: Leaf, depth: int = 0) -> Any:
    _check(depth)
    if not isinstance(value, dict):
        return _data(value, leaf, depth)
    made: dict[str, Any] = {}
    for key, inner in value.items():
        name = key if key in _KEYWORDS else leaf(key)
        if key in _SCHEMAS_BY_NAME and isinstance(inner, dict):
            made[name] = {leaf(k): _schema(v, leaf, depth + 1) for k, v in inner.items()}
        elif key in _LISTS_OF_SCHEMAS and isinstance(inner, list):
            made[name] = [_schema(item, leaf, depth + 1) for item in inner]
        elif key in _SCHEMAS:
            made[name] = _schema(inner, leaf, depth + 1)
        elif key == "type":
            made[name] = _types(inner, leaf, depth + 1)
        else:
            made[name] = _data(inner, leaf, depth + 1)
    return made


def _types(value: Any, leaf: Leaf, depth: int) -> Any:
    _check(depth)
    if isinstance(value, list):
        return [_types(item, leaf, depth + 1) for item in value]
    return value if isinstance(value, str) and value in _TYPES else _data(value, leaf, depth)


def _check(depth: int) -> None:
    if depth > MAX_NESTING:
        raise NestingError(f"a tool or its arguments are nested deeper than {MAX_NESTING} levels")
