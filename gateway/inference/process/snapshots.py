"""The files of KV snapshots, which model hosts write (``model_host/snapshots``)."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from model_host.protocol import owner_digest

FOLDER = "snapshots"  # in the data directory


class SnapshotSizes(Struct, frozen=True):
    """Bytes on disk: of owners' conversations, and of text that all share."""

    own: int
    shared: int

    @classmethod
    def of(cls, folder: Path) -> SnapshotSizes:
        sizes = [0, 0]
        everybody = f"{owner_digest('')}-"
        for path in folder.glob("*/*"):
            try:
                sizes[path.name.startswith(everybody)] += path.stat().st_size
            except FileNotFoundError:  # deleted meanwhile
                continue
        return cls(*sizes)


def delete_snapshots(folder: Path, owner: str) -> None:
    """Delete all files of an owner."""
    for path in folder.glob(f"*/{owner_digest(owner)}-*"):
        path.unlink(missing_ok=True)
