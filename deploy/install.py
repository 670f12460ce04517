"""Make a virtual environment with the pinned dependencies and this project, showing what takes long.

    python3 deploy/install.py --venv .venv --lock requirements.lock

Only the standard library is used: this runs before anything is installed. llama.cpp comes as source and is compiled
once, in 4 to 10 minutes; pip keeps the result in its cache for the next environment.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = "install.log"
# The multimodal library is not used; without it the build is a fifth shorter.
BUILD_OPTIONS = "-DLLAVA_BUILD=OFF"
STEP = re.compile(r"\[(\d+)/(\d+)\]")
BUILT = "llama-cpp-python"


class InstallError(Exception):
    """Something a person has to mend; the message says how."""


def check_machine() -> None:
    """Refuse early, and with a remedy, what would fail late."""
    if sys.version_info < (3, 11):
        have = ".".join(map(str, sys.version_info[:3]))
        raise InstallError(f"Python 3.11 or newer is needed, this is {have}: make run PYTHON=python3.11")
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        raise InstallError("Python's venv module is missing: apt install python3-venv")
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise InstallError("a C++ compiler is missing: apt install build-essential")


def make_venv(venv: Path) -> Path:
    """The environment's Python, made when it is not there."""
    python = venv / "bin" / "python"
    if not python.exists():
        print(f"making {venv}", flush=True)
        run([sys.executable, "-m", "venv", str(venv)], venv.parent / f".{venv.name}-{LOG}")
    return python


def requirement(lock: Path, name: str) -> str:
    """The lines of one package in a lock file, hashes included."""
    found = re.search(rf"^{re.escape(name)}==.*(?:\n[ \t]+--hash=.*)*", lock.read_text(), re.MULTILINE)
    if found is None:
        raise InstallError(f"{lock} does not pin {name}")
    return found.group() + "\n"


def install_llama(python: Path, lock: Path, log: Path) -> None:
    """Install llama-cpp-python, from pip's cache when it was built before. The source is checked by its hash."""
    wanted = requirement(lock, BUILT)
    version = wanted.split("==")[1].split()[0]
    probe = f"import importlib.metadata as m; print(m.version('{BUILT}'))"
    present = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    if present.stdout.strip() == version:
        return
    only = log.with_name("llama.lock")
    only.write_text(wanted)
    print("llama.cpp: fetching and compiling, which takes minutes the first time", flush=True)
    options = os.environ.get("CMAKE_ARGS", "")
    environment = os.environ | {"CMAKE_ARGS": options or BUILD_OPTIONS}
    command = [str(python), "-m", "pip", "install", "-v", "--no-deps", "--require-hashes", "-r", str(only)]
    started = time.monotonic()
    show = Progress()
    for line in output_of(command, log, environment):
        show.line(line)
    show.end(f"llama.cpp: done after {time.monotonic() - started:.0f} s")


class Progress:
    """One line that is rewritten on a terminal; elsewhere a line for every tenth of the way."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._tenth = -1
        self._wrote = False

    def line(self, text: str) -> None:
        """Look at a line of pip's output for the compiler's `[done/all]`."""
        step = STEP.search(text)
        if step is None or int(step.group(2)) < 20:
            return
        done, everything = int(step.group(1)), int(step.group(2))
        message = f"llama.cpp: compiling {100 * done // everything:3d}% ({done}/{everything})"
        if self._terminal:
            print(f"\r{message}", end="", flush=True)
            self._wrote = True
        elif 10 * done // everything != self._tenth:
            self._tenth = 10 * done // everything
            print(message, flush=True)

    def end(self, message: str) -> None:
        """The last line."""
        print(("\r\033[K" if self._wrote else "") + message, flush=True)


def install_rest(python: Path, lock: Path, log: Path) -> None:
    """Everything else that is pinned, then this project in place."""
    print("installing the other packages", flush=True)
    run([str(python), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(lock)], log)
    pip = [str(python), "-m", "pip", "install", "-q", "--no-deps"]
    run(
        [*pip, "--no-build-isolation", "-e", str(ROOT)] if has_hatchling(python) else [*pip, "-e", str(ROOT)],
        log,
    )


def has_hatchling(python: Path) -> bool:
    """Whether the build backend is installed already, so that pip need not fetch it again."""
    probe = "import hatchling, editables"
    return subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode == 0


def run(command: list[str], log: Path) -> None:
    """Run a command to its end, its output in the log."""
    for _ in output_of(command, log, dict(os.environ)):
        pass


def output_of(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[str]:
    """Lines of a command's output, kept in ``log`` too. Raises InstallError with the last ones when it fails."""
    tail: list[str] = []
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as kept,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                kept.write(line)
                tail = [*tail[-14:], line.rstrip()]
                yield line
        except KeyboardInterrupt:
            process.terminate()
            raise
    if process.returncode:
        last = "\n  ".join(tail)
        raise InstallError(f"this failed: {' '.join(command)}\n  {last}\nthe whole output is in {log}")


def main() -> int:
    """Exit status 0, 1 after a failure that was explained, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--lock", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        check_machine()
        venv = arguments.venv.absolute()
        python = make_venv(venv)
        log = venv / LOG
        install_llama(python, arguments.lock, log)
        install_rest(python, arguments.lock, log)
    except InstallError as error:
        print(f"\ninstall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninstall: stopped; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
