"""Random mutations of protocol lines: of bytes, structure, numbers, sizes, ids and text. Seeded."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

Fields = dict[str, Any]

LONGEST = 500_000  # characters of a list that is repeated

NUMBERS = (
    *(
        -1,
        0,
        1,
        2,
        63,
        255,
        4097,
        65_537,
        1_048_577,
        2**31 - 1,
        2**31,
        2**32,
        2**53 + 1,
        2**63,
        2**64,
        10**40,
    ),
    *(-0.0, 0.5, 1.0000001, 5e-324, 1e308, -1e308, 3.5e38),
)
TEXTS = (
    "",
    " ",
    "a",
    "\0",
    "\n",
    "\r\n",
    "\x7f",
    "é",
    "漢字",
    "😀",
    "e\u0301",
    "\u202eabc",
    "\u2028",
    "\ufdd0",
    "\uffff",
    "\U0010ffff",
    "\ue000123456789012345678.0.00000\ue001",
    "\ue002\ue000",
    "<end_of_turn>",
    "<|turn>",
    "</tool_call>",
    '{"name": "f", "arguments": {}}',
    "{{ 7 * 7 }}",
    "{% for a in b %}",
    "auto",
    "none",
    "required",
    "function:f",
    "background",
    "tool",
    "root ::= root | root",
    'root ::= "a"{1,100000}',
    "x" * 129,
    "y " * 500,
)
BYTES = (
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b'"',
    b"\\",
    b"\\u",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
)
MARKS = (b",", b":", b"NaN", b"1e999", b"-", b"\r", b"\t", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"null", b"/**/")


def line_of(fields: Fields, draw: random.Random) -> bytes:
    """The message as a line without its newline, usually mutated."""
    if draw.random() < 0.2:
        return _encoded(fields)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        draw.choice(_STRUCTURE)(fields, draw)
    line = _encoded(fields)
    if draw.random() < 0.4:
        for _ in range(draw.choice((1, 1, 2, 5))):
            line = draw.choice(_BYTEWISE)(line, draw)
    return line.replace(b"\n", b" ")


def value(draw: random.Random, depth: int = 0) -> Any:
    """Any JSON value; sometimes deeply nested, or long."""
    kind = draw.random()
    if kind < 0.3 or depth > 3:
        return draw.choice(NUMBERS)
    if kind < 0.6:
        return draw.choice(TEXTS)
    if kind < 0.7:
        return draw.choice((None, True, False))
    if kind < 0.8:
        return [value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind < 0.9:
        return {str(draw.choice(TEXTS)): value(draw, depth + 1) for _ in range(draw.randrange(4))}
    if kind < 0.97:
        return [draw.choice(TEXTS)] * draw.choice((17, 129, 300))
    nested: Any = 1
    for _ in range(draw.choice((65, 300, 900))):
        nested = [nested] if draw.random() < 0.5 else {"a": nested}
    return nested


def _encoded(fields: Fields) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _holders(fields: Any) -> list[Any]:
    """Every object and list of a message, from the outside in, without deeply nested ones."""
    found, level = [], [fields]
    for _ in range(12):
        level = [one for one in level if isinstance(one, dict | list) and one]
        found += level
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return found


def _place(fields: Fields, draw: random.Random) -> tuple[Any, Any]:
    holder = draw.choice(_holders(fields) or [{"": 0}])
    return holder, draw.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))


def _replace(fields: Fields, draw: random.Random) -> None:
    holder, key = _place(fields, draw)
    holder[key] = value(draw)


def _number(fields: Fields, draw: random.Random) -> None:
    places = [
        (holder, key)
        for holder in _holders(fields)
        for key, inner in (holder.items() if isinstance(holder, dict) else enumerate(holder))
        if isinstance(inner, int | float)
    ]
    if places:
        holder, key = draw.choice(places)
        holder[key] = draw.choice(NUMBERS)


def _remove(fields: Fields, draw: random.Random) -> None:
    holder, key = _place(fields, draw)
    del holder[key]


def _add(fields: Fields, draw: random.Random) -> None:
    holder, _ = _place(fields, draw)
    if isinstance(holder, dict):
        holder[draw.choice((*TEXTS, "id", "op", "owner", "tools", "stop", "tokens", "texts"))] = value(draw)
    else:
        holder.insert(draw.randrange(len(holder) + 1), value(draw))


def _swap(fields: Fields, draw: random.Random) -> None:
    (one, first), (other, second) = _place(fields, draw), _place(fields, draw)
    one[first], other[second] = json.loads(json.dumps((other[second], one[first])))


def _repeat(fields: Fields, draw: random.Random) -> None:
    lists = [holder for holder in _holders(fields) if isinstance(holder, list)]
    if lists:
        holder = draw.choice(lists)
        items, times = json.dumps(holder)[1:-1], draw.choice((2, 2, 2, 17, 129, 257, 4097, 65_537))
        if len(items) * times < LONGEST:
            holder[:] = json.loads(f"[{','.join([items] * times)}]")


def _identity(fields: Fields, draw: random.Random) -> None:
    fields["id"] = draw.choice((*TEXTS, *NUMBERS, None, [], "x" * 128))


def _flip(line: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(line))
    return line[:at] + bytes([line[at] ^ (1 << draw.randrange(8))]) + line[at + 1 :]


def _insert(line: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(line))
    return line[:at] + draw.choice((*BYTES, *MARKS)) + line[at:]


def _cut(line: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(line))
    end = draw.choice((len(line), start + 1, start + draw.randrange(20)))
    return line[:start] + line[end:] or b"x"


def _double(line: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(line))
    return line[:start] + line[start : start + draw.randrange(200)] * draw.choice((2, 3, 50)) + line[start:]


def _noise(line: bytes, draw: random.Random) -> bytes:
    return draw.randbytes(draw.randrange(1, 80))


_STRUCTURE: Sequence[Callable[[Fields, random.Random], None]] = (
    *(_replace, _replace, _number, _number, _remove, _add, _swap, _repeat, _identity),
)
_BYTEWISE: Sequence[Callable[[bytes, random.Random], bytes]] = (
    _flip,
    _flip,
    _insert,
    _insert,
    _cut,
    _double,
    _noise,
)
