"""Resumable downloads of model files from a Hugging Face hub, installed only after their checksum was verified.

huggingface-hub resolves names, tokens, endpoints and offline mode, and streams the bytes. Its own download
function discards a partial file when the process ends. Models are gigabytes, so hearth keeps the partial file,
named after the checksum that the complete file must have.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_url,
    set_client_factory,
    try_to_load_from_cache,
)
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # exported lazily
from msgspec import Struct
from tqdm import tqdm

from gateway.cli.common.files import check_disk, locked
from gateway.cli.hub.client import PullError, guarded_client, hub_errors

_READ_BYTES = 4 * 1024 * 1024
_BUSY = "another `hearth pull` of this file is running"
# The user agent without versions of other packages: huggingface-hub would look them up.
constants.HF_HUB_DISABLE_TELEMETRY = True
# A broken connection loses the bytes of an incomplete chunk; the default is 10 MB.
constants.DOWNLOAD_CHUNK_SIZE = 64 * 1024
set_client_factory(lambda: guarded_client(constants.ENDPOINT, own="HF_ENDPOINT" in os.environ))


class Checksum(Struct, frozen=True):
    """A file's checksum. Small files on a hub have git's blob id instead of a SHA-256."""

    algorithm: Literal["sha256", "git-blob"]
    value: str

    @classmethod
    def from_etag(cls, etag: str) -> Checksum | None:
        """Return the checksum in a hub's entity tag, None if it is something else."""
        if re.fullmatch(r"[0-9a-f]{64}", etag):
            return cls("sha256", etag)
        return cls("git-blob", etag) if re.fullmatch(r"[0-9a-f]{40}", etag) else None

    def matches(self, path: Path) -> bool:
        """Read the file, with progress on a terminal, and compare its checksum."""
        size = path.stat().st_size
        digest = hashlib.sha256()
        if self.algorithm == "git-blob":  # SHA-1 of a header and the content, not for secrecy
            digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        with (
            path.open("rb") as file,
            tqdm(total=size, unit="B", unit_scale=True, desc="checking", leave=False, disable=None) as bar,
        ):
            while chunk := file.read(_READ_BYTES):
                digest.update(chunk)
                bar.update(len(chunk))
        return digest.hexdigest() == self.value


class RemoteFile(Struct, frozen=True):
    """A file of a repository at one commit. ``checksum`` is None when the hub publishes none."""

    repo: str
    file: str
    url: str
    etag: str
    size: int
    checksum: Checksum | None
    commit: str

    def make_room(self, target: Path) -> None:
        """Delete partial files of other versions. Raise PullError when the missing bytes do not fit."""
        partial = partial_path(target, self.etag)
        for path in target.parent.glob(f".{target.name}.*.partial"):
            if path != partial:
                path.unlink()
        check_disk(target.parent, self.size - size_of(partial), PullError)


def locate(repo: str, file: str, sha256: str | None) -> RemoteFile:
    """Ask the hub for a file's size and checksum. ``sha256`` is the catalog's, if it has one.

    Raises PullError: offline, no access, no such file, or not the catalog's file any more.
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
    """Find the file in the hub's own cache (``HF_HOME``), where another program may have downloaded it."""
    with hub_errors(repo, file):
        found = try_to_load_from_cache(repo, file, revision=revision)
    return Path(found).resolve() if isinstance(found, str) else None


def partial_path(target: Path, etag: str) -> Path:
    """Return where the bytes of a download are kept until they are complete and verified."""
    return target.with_name(f".{target.name}.{hashlib.sha256(etag.encode()).hexdigest()[:12]}.partial")


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def download(remote: RemoteFile, target: Path, report: Callable[[int], None] | None = None) -> None:
    """Download to ``target``, resuming a partial file, with progress on a terminal or to ``report`` (bytes so far).

    Raises PullError. The partial file stays unless its checksum is wrong, also after a KeyboardInterrupt.
    """
    partial = partial_path(target, remote.etag)
    with locked(partial, PullError(_BUSY)) as file:
        source = cached(remote.repo, remote.file, remote.commit)
        if source is not None and source.stat().st_size == remote.size:
            _copy(source, file)
        else:
            _stream(remote, file, _bar(report) if report else None)
        _install(partial, file, remote.checksum, target)


def copy_cached(source: Path, target: Path) -> None:
    """Copy a file of the hub's cache to ``target``. The cache names its files after their checksums."""
    partial = partial_path(target, source.name)
    with locked(partial, PullError(_BUSY)) as file:
        _copy(source, file)
        _install(partial, file, Checksum.from_etag(source.name), target)


def _copy(source: Path, file: BinaryIO) -> None:
    file.truncate(0)
    with hub_errors("", source.name), source.open("rb") as original:
        shutil.copyfileobj(original, file)


def _bar(report: Callable[[int], None]) -> type[tqdm[Any]]:
    """A progress bar that reports instead of drawing."""

    class Reporting(tqdm):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": False, "file": io.StringIO()})

        def display(self, *args: Any, **options: Any) -> None:
            report(int(self.n))

    return Reporting


def _stream(remote: RemoteFile, file: BinaryIO, bar: type[tqdm[Any]] | None) -> None:
    have = file.seek(0, os.SEEK_END)
    if have > remote.size:  # cannot be a prefix of the file
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
            tqdm_class=bar,
        )


def _install(partial: Path, file: BinaryIO, checksum: Checksum | None, target: Path) -> None:
    """Verify the complete file and rename it; a file that fails is removed."""
    with hub_errors("", target.name):
        file.flush()
        os.fsync(file.fileno())
    if checksum and not checksum.matches(partial):
        partial.unlink()
        raise PullError(
            f"{target.name} arrived with a wrong checksum and was removed; run the command again, and if it fails "
            "again the hub's copy or something on the way is damaged",
            code="checksum_mismatch",
        )
    partial.replace(target)


def _headers() -> dict[str, str]:
    return build_hf_headers(library_name="hearth")
