"""Parses llama.cpp's serialized KV sequence by position, so that one state can be cut to several lengths.

A state is a magic number and a sequence id, then one block for each cache: layers with full attention, layers with a
sliding window. A block lists its cells and then, layer by layer, the keys and the values of all cells. In the second
block llama.cpp writes only the window before the sequence's end, but it reads any cells. A state with more cells there
can therefore be cut to more lengths.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_HEAD = struct.Struct("<Ii")  # magic, sequence id
_COUNTS = struct.Struct("<II")  # streams, cells of the one stream
_LAYERS = struct.Struct("<II")  # whether values are transposed, number of layers
_ROWS = struct.Struct("<iQ")  # type, bytes of a cell
_COLUMNS = struct.Struct("<iII")  # type, bytes of an element, elements of a cell
_CELL = np.dtype([("position", "<i4"), ("sequences", "<u4"), ("sequence", "<i4")])


@dataclass(frozen=True, slots=True)
class _Block:
    """One cache. ``tensors`` have a header and a row of bytes per cell, or a column of elements where transposed."""

    cells: Any
    layers: bytes
    tensors: list[tuple[bytes, Any]]
    columns: frozenset[int]  # which tensors are transposed

    def where(self, chosen: Any) -> _Block:
        tensors = [
            (head, data[:, chosen] if n in self.columns else data[chosen])
            for n, (head, data) in enumerate(self.tensors)
        ]
        return _Block(self.cells[chosen], self.layers, tensors, self.columns)

    def joined(self, others: Sequence[_Block]) -> _Block:
        tensors = [
            (
                head,
                np.concatenate(
                    [data, *(other.tensors[n][1] for other in others)], axis=int(n in self.columns)
                ),
            )
            for n, (head, data) in enumerate(self.tensors)
        ]
        cells = np.concatenate([self.cells, *(other.cells for other in others)])
        return _Block(cells, self.layers, tensors, self.columns)

    def packed(self) -> list[bytes]:
        parts = [_COUNTS.pack(1, len(self.cells)), self.cells.tobytes()]
        if len(self.cells):
            parts.append(self.layers)
            parts += [part for head, data in self.tensors for part in (head, data.tobytes())]
        return parts


@dataclass(frozen=True, slots=True)
class KvState:
    """A parsed state. The window block is the last one."""

    head: bytes
    blocks: list[_Block]

    @classmethod
    def parse(cls, state: bytes | bytearray) -> KvState | None:
        """Return None for any other form (recurrent layers, M-RoPE)."""
        try:
            reader = _Reader(state)
            head = reader.take(_HEAD.size).tobytes()
            blocks = []
            while reader.left:
                blocks.append(_block(reader))
        except (ValueError, struct.error):
            return None
        return cls(head, blocks) if blocks else None

    @property
    def window(self) -> frozenset[int]:
        """The positions in the window block."""
        return frozenset(self.blocks[-1].cells["position"].tolist())

    @property
    def window_bytes(self) -> int:
        """Size of a cell in the window block."""
        block = self.blocks[-1]
        return int(sum(data.nbytes for _, data in block.tensors)) // max(1, len(block.cells))

    def with_windows(self, others: Sequence[KvState]) -> KvState:
        """Add the cells of the others' window blocks that are missing here."""
        *full, window = self.blocks
        have = window.cells["position"]
        joining = []
        for other in others:
            lacking = ~np.isin(other.blocks[-1].cells["position"], have)
            joining.append(other.blocks[-1].where(lacking.nonzero()[0]))
            have = np.concatenate([have, joining[-1].cells["position"]])
        return KvState(self.head, [*full, window.joined(joining)])

    def stretches(self, size: int) -> list[tuple[int, int]]:
        """List the ranges (first, last) of lengths at which the sequence can be continued with windows of ``size``."""
        kept = self.window
        ends = sorted(position + 1 for position in kept if position + 1 not in kept)
        starts = sorted(position for position in kept if position - 1 not in kept)
        return [
            (start + size if start else 1, end)
            for start, end in zip(starts, ends, strict=True)
            if not start or end - start >= size
        ]

    def until(self, length: int, size: int) -> KvState | None:
        """Cut to the first ``length`` positions; None if a window of ``size`` before that length is missing."""
        if not any(first <= length <= last for first, last in self.stretches(size)):
            return None
        kept = self.window
        first = length
        while first - 1 in kept:
            first -= 1
        *full, window = self.blocks
        blocks = [block.where((block.cells["position"] < length).nonzero()[0]) for block in full]
        positions = window.cells["position"]
        blocks.append(window.where(((positions >= first) & (positions < length)).nonzero()[0]))
        return KvState(self.head, blocks)

    def packed(self) -> bytes:
        """Serialize in llama.cpp's form."""
        return b"".join([self.head, *(part for block in self.blocks for part in block.packed())])


class _Reader:
    def __init__(self, data: bytes | bytearray) -> None:
        self._data = np.frombuffer(data, np.uint8)
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> Any:
        if count > self.left:
            raise ValueError("the state ends early")
        self._at += count
        return self._data[self._at - count : self._at]


def _block(reader: _Reader) -> _Block:
    streams, count = _COUNTS.unpack(reader.take(_COUNTS.size))
    cells = reader.take(count * _CELL.itemsize).view(_CELL)
    if streams != 1 or not count or (cells["sequences"] != 1).any():
        raise ValueError("another form")
    layers = reader.take(_LAYERS.size).tobytes()
    transposed, number = _LAYERS.unpack(layers)
    if transposed > 1:
        raise ValueError("another form")
    tensors: list[tuple[bytes, Any]] = []
    for n in range(2 * number):
        if transposed and n >= number:
            head = reader.take(_COLUMNS.size).tobytes()
            _, size, width = _COLUMNS.unpack(head)
            data = reader.take(size * width * count).reshape(width, count, size)
        else:
            head = reader.take(_ROWS.size).tobytes()
            _, size = _ROWS.unpack(head)
            data = reader.take(size * count).reshape(count, size)
        tensors.append((head, data))
    return _Block(cells, layers, tensors, frozenset(range(number, 2 * number) if transposed else ()))
