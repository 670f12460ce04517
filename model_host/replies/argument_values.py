"""Values in the arguments of tool calls: which are plain text, and what JSON they are. Pure."""

from __future__ import annotations

import ast
import json
from typing import Any

import msgspec

_JSON_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


class MalformedCallError(ValueError):
    """The model wrote something that is not a tool call."""


def keyword_arguments(text: str) -> dict[str, Any]:
    """The arguments of ``(KEY=value, …)``, literals in Python's notation or JSON's. Raises MalformedCallError."""
    try:
        call = ast.parse(f"f{text}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise MalformedCallError("its arguments are not Python's") from None
    if not isinstance(call, ast.Call) or call.args:
        raise MalformedCallError("its arguments have no names")
    return {each.arg or "": _literal(each.value) for each in call.keywords}


def decoded(text: str, kind: Any, problem: str) -> Any:
    """The value of a JSON text. Raises MalformedCallError with ``problem`` if it is not of that kind."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise MalformedCallError(problem) from None


def is_text(schema: Any) -> bool:
    """Whether a schema allows strings only, which some models write without quotes."""
    if not isinstance(schema, dict):
        return False
    choices = schema.get("enum")
    return schema.get("type") == "string" or (
        isinstance(choices, list) and bool(choices) and all(isinstance(each, str) for each in choices)
    )


def _literal(node: ast.expr | None) -> Any:
    """The value of a literal in Python's notation or JSON's. Raises MalformedCallError."""
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as value):
            return value
        case ast.Name(id="true" | "false" | "null" as word):
            return {"true": True, "false": False, "null": None}[word]
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {str(_literal(key)): _literal(value) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
    raise MalformedCallError("one of its arguments is not a literal")


def json_or_text(text: str, schema: Any) -> str:
    """``text`` if it is JSON of a type that the schema allows, else as a JSON string."""
    try:
        value = msgspec.json.decode(text.strip())
        msgspec.json.encode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError, ValueError):
        return json.dumps(text, ensure_ascii=False)
    allowed = schema.get("type", []) if isinstance(schema, dict) else []
    types = [allowed] if isinstance(allowed, str) else allowed
    if "string" in types and not any(isinstance(value, _JSON_TYPES.get(each, ())) for each in types):
        return json.dumps(text, ensure_ascii=False)
    return text.strip()
