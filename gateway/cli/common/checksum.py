"""Checksums of large files, with progress on a terminal."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tqdm import tqdm

_CHUNK = 4 * 1024 * 1024


@dataclass(frozen=True)
class Checksum:
    """What a file's bytes must add up to. Small files on a hub carry git's blob id instead of a SHA-256."""

    algorithm: Literal["sha256", "git-blob"]
    value: str

    @classmethod
    def from_etag(cls, etag: str) -> Checksum | None:
        """The checksum that a hub's entity tag is; None when it has neither form."""
        if re.fullmatch(r"[0-9a-f]{64}", etag):
            return cls("sha256", etag)
        return cls("git-blob", etag) if re.fullmatch(r"[0-9a-f]{40}", etag) else None

    def matches(self, path: Path, *, label: str) -> bool:
        """Whether the file has this checksum. Reads all of it."""
        size = path.stat().st_size
        # Git hashes a header of its own in front of the content; SHA-1 because git says so, not for secrecy.
        digest = (
            hashlib.sha256()
            if self.algorithm == "sha256"
            else hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        )
        with (
            path.open("rb") as file,
            tqdm(total=size, unit="B", unit_scale=True, desc=label, leave=False, disable=None) as bar,
        ):
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                bar.update(len(chunk))
        return digest.hexdigest() == self.value
