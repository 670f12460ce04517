"""llama.cpp's serialized KV sequence, taken apart by position, so that one state can be cut to several lengths. Pure.

A state is a magic number and a sequence id, then one block for each cache: layers with full attention, layers with a
sliding window. A block lists its cells and then, layer by layer, the keys and the values of all cells. llama.cpp
writes of the second block no more than the window before the sequence's end, but it reads any cells. A state
whose second block has further cells can therefore be cut to further lengths.
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
    """One cache. ``tensors`` have a header and one row of bytes a cell, or one column of elements where transposed."""

    cells: Any
    layers: bytes
    tensors: list[tuple[bytes, Any]]
    columns: frozenset[int]  # which tensors are transposed

    def where(self, chosen: Any) -> _Block:
        """The chosen cells alone, by index."""
        tensors = [
            (head, data[:, chosen] if n in self.columns else data[chosen])
            for n, (head, data) in enumerate(self.tensors)
        ]
        return _Block(self.cells[chosen], self.layers, tensors, self.columns)

    def joined(self, others: Sequence[_Block]) -> _Block:
        """The cells of all."""
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
    """A parsed state. The window block is the last one; with full attention alone it would be the only one."""

    head: bytes
    blocks: list[_Block]

    @classmethod
    def parse(cls, state: bytes | bytearray) -> KvState | None:
        """The parts of a state; None for any other form (recurrent layers, M-RoPE)."""
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
        """The positions whose cells the window block has."""
        return frozenset(self.blocks[-1].cells["position"].tolist())

    @property
    def window_bytes(self) -> int:
        """Bytes of a cell in the window block."""
        block = self.blocks[-1]
        return int(sum(data.nbytes for _, data in block.tensors)) // max(1, len(block.cells))

    def with_windows(self, others: Sequence[KvState]) -> KvState:
        """This state, with the cells of the others' window blocks that it lacks."""
        *full, window = self.blocks
        have = window.cells["position"]
        joining = []
        for other in others:
            lacking = ~np.isin(other.blocks[-1].cells["position"], have)
            joining.append(other.blocks[-1].where(lacking.nonzero()[0]))
            have = np.concatenate([have, joining[-1].cells["position"]])
        return KvState(self.head, [*full, window.joined(joining)])

    def stretches(self, size: int) -> list[tuple[int, int]]:
        """First and last lengths at which the sequence can be continued, for windows of ``size`` positions."""
        kept = self.window
        ends = sorted(position + 1 for position in kept if position + 1 not in kept)
        starts = sorted(position for position in kept if position - 1 not in kept)
        return [
            (start + size if start else 1, end)
            for start, end in zip(starts, ends, strict=True)
            if not start or end - start >= size
        ]

    def until(self, length: int, size: int) -> KvState | None:
        """The first ``length`` positions, with a window of ``size`` or more; None if it cannot be continued there."""
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
        """The state as llama.cpp reads it."""
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
