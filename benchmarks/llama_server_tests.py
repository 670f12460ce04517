"""Run llama-server's own tests against hearth: ``python -m benchmarks.llama_server_tests``.

The tests come from the source archive of llama-cpp-python that hearth pins. ``benchmarks/llama_server_adapter.py``
starts hearth where they start llama-server, and translates names of routes and the fields of `/completion`. Their
models are not downloaded: hearth's built-in model, and a random embedding model, answer instead. docs/api.md lists
the tests that fail and why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.common import ROOT, command_line
from benchmarks.peer_build import sources

FOLDER = ROOT / "build" / "llama_server_tests"
# The other files test routes and modes that hearth does not have: LoRA, MCP, slots as files, speculation, images, ….
FILES = (
    "basic",
    "chat_completion",
    "compat_anthropic",
    "compat_oai_responses",
    "completion",
    "embedding",
    "rerank",
    "security",
    "tokenize",
)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument(
        "--sources", type=Path, help="unpacked sources of llama-cpp-python; fetched otherwise"
    )
    parser.add_argument("--model", default="hearth-demo", help="the chat model that answers")
    parser.add_argument("files", nargs="*", default=FILES, help=f"of {', '.join(FILES)}")
    options = parser.parse_args()
    tests = (options.sources or sources()) / "vendor" / "llama.cpp" / "tools" / "server" / "tests"
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(tests, FOLDER)
    for name, script in (("embedding", "random_embedding"), ("rerank", "random_bert")):
        target = FOLDER / f"{name}.gguf"
        subprocess.run([sys.executable, ROOT / "models" / f"{script}.py", target], check=True)
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{FOLDER}", "CHAT_MODEL": options.model}
    files = [f"unit/test_{name}.py" for name in options.files]
    command = [sys.executable, "-m", "pytest", "-p", "benchmarks.llama_server_adapter", "-m", "not slow"]
    command += ["-q", "--tb=line", "-rf", "-W", "ignore", "-o", "addopts=", *files]
    raise SystemExit(subprocess.run(command, cwd=FOLDER, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
