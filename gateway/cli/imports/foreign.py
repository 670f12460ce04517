"""Files with chats of other products: one JSON document, or one conversation per line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.cli.imports.chats import chat
from gateway.store.memory.transfer import Archive

_BOM = b"\xef\xbb\xbf"  # some editors begin UTF-8 with it
_ZIP = b"PK\x03\x04"
_BYTE = re.compile(r" \(byte (\d+)\)")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def foreign(source: Path, left_out: Counter[str]) -> Iterator[tuple[str, Archive]]:
    """Yield each conversation of a file with its position; ``left_out`` counts messages that are not imported.

    Raises InvalidRequestError with the damaged line or conversation, and the problem.
    """
    raw = source.read_bytes().removeprefix(_BOM)
    if raw.startswith(_ZIP):
        raise InvalidRequestError(f"{source} is a zip archive: unpack it and import its conversations.json")
    begin = raw.lstrip()[:1]
    if begin == b"[":
        items = [(f"item {number}", each) for number, each in enumerate(_array(raw), 1)]
        if items and all("role" in _object(each, where) for where, each in items):  # the messages of one chat
            items = [("item 1", msgspec.Raw(b'{"messages":' + raw + b"}"))]
    elif begin == b"{":
        items = _documents(raw)
    else:
        raise InvalidRequestError(
            f"{source} is neither an export of hearth nor JSON: see `hearth import --help`"
        )
    for where, each in items:
        archive, without = chat(_object(each, where), where)
        left_out.update(without)
        yield where, archive


def _array(raw: bytes) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(raw, type=list[msgspec.Raw])
    except _UNREADABLE as error:
        raise _damaged(raw, error) from None


def _documents(raw: bytes) -> list[tuple[str, msgspec.Raw]]:
    """Split a file into one object, or one per line."""
    try:
        return [("item 1", msgspec.json.decode(raw, type=msgspec.Raw))]
    except _UNREADABLE as error:
        lines = raw.splitlines()
        if len(lines) < 2 or not _decodes(next(line for line in lines if line.strip())):
            raise _damaged(raw, error) from None
    return [(f"line {number}", msgspec.Raw(line)) for number, line in enumerate(lines, 1) if line.strip()]


def _decodes(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except _UNREADABLE:
        return False
    return True


def _object(raw: msgspec.Raw, where: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except _UNREADABLE as error:
        raise InvalidRequestError(f"{where}: {error}") from None
    if not isinstance(value, dict):
        raise InvalidRequestError(f"{where} is no conversation")
    return value


def _damaged(raw: bytes, error: Exception) -> InvalidRequestError:
    """Locate the error in the document; a truncated one is damaged in its last line."""
    found = _BYTE.search(str(error))
    at = int(found[1]) if found else len(raw)
    line = raw.count(b"\n", 0, at) + 1
    column = at - (raw.rfind(b"\n", 0, at) + 1) + 1
    what = _BYTE.sub("", str(error))
    return InvalidRequestError(f"line {line}, byte {column} of it: {what}")
