"""Reader of GGUF headers: a model's names and shape, and so the memory that its KV cache needs.

The format: magic ``GGUF``, version, tensor count, pair count, then key/value pairs, all little-endian
(https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). The file is not trusted: every length is bounded. What does
not parse is reported as unknown; the model host reports what is wrong with a file.
"""

from __future__ import annotations

import struct
from os import SEEK_CUR
from pathlib import Path
from typing import BinaryIO

GGUF_MAGIC = b"GGUF"

Value = int | float | str | list[int]

# Formats of the module struct, by GGUF's number of the type.
_SCALARS = dict(zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True))
_STRING, _ARRAY = 8, 9
_MAX_PAIRS = 4096
_MAX_STRING = 1 << 20
_MAX_ITEMS = 4096  # arrays of the architecture have one item per layer
_MAX_VOCABULARY = 1 << 22  # tokens, merges
_KV_ITEM_BYTES = 2  # F16
# For headers without the shape: that of a 4B Gemma 3 (34 layers, 4 heads of 256, F16).
_UNKNOWN_KV_BYTES_PER_CELL = 34 * 4 * 256 * 2 * 2
WEIGHTS_FACTOR = 1.1  # covers compute buffers and the allocator
# Python and llama.cpp: a host has 90 MB with 26 MB of weights and cache.
_PROCESS_BYTES = 64 * 1024 * 1024


class _UnreadableError(ValueError):
    """Not a GGUF header that this module can parse."""


def estimate_ram(path: Path, size_bytes: int, context: int) -> int:
    """Upper estimate of a host's memory: its own, weights plus a tenth, an F16 KV cache of ``context`` cells."""
    return _PROCESS_BYTES + int(size_bytes * WEIGHTS_FACTOR) + cache_bytes(path, context)


def cache_bytes(path: Path, context: int) -> int:
    """:func:`kv_cache_bytes`, or an estimate for an unknown shape."""
    known = kv_cache_bytes(path, context)
    return known if known is not None else context * _UNKNOWN_KV_BYTES_PER_CELL


def kv_cache_bytes(path: Path, context: int) -> int | None:
    """Bytes of an F16 KV cache of ``context`` cells, or None if unknown.

    An upper bound: layers with a sliding window may need less.
    """
    pairs = header_pairs(path)
    arch = pairs.get("general.architecture")

    def number(name: str) -> int | None:
        value = pairs.get(f"{arch}.{name}")
        return value if isinstance(value, int) else None

    layers, heads, width = number("block_count"), number("attention.head_count"), number("embedding_length")
    kv_heads = pairs.get(f"{arch}.attention.head_count_kv", heads)
    if not layers or kv_heads is None or isinstance(kv_heads, str | float):
        return None
    head = width // heads if width and heads else None
    key, value = number("attention.key_length") or head, number("attention.value_length") or head
    if not key or not value:
        return None
    heads_in_all = sum(kv_heads) if isinstance(kv_heads, list) else layers * kv_heads
    return heads_in_all * (key + value) * _KV_ITEM_BYTES * context


def is_gguf(path: Path) -> bool:
    """Whether the file can be read and begins with the magic of GGUF."""
    try:
        with path.open("rb") as file:
            return file.read(4) == GGUF_MAGIC
    except OSError:
        return False


def trained_context(path: Path) -> int | None:
    """Maximum sequence length of the model's training in tokens, or None if unknown."""
    pairs = header_pairs(path)
    length = pairs.get(f"{pairs.get('general.architecture')}.context_length")
    return length if isinstance(length, int) and length > 0 else None


def header_pairs(path: Path) -> dict[str, Value]:
    """The header's key/value pairs before the tokenizer; empty if the file is missing or does not parse."""
    pairs: dict[str, Value] = {}
    try:
        with path.open("rb") as file:
            for _ in range(_pair_count(file)):
                key = _string(file)
                if key.startswith("tokenizer."):  # megabytes of vocabulary follow
                    return pairs
                value = _value(file, _number(file, "I"))
                if value is not None:
                    pairs[key] = value
            return pairs
    except (OSError, _UnreadableError):
        return {}


def chat_template(path: Path) -> str | None:
    """The file's chat template, or None. It follows the vocabulary: skipping 262,144 tokens takes about 0.2 s."""
    try:
        with path.open("rb") as file:
            for _ in range(_pair_count(file)):
                key, kind = _string(file), _number(file, "I")
                if key == "tokenizer.chat_template" and kind == _STRING:
                    return _string(file)
                _skip(file, kind)
    except (OSError, _UnreadableError):
        pass
    return None


def _pair_count(file: BinaryIO) -> int:
    magic, version, _tensors, count = struct.unpack("<4sIQQ", _take(file, 24))
    if magic != GGUF_MAGIC or version not in (2, 3) or count > _MAX_PAIRS:
        raise _UnreadableError
    return int(count)


def _value(file: BinaryIO, kind: int) -> Value | None:
    """Read a value; None for an array of anything but integers."""
    if kind == _STRING:
        return _string(file)
    if kind in _SCALARS:
        return _number(file, _SCALARS[kind])
    if kind != _ARRAY:
        raise _UnreadableError
    item, count = _number(file, "I"), _number(file, "Q")
    if count > _MAX_ITEMS or (item != _STRING and item not in _SCALARS):
        raise _UnreadableError
    items = [_value(file, item) for _ in range(count)]
    numbers = [each for each in items if isinstance(each, int)]
    return numbers if len(numbers) == len(items) else None


def _skip(file: BinaryIO, kind: int) -> None:
    """Skip a value of any length that a tokenizer may have."""
    count = 1
    if kind == _ARRAY:
        kind, count = _number(file, "I"), _number(file, "Q")
    if count > _MAX_VOCABULARY:
        raise _UnreadableError
    if kind in _SCALARS:
        file.seek(count * struct.calcsize(f"<{_SCALARS[kind]}"), SEEK_CUR)
        return
    if kind != _STRING:
        raise _UnreadableError
    for _ in range(count):
        length = _number(file, "Q")
        if length > _MAX_STRING:
            raise _UnreadableError
        file.seek(length, SEEK_CUR)


def _number(file: BinaryIO, form: str) -> int:
    value: int = struct.unpack(f"<{form}", _take(file, struct.calcsize(f"<{form}")))[0]
    return value


def _string(file: BinaryIO) -> str:
    length = _number(file, "Q")
    if length > _MAX_STRING:
        raise _UnreadableError
    return _take(file, length).decode("utf-8", "replace")


def _take(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) != length:
        raise _UnreadableError
    return data
