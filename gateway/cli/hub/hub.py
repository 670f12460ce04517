"""Downloads of model files from a Hugging Face hub that survive interruption and end in a checked file.

huggingface-hub resolves names, tokens, endpoints and offline mode, and streams the bytes. Its own download
function throws a partial file away when the process ends; models are gigabytes, so the partial file is kept
here, named after the checksum of what it will become.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_url,
    set_client_factory,
    try_to_load_from_cache,
)
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported lazily

from gateway.cli.common.checksum import Checksum
from gateway.cli.common.text import size_text
from gateway.cli.hub.client import guarded_client
from gateway.cli.hub.errors import PullError, hub_errors

# Nothing but the wanted file is asked of the hub: no registry look-ups for the user agent.
constants.HF_HUB_DISABLE_TELEMETRY = True
# Bytes that wait for a full chunk are lost when the connection breaks; the default is 10 MB.
constants.DOWNLOAD_CHUNK_SIZE = 64 * 1024
set_client_factory(lambda: guarded_client(constants.ENDPOINT, own="HF_ENDPOINT" in os.environ))


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository at one commit. ``checksum`` None: the hub publishes none for it."""

    repo: str
    file: str
    url: str
    etag: str
    size: int
    checksum: Checksum | None
    commit: str


def locate(repo: str, file: str, sha256: str | None) -> RemoteFile:
    """Ask the hub for a file's size and checksum. ``sha256`` is the catalog's own, when it has one.

    Raises PullError: offline, no access, no such file, or a file that is not the catalog's any more.
    """
    with hub_errors(repo, file):
        metadata = get_hf_file_metadata(hf_hub_url(repo, file), headers=_headers(), timeout=10.0)
    if not metadata.commit_hash or not metadata.etag or metadata.size is None:
        raise PullError(
            f"{constants.ENDPOINT} does not answer like a hub: no commit, checksum or size of {file}"
        )
    published = Checksum.from_etag(metadata.etag)
    if sha256 and published and published.algorithm == "sha256" and published.value != sha256:
        raise PullError(
            f"the hub's {repo}/{file} is not the file in the catalog: its SHA-256 is {published.value}"
        )
    with hub_errors(repo, file):
        url = hf_hub_url(repo, file, revision=metadata.commit_hash)
    checksum = Checksum("sha256", sha256) if sha256 else published
    return RemoteFile(repo, file, url, metadata.etag, metadata.size, checksum, metadata.commit_hash)


def cached(repo: str, file: str, revision: str = "main") -> Path | None:
    """The file in the hub's own cache (``HF_HOME``), when another program has downloaded it already."""
    with hub_errors(repo, file):
        found = try_to_load_from_cache(repo, file, revision=revision)
    return Path(found).resolve() if isinstance(found, str) else None


def partial_path(target: Path, etag: str) -> Path:
    """Where the bytes of a download lie until they are complete and checked."""
    return target.with_name(f".{target.name}.{hashlib.sha256(etag.encode()).hexdigest()[:12]}.partial")


def check_disk(remote: RemoteFile, target: Path) -> None:
    """Refuse a download that cannot fit, before its first byte. The folder of ``target`` exists."""
    partial = partial_path(target, remote.etag)
    missing = remote.size - (partial.stat().st_size if partial.exists() else 0)
    free = shutil.disk_usage(target.parent).free
    if missing > free:
        raise PullError(
            f"not enough disk space: {size_text(missing)} are still to come, {target.parent} has "
            f"{size_text(free)} free; make room or choose another --data-dir"
        )


def download(remote: RemoteFile, target: Path) -> None:
    """Bring the file to ``target``, going on from a partial file when there is one. Shows progress on a terminal.

    Raises PullError; the partial file stays unless its checksum is wrong. KeyboardInterrupt leaves it too.
    """
    partial = partial_path(target, remote.etag)
    with _locked(partial) as file:
        source = cached(remote.repo, remote.file, remote.commit)
        if source is not None and source.stat().st_size == remote.size:
            _copy(source, file)
        else:
            _stream(remote, file)
        _install(partial, file, remote.checksum, target)


def copy_cached(source: Path, target: Path) -> None:
    """Bring a file of the hub's cache to ``target``. The cache names its files after their checksums."""
    partial = partial_path(target, source.name)
    with _locked(partial) as file:
        _copy(source, file)
        _install(partial, file, Checksum.from_etag(source.name), target)


def _copy(source: Path, file: BinaryIO) -> None:
    file.truncate(0)
    with hub_errors("", source.name), source.open("rb") as original:
        shutil.copyfileobj(original, file)


def _install(partial: Path, file: BinaryIO, checksum: Checksum | None, target: Path) -> None:
    """Check what has arrived and give it its name; a file that fails the check is removed."""
    with hub_errors("", target.name):
        file.flush()
        os.fsync(file.fileno())
    if checksum and not checksum.matches(partial, label="checking"):
        partial.unlink()
        raise PullError(
            f"{target.name} arrived with a wrong checksum and was removed; run the command again, and if it fails "
            "again the hub's copy or something on the way is damaged",
            code="checksum_mismatch",
        )
    partial.replace(target)


def remove_stale_partials(target: Path, etag: str) -> None:
    """Delete partial files of other versions of the same file: they can never be completed."""
    keep = partial_path(target, etag)
    for path in target.parent.glob(f".{target.name}.*.partial"):
        if path != keep:
            path.unlink()


def _stream(remote: RemoteFile, file: BinaryIO) -> None:
    have = file.seek(0, os.SEEK_END)
    if have > remote.size:  # cannot be the beginning of it
        file.truncate(0)
        have = file.seek(0)
    with hub_errors(remote.repo, remote.file):
        http_get(
            remote.url,
            file,
            resume_size=have,
            headers=_headers(),
            expected_size=remote.size,
            displayed_filename=remote.file.rpartition("/")[2],
        )


@contextmanager
def _locked(partial: Path) -> Iterator[BinaryIO]:
    """The partial file, open for one process only. The lock goes with the descriptor, however that ends."""
    with os.fdopen(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PullError("another `hearth pull` of this file is running") from None
        yield file


def _headers() -> dict[str, str]:
    return build_hf_headers(library_name="hearth")
