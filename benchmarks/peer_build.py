"""Builds the peers of hearth from the source archive of llama-cpp-python that hearth itself pins.

Everything is built once, in ``build/peers``: the unpacked sources, ``llama-server``, the packages that
llama-cpp-python's own server needs, and models with random weights.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.common import ROOT
from deploy.install import requirement

FOLDER = ROOT / "build" / "peers"
_PACKAGE = "llama-cpp-python"
# Like hearth's own build of llama.cpp: release, for this machine's processor, with OpenMP. Without web page and TLS.
_FLAGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DBUILD_SHARED_LIBS=OFF",
    f"-DCMAKE_CXX_FLAGS=-include {shlex.quote(str(ROOT / 'deploy' / 'amx_tiles.h'))}",
)
# Imported by llama-cpp-python's server, and not part of hearth's development environment.
_SERVER_PACKAGES = ("fastapi", "jinja2", "openai", "pydantic", "safetensors", "uvicorn", "websockets")


def sources() -> Path:
    """Return the unpacked source archive, fetched by pip and checked against the hash in requirements.lock."""
    found = sorted(FOLDER.glob("llama_cpp_python-*/pyproject.toml"))
    if not found:
        FOLDER.mkdir(parents=True, exist_ok=True)
        lock = FOLDER / "source.lock"
        lock.write_text(requirement(ROOT / "requirements.lock", _PACKAGE), encoding="utf-8")
        options = ("--no-deps", "--require-hashes", "--no-binary", _PACKAGE, "-d", str(FOLDER))
        _run(sys.executable, "-m", "pip", "download", *options, "-r", str(lock))
        for archive in FOLDER.glob("llama_cpp_python-*.tar.gz"):
            with tarfile.open(archive) as packed:
                packed.extractall(FOLDER, filter="data")
        found = sorted(FOLDER.glob("llama_cpp_python-*/pyproject.toml"))
    return found[-1].parent


def llama_server(source: Path) -> Path:
    """Return the program ``llama-server`` of the same llama.cpp. The first build takes ten minutes on two cores."""
    program = FOLDER / "llama-server" / "bin" / "llama-server"
    if not program.exists():
        cmake = shutil.which("cmake")
        if cmake is None:
            raise SystemExit("cmake is missing: apt install cmake build-essential")
        tree, output = str(source / "vendor" / "llama.cpp"), str(FOLDER / "llama-server")
        _run(cmake, "-S", tree, "-B", output, *_FLAGS)
        _run(cmake, "--build", output, "--target", "llama-server", "-j", str(len(os.sched_getaffinity(0))))
    return program


def server_packages() -> Path:
    """Return a folder for PYTHONPATH with the packages of llama-cpp-python's server. .venv is not changed."""
    folder = FOLDER / "packages"
    if not folder.exists():
        partial = FOLDER / "packages.partial"
        _run(sys.executable, "-m", "pip", "install", "-q", "--target", str(partial), *_SERVER_PACKAGES)
        partial.replace(folder)
    return folder


def model(source: Path, shape: str) -> Path:
    """Return a model with random weights in Q4_0 and the real vocabulary of 262,144 tokens from the sources."""
    target = FOLDER / f"random-{shape}.gguf"
    if not target.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        vocabulary = source / "vendor" / "llama.cpp" / "models" / "ggml-vocab-gemma-4.gguf"
        script = str(ROOT / "models" / "random_gemma.py")
        options = ("--shape", shape, "--type", "q4_0", "--vocabulary", str(vocabulary))
        _run(sys.executable, script, str(target), *options)
    return target


def _run(*command: str) -> None:
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(f"`{command[0]}` failed with status {done.returncode}; its output is above")
