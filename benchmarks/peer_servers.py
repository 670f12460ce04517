"""Servers of other programs, which run for the duration of a comparison."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

START_SECONDS = 120.0
SLEEP_SECONDS = 5  # llama-server unloads its model after this long without use

# llama-cpp-python's server imports the multimodal library, but uses it only for images. Hearth's build leaves it out,
# so an empty module replaces it.
_WITHOUT_IMAGES = """
import runpy, sys, types
import llama_cpp
llama_cpp.mtmd_cpp = sys.modules["llama_cpp.mtmd_cpp"] = types.ModuleType("llama_cpp.mtmd_cpp")
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@contextmanager
def llama_server(
    program: Path, model: Path, log: Path, *, threads: int, context: int, slots: int
) -> Iterator[str]:
    """Yield llama-server's address. It has one KV cache for all slots, like hearth."""
    port = free_port()
    command = [str(program), "-m", str(model), "--host", "127.0.0.1", "--port", str(port), "--kv-unified"]
    command += ["-t", str(threads), "-tb", str(threads), "-c", str(context), "-np", str(slots)]
    command += ["--sleep-idle-seconds", str(SLEEP_SECONDS)]
    with running(command, log, port, "/health"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def python_server(
    source: Path, packages: Path, model: Path, log: Path, *, threads: int, context: int, slots: int
) -> Iterator[str]:
    """Yield the address of llama-cpp-python's ``examples/server``."""
    port = free_port()
    options = {"path": str(model), "alias": model.stem, "n_ctx": context, "n_seq_max": slots}
    options |= {"kv_unified": True, "threads": threads, "threads_batch": threads, "store_logits": False}
    config = log.with_suffix(".json")
    config.write_text(json.dumps({"server": {"host": "127.0.0.1", "port": port}, "model": options}))
    program = source / "examples" / "server" / "server.py"
    command = [sys.executable, "-c", _WITHOUT_IMAGES, str(program), "-C", str(config)]
    with running(command, log, port, "/v1/models", {"PYTHONPATH": str(packages)}):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(
    command: Sequence[str], log: Path, port: int, path: str, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=os.environ | dict(env or {})
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}{path}", log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx2.get(url, timeout=5).is_success:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.2)
    raise SystemExit(f"{process.args!r} did not start: {log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
