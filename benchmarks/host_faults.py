"""How service continues while the model host is killed, or stopped so that it hangs.

    python benchmarks/host_faults.py [--kills 500] [--stops 100] [--clients 8] [--embedding] [--seed 7]

A real server runs a tiny random model; clients send requests without a pause and retry at once. Each SIGKILL comes 0.2
to 1.2 seconds after the one before, so most hit a host that loads. Each SIGSTOP comes 0 to 2 seconds after service is
back; the server has to detect the hang by itself. Exit status 1: a request ended in neither a reply nor a retriable
error.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import ROOT, command_line, new_server, spread
from tests.end_to_end.server import Server, alive
from tests.end_to_end.storm import Storm
from tests.waiting import eventually

NOTICED_SECONDS = 60.0  # a stopped host that still lives then is never detected


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--embedding", action="store_true", help="the embedding host, not the chat host")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        model = _model("random_gemma.py", Path(folder) / "tiny.gguf")
        vectors = _model("random_embedding.py", Path(folder) / "vectors.gguf") if asked.embedding else ""
        with new_server(model, EMBEDDING__MODEL=vectors) as server:
            wrong = [*_kill(server, asked, chance), *_stop(server, asked, chance)]
    return 1 if wrong else 0


def _kill(server: Server, asked: argparse.Namespace, chance: random.Random) -> list[str]:
    if not asked.kills:
        return []
    begun = time.monotonic()
    with Storm(server, asked.clients, embedding=asked.embedding) as storm:
        storm.served_since(0.0)
        for number in range(1, asked.kills + 1):
            time.sleep(chance.uniform(0.2, 1.2))
            storm.kill()
            if number % 50 == 0:
                _print(f"{number} kills", storm)
        killed = time.monotonic()
        back = storm.served_since(killed)
    _print(f"{asked.kills} kills in {killed - begun:.0f} s; service back after {back:.2f} s", storm)
    return storm.wrong


def _stop(server: Server, asked: argparse.Namespace, chance: random.Random) -> list[str]:
    if not asked.stops:
        return []
    noticed: list[float] = []
    back: list[float] = []
    with Storm(server, asked.clients, embedding=asked.embedding) as storm:
        for number in range(asked.stops):
            storm.served_since(time.monotonic())
            time.sleep(chance.uniform(0.0, 2.0))
            if number % 4 == 0:
                storm.kill()  # so that the next signal may hit a host that loads
                time.sleep(chance.uniform(0.1, 1.0))
            pid = storm.stop()
            stopped = time.monotonic()
            eventually(lambda pid=pid: not alive(pid), "the stopped host was not detected", NOTICED_SECONDS)
            noticed.append(time.monotonic() - stopped)
            back.append(storm.served_since(stopped + noticed[-1]))
            if number % 10 == 9:
                _print(f"{number + 1} stops, detected after {max(noticed):.1f} s at most", storm)
    _print(f"detected after {spread(noticed)} s, service back after another {spread(back)} s", storm)
    return storm.wrong


def _print(what: str, storm: Storm) -> None:
    print(
        f"{what}: {storm.replies} replies, {storm.retriable} retriable errors, {len(storm.wrong)} others "
        f"{storm.wrong[:3] or ''}, longest gap {storm.longest_gap:.1f} s",
        flush=True,
    )


def _model(script: str, target: Path) -> Path:
    command = [sys.executable, str(ROOT / "models" / script), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target


if __name__ == "__main__":
    sys.exit(main())
