"""Make a virtual environment with the pinned dependencies and this project, and show the progress.

    python3 deploy/install.py --venv .venv --lock requirements.lock

`--packages-only` omits this project, which an image installs in a step of its own. CMAKE_ARGS and CXXFLAGS in the
environment are build options of llama.cpp, which is compiled once, in 2 to 5 minutes; pip caches the result. A wheel of
it in a folder of PIP_FIND_LINKS, compiled on another machine of the same kind, is installed instead.
Uses the standard library alone, because nothing else is installed yet.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = ROOT / "build" / "install.log"
CONSTRAINTS = ROOT / "deploy" / "build-constraints.txt"
# Neither the multimodal library nor that of llama.cpp's own programs is used.
BUILD_OPTIONS = "-DLLAVA_BUILD=OFF"
MORE_OPTIONS = ROOT / "deploy" / "llama_options.cmake"
# Included in every C++ file: without it, code compiled by GCC 11 and 12 crashes on processors with AMX.
AMX_TILES = ROOT / "deploy" / "amx_tiles.h"
STEP = re.compile(r"\[ *(\d+)/(\d+)\]")  # of ninja
PERCENT = re.compile(r"\[ *(\d+)%\]")  # of make
COMPILED = "llama-cpp-python"


class InstallError(Exception):
    """A failure whose message has the remedy."""


def check_machine() -> None:
    """Raise InstallError for a missing requirement, which would fail later without a remedy."""
    if sys.version_info < (3, 11):
        have = ".".join(map(str, sys.version_info[:3]))
        raise InstallError(
            f"Python 3.11 or newer is needed, this is {have}; choose one: make run PYTHON=python3.11"
        )
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise InstallError("Python's venv module is missing: apt install python3-venv")
    for variable, names in (("CC", ("cc", "gcc", "clang")), ("CXX", ("c++", "g++", "clang++"))):
        if not os.environ.get(variable) and not any(shutil.which(name) for name in names):
            language = "C++" if variable == "CXX" else "C"
            raise InstallError(f"a {language} compiler is missing: apt install build-essential")


def make_venv(venv: Path) -> Path:
    """Make the environment, again if it is incomplete or its Python is gone; return its Python."""
    python = venv / "bin" / "python"
    if not python.exists() or subprocess.run([python, "-m", "pip", "-V"], capture_output=True).returncode:
        print(f"making {venv.name}", flush=True)
        run([sys.executable, "-m", "venv", "--clear", str(venv)])
    return python


def requirement(lock: Path, name: str) -> str:
    """The lines of a package in a lock file, hashes included."""
    pattern = rf"^{re.escape(name)}==[^\n]*(?:\n[ \t]+--hash=[^\n]*)*"
    found = re.search(pattern, lock.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise InstallError(f"{lock} does not pin {name}")
    return found.group().rstrip("\\ ") + "\n"


def pinned(lock: Path, name: str) -> str:
    """The version of a package in a lock file."""
    return requirement(lock, name).split("==")[1].split()[0]


def installed(python: Path, lock: Path, name: str) -> bool:
    """Whether the environment has the pinned version of a package."""
    version = pinned(lock, name)
    probe = f"import importlib.metadata as m; print(m.version('{name}'))"
    return subprocess.run([python, "-c", probe], capture_output=True, text=True).stdout.strip() == version


def install_one(python: Path, lock: Path, name: str, *options: str) -> Iterator[str]:
    """Install a package of the lock, checked by its hash; yields pip's output."""
    only = LOG.with_name(f"{name}.lock")
    only.write_text(requirement(lock, name), encoding="utf-8")
    command = [str(python), "-m", "pip", "install", "--no-deps", "--require-hashes", *options]
    flags = f"{os.environ.get('CXXFLAGS', '')} -include {shlex.quote(str(AMX_TILES))}".lstrip()
    cmake = os.environ.get("CMAKE_ARGS") or BUILD_OPTIONS
    cmake += f" {shlex.quote(f'-DCMAKE_PROJECT_llama_cpp_INCLUDE={MORE_OPTIONS}')}"
    return output_of([*command, "-r", str(only)], {"CMAKE_ARGS": cmake, "CXXFLAGS": flags})


