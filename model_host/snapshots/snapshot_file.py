"""The file of a saved KV sequence: an envelope with checksums, verified before llama.cpp reads the state.

magic, version, sizes | header: owner, shared length, tokens, stretches | BLAKE2b of all that
| llama.cpp's state, compressed (:mod:`model_host.snapshots.compression`) | its BLAKE2b

llama.cpp aborts the process on a truncated state and accepts flipped bits, so a file that does not verify counts as not
saved.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from model_host.protocol import owner_digest

SUFFIX = ".kv"
PARTIAL = ".part"  # of a file that is being written
State = bytes | bytearray  # llama.cpp's serialized sequence
_MAGIC = b"HEARTHKV"
_VERSION = 2
_SIZES = struct.Struct("<8sIIQ")  # magic, version, bytes of the header, bytes of the state
_DIGEST_BYTES = 32


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    owner: str
    shared: int
    tokens: bytes  # int32
    stretches: list[tuple[int, int]]


# Built at import because threads use it (docs/decisions/0010-first-conversion.md).
_HEADER = msgspec.msgpack.Decoder(_Header)


@dataclass(slots=True)
class Snapshot:
    """One saved sequence. Its first ``shared`` tokens may be reused by any owner.

    ``stretches`` are ranges (first, last) of lengths at which it can be continued.
    """

    path: Path
    owner: str
    shared: int
    tokens: list[int] = field(repr=False)
    stretches: list[tuple[int, int]]

    def continuable(self, most: int) -> int:
        """Return the largest length up to ``most`` at which the sequence can be continued, 0 for none."""
        return max((min(last, most) for first, last in self.stretches if first <= most), default=0)


def file_name(owner: str, tokens: Sequence[int]) -> str:
    """Return the name of a sequence's file, which begins with :func:`model_host.protocol.parts.owner_digest`."""
    return f"{owner_digest(owner)}-{hashlib.blake2b(_packed(tokens), digest_size=16).hexdigest()}{SUFFIX}"


def is_shared(path: Path) -> bool:
    """Whether a file is saved for every owner."""
    return path.name.startswith(f"{owner_digest('')}-")


def file_size(snapshot: Snapshot, content: State) -> int:
    """Return the size of the file that :func:`write_file` makes."""
    return len(_head(snapshot, content)) + len(content) + 2 * _DIGEST_BYTES


def write_file(snapshot: Snapshot, content: State) -> None:
    """Write durably under a temporary name, then rename. Only the owner of the process may read it. Raises OSError."""
    head = _head(snapshot, content)
    handle, name = tempfile.mkstemp(dir=snapshot.path.parent, suffix=PARTIAL)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(head + _digest(head))
            file.write(content)
            file.write(_digest(content))
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(snapshot.path)
    except OSError:
        delete_file(Path(name))
        raise


def read_header(path: Path) -> Snapshot | None:
    """Read and verify a header; None when the file is damaged, of another version, or missing."""
    try:
        with path.open("rb") as file:
            sizes = file.read(_SIZES.size)
            magic, version, header_bytes, state_bytes = _SIZES.unpack(sizes)
            whole = _SIZES.size + header_bytes + state_bytes + 2 * _DIGEST_BYTES
            if (magic, version) != (_MAGIC, _VERSION) or os.fstat(file.fileno()).st_size != whole:
                return None
            raw = file.read(header_bytes)
            if file.read(_DIGEST_BYTES) != _digest(sizes + raw):
                return None
        header = _HEADER.decode(raw)
        return Snapshot(
            path, header.owner, header.shared, array("i", header.tokens).tolist(), header.stretches
        )
    except (OSError, struct.error, msgspec.MsgspecError, ValueError):
        return None


def read_content(snapshot: Snapshot) -> bytes | None:
    """Return the compressed state if it verifies and the header is still the indexed one, else None."""
    fresh = read_header(snapshot.path)
    if fresh != snapshot:
        return None
    try:
        with snapshot.path.open("rb") as file:
            _, _, header_bytes, state_bytes = _SIZES.unpack(file.read(_SIZES.size))
            file.seek(header_bytes + _DIGEST_BYTES, os.SEEK_CUR)
            content = file.read(state_bytes)
            return content if file.read(_DIGEST_BYTES) == _digest(content) else None
    except (OSError, struct.error):
        return None


def delete_file(path: Path) -> None:
    """Delete a file; errors are ignored."""
    with contextlib.suppress(OSError):
        path.unlink()


def _head(snapshot: Snapshot, content: State) -> bytes:
    header = msgspec.msgpack.encode(
        _Header(snapshot.owner, snapshot.shared, _packed(snapshot.tokens), snapshot.stretches)
    )
    return _SIZES.pack(_MAGIC, _VERSION, len(header), len(content)) + header


def _digest(data: State) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _packed(tokens: Sequence[int]) -> bytes:
    return array("i", tokens).tobytes()
