"""Dump files as streams of decompressed bytes.

The first bytes decide the format, not the name. Pieces have a fixed size, so a decompression bomb takes time but no
memory.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from gateway.wiki.dumps.dump import DumpError

_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zst"}
_UNSUPPORTED = {b"\xfd7zXZ": "xz", b"7z\xbc\xaf\x27\x1c": "7z", b"PK\x03\x04": "zip"}
_HEAD_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
# The largest window accepted, that of `zstd --long=27`; every other level needs less.
_MAX_ZSTD_WINDOW = 1 << 27


class DumpFile:
    """An open dump. ``size`` and ``position`` are in bytes of the compressed file."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        stat = path.stat()
        head = file.read(_HEAD_BYTES)
        file.seek(0)
        self._file = file
        self.size = stat.st_size
        self.format = _format_of(head)
        self.identity = f"{self.size}:{stat.st_mtime_ns}:{hashlib.blake2b(head, digest_size=16).hexdigest()}"

    @property
    def position(self) -> int:
        return self._file.tell()

    def pieces(self) -> Iterator[bytes]:
        """The decompressed bytes. Raises DumpError for a damaged file, EOFError for one that ends early."""
        source = self._unpacked()
        while True:
            try:
                piece = source.read(_PIECE_BYTES)
            except zstandard.ZstdError as error:
                if "too much memory" in str(error) or "window" in str(error).lower():
                    raise DumpError(
                        "it was compressed with a window over 128 MiB: decompress it with `zstd -d --long=31` first"
                    ) from None
                raise self._damaged(error) from None
            except (zlib.error, gzip.BadGzipFile) as error:
                raise self._damaged(error) from None
            except OSError as error:
                if error.errno is None:  # bz2's own, not the disk's
                    raise self._damaged(error) from None
                raise DumpError(f"the file cannot be read: {error.strerror}") from None
            if not piece:
                return
            yield piece

    def _unpacked(self) -> IO[bytes]:
        if self.format == "gz":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=self._file, mode="rb"))
        if self.format == "bz2":
            return bz2.BZ2File(self._file)
        if self.format == "zst":
            unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
            return cast("IO[bytes]", unpacker.stream_reader(self._file, read_across_frames=True))
        return self._file

    def _damaged(self, error: Exception) -> DumpError:
        return DumpError(f"the .{self.format} file is damaged near byte {self.position}: {error}")


@contextmanager
def open_dump(path: Path) -> Iterator[DumpFile]:
    """Open the dump at ``path``. Raises DumpError when that fails or its compression is not supported."""
    if not path.is_file():
        what = "this is not a regular file" if path.exists() else "there is no such file"
        raise DumpError(f"{what}: give the path or the URL of a MediaWiki XML export, or a folder")
    try:
        file = path.open("rb")
    except OSError as error:
        raise DumpError(f"it cannot be read: {error.strerror or error}") from error
    with file:
        yield DumpFile(file, path)


def _format_of(head: bytes) -> str:
    if not head:
        raise DumpError("the file is empty")
    for magic, name in _UNSUPPORTED.items():
        if head.startswith(magic):
            raise DumpError(
                f"it is compressed with {name}: decompress it first (hearth reads .xml, .gz, .bz2 and .zst)"
            )
    return next((found for magic, found in _MAGIC.items() if head.startswith(magic)), "xml")