def install_llama(python: Path, lock: Path) -> None:
    """Install llama-cpp-python, from pip's cache if it has been compiled before."""
    if installed(python, lock, COMPILED) or install_wheel(python, lock):
        return
    print("llama.cpp: fetching", flush=True)
    started = time.monotonic()
    progress = Progress()
    for line in install_one(python, lock, COMPILED, "-v", "--build-constraint", str(CONSTRAINTS)):
        progress.line(line)
    progress.end(f"llama.cpp: installed after {time.monotonic() - started:.0f} s")


def install_wheel(python: Path, lock: Path) -> bool:
    """Install a wheel of llama-cpp-python from PIP_FIND_LINKS; False if there is none that fits this machine.

    The lock has the hash of the sources alone, so pip would never take it.
    """
    pattern = f"{COMPILED.replace('-', '_')}-{pinned(lock, COMPILED)}-*.whl"
    for folder in os.environ.get("PIP_FIND_LINKS", "").split():
        for wheel in sorted(Path(folder).glob(pattern)):
            try:
                run([str(python), "-m", "pip", "install", "--no-deps", "--no-index", str(wheel)])
            except InstallError:  # of another kind of machine
                continue
            print(f"llama.cpp: installed from {wheel}", flush=True)
            return True
    return False


class Progress:
    """Progress of the build: a line that is rewritten on a terminal, elsewhere a line for every 10 %."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._tenth = 0
        self._wrote = False

    def line(self, text: str) -> None:
        """Read a line of pip's output."""
        if text.lstrip().startswith(f"Building wheel for {COMPILED}") and "started" in text:
            print("llama.cpp: compiling, once on this machine: 2 to 5 minutes on two cores", flush=True)
        if step := STEP.search(text):
            done, everything = int(step[1]), int(step[2])
            self._show(100 * done // max(1, everything), f" ({done}/{everything})")
        elif share := PERCENT.search(text):
            self._show(int(share[1]), "")

    def end(self, message: str) -> None:
        print(("\r\033[K" if self._wrote else "") + message, flush=True)

    def _show(self, percent: int, detail: str) -> None:
        message = f"building llama.cpp {percent}%{detail}"
        if self._terminal:
            print(f"\r{message}\033[K", end="", flush=True)
            self._wrote = True
        elif percent // 10 > self._tenth:
            self._tenth = percent // 10
            print(message, flush=True)


def install_rest(python: Path, lock: Path, *, project: bool) -> None:
    """Install all other pinned packages, and this project in editable mode if ``project``."""
    print("installing the other packages", flush=True)
    pip = [str(python), "-m", "pip", "install", "-q"]
    run([*pip, "--require-hashes", "-r", str(lock)])
    if project:
        run([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)])


def run(command: list[str]) -> None:
    """Run a command, with its output in the log alone."""
    for _ in output_of(command, {}):
        pass


def output_of(command: list[str], environment: dict[str, str]) -> Iterator[str]:
    """Lines of a command's output, which also go to the log. Raises InstallError with the last ones if it fails."""
    tail: list[str] = []
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **environment},
    )
    assert process.stdout is not None
    with process, LOG.open("a", encoding="utf-8") as log:
        try:
            for line in process.stdout:
                log.write(line)
                tail = [*tail[-14:], line.rstrip()]
                yield line
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        last = "\n  ".join(tail)
        raise InstallError(f"this failed: {' '.join(command)}\n  {last}\nthe whole output is in {LOG}")


def main() -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--packages-only", action="store_true")
    arguments = parser.parse_args()
    try:
        check_machine()
        LOG.parent.mkdir(parents=True, exist_ok=True)
        LOG.write_text("")
        python = make_venv(arguments.venv.absolute())
        if not installed(python, arguments.lock, "pip"):
            # With required hashes, an older pip would not use its cached build of llama.cpp.
            for _ in install_one(python, arguments.lock, "pip"):
                pass
        install_llama(python, arguments.lock)
        install_rest(python, arguments.lock, project=not arguments.packages_only)
    except InstallError as error:
        print(f"\ninstall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninstall: stopped; run the same command to continue", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
