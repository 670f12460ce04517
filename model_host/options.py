"""The command line of a model host."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from model_host.engine.threads import Plan, parse_plan


class HostOptions(argparse.Namespace):
    """The arguments, typed. ``thread_plan`` is empty where it must be measured, None where ``threads`` is fixed."""

    model: Path
    embedding: bool
    rerank: bool
    adapter: list[tuple[str, Path]]
    context: int
    parallel: int
    chunk: int
    cores: int
    threads: int
    thread_plan: Plan | None
    max_waiting: int
    drafts: int
    snapshots: Path | None
    snapshot_bytes: int
    shared_snapshot_bytes: int
    snapshot_after: float
    parent: int


def parse_options() -> HostOptions:
    """Parse the process's arguments; exits with a message on a wrong one."""
    parser = argparse.ArgumentParser(
        prog="model_host", description="Serve one GGUF model on stdin and stdout. Started by the gateway."
    )
    add = parser.add_argument
    add("--model", type=Path, required=True, help="the GGUF file")
    add("--embedding", action="store_true", help="serve vectors; the model is an embedding model")
    add("--rerank", action="store_true", help="serve scores of texts for a query; the model is a reranker")
    add(
        "--adapter",
        type=_adapter,
        action="append",
        default=[],
        help="NAME=PATH of a LoRA adapter that requests may name; may be repeated",
    )
    add(
        "--context",
        type=int,
        default=8192,
        help="cells of the KV cache, or tokens of the longest text to embed",
    )
    add("--parallel", type=int, default=8, help="sequences decoded together")
    add("--chunk", type=int, default=512, help="most tokens of one step")
    add("--threads", type=int, default=0, help="0: the fastest number for each batch size")
    add(
        "--thread-plan",
        type=parse_plan,
        default={},
        help="SIZE:THREADS,… as measured before; else it is measured",
    )
    add("--max-waiting", type=int, default=64, help="most requests that wait")
    add("--drafts", type=int, default=8, help="most draft tokens of one step; 0: none")
    add("--snapshots", type=Path, help="folder for saved KV sequences; without it none are saved")
    add("--snapshot-bytes", type=int, default=1 << 32, help="most bytes of all snapshots of conversations")
    add("--shared-snapshot-bytes", type=int, default=1 << 30, help="most bytes of those of shared text")
    add("--snapshot-after", type=float, default=20.0, help="idle seconds before sequences are saved")
    add("--parent", type=int, default=0, help="process id to die with")
    add("--cores", type=int, default=len(os.sched_getaffinity(0)), help="cores that it may use")
    options = parser.parse_args(namespace=HostOptions())
    if options.threads:
        options.thread_plan = None
    else:
        options.threads = options.cores
    return options


def _adapter(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    return name, Path(path)
