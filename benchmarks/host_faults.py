"""How service goes on while the model host is killed, or stopped so that it hangs.

    python benchmarks/host_faults.py [--kills 500] [--stops 100] [--clients 8] [--embedding] [--seed 7]

A real server on a tiny random model, and clients that ask without a pause and try again at once. Each kill is a SIGKILL
0.2 to 1.2 seconds after the one before, whatever the host does then: most hit it while it loads. Each stop is a SIGSTOP
0 to 2 seconds after service is back; the server has to notice by itself that nobody answers.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.end_to_end.server import Server, alive
from tests.end_to_end.storm import Storm
from tests.waiting import eventually

MODELS = Path(__file__).resolve().parent.parent / "models"
NOTICED_SECONDS = 60.0  # a stopped host that still lives then is never noticed


def main() -> int:
    """Exit status 1 when a request ended in anything but a reply or a retriable error."""
    arguments = _parse()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        server = _server(Path(folder), embedding=arguments.embedding)
        try:
            wrong = _kills(server, arguments, chance) if arguments.kills else 0
            wrong += _stops(server, arguments, chance) if arguments.stops else 0
        finally:
            server.stop()
    return 1 if wrong else 0


def _kills(server: Server, arguments: argparse.Namespace, chance: random.Random) -> int:
    begun = time.monotonic()
    with Storm(server, arguments.clients, embedding=arguments.embedding) as storm:
        storm.served_since(0.0)
        for number in range(arguments.kills):
            time.sleep(chance.uniform(0.2, 1.2))
            storm.kill()
            if number % 50 == 49:
                _tell(f"{number + 1} kills", storm)
        killed = time.monotonic()
        back = storm.served_since(killed)
    _tell(f"{arguments.kills} kills in {killed - begun:.0f} s; service back after {back:.2f} s", storm)
    return len(storm.wrong)


def _stops(server: Server, arguments: argparse.Namespace, chance: random.Random) -> int:
    noticed: list[float] = []
    back: list[float] = []
    with Storm(server, arguments.clients, embedding=arguments.embedding) as storm:
        for number in range(arguments.stops):
            storm.served_since(time.monotonic())
            time.sleep(chance.uniform(0.0, 2.0))
            if number % 4 == 0:
                storm.kill()  # so that the next one may hit a host that loads
                time.sleep(chance.uniform(0.1, 1.0))
            pid = storm.stop()
            stopped = time.monotonic()
            eventually(lambda pid=pid: not alive(pid), "the stopped host was not noticed", NOTICED_SECONDS)
            noticed.append(time.monotonic() - stopped)
            back.append(storm.served_since(stopped + noticed[-1]))
            if number % 10 == 9:
                _tell(f"{number + 1} stops, noticed after {max(noticed):.1f} s at most", storm)
    for name, values in (("noticed after", noticed), ("service back after that", back)):
        spread = f"median {statistics.median(values):.2f} s, at most {max(values):.2f} s"
        print(f"{arguments.stops} stops {name}: {spread}", flush=True)
    _tell("all stops", storm)
    return len(storm.wrong)


def _tell(what: str, storm: Storm) -> None:
    print(
        f"{what}: {storm.replies} replies, {storm.retriable} retriable errors, {len(storm.wrong)} others "
        f"{storm.wrong[:3] or ''}, longest gap {storm.longest_gap:.1f} s",
        flush=True,
    )


def _server(folder: Path, *, embedding: bool) -> Server:
    model = _model("random_gemma.py", folder / "tiny.gguf")
    env = {"HEARTH_EMBEDDING__MODEL": str(_model("random_embedding.py", folder / "vectors.gguf"))}
    return Server(folder / "data", model, env=env if embedding else {})


def _model(script: str, target: Path) -> Path:
    subprocess.run([sys.executable, str(MODELS / script), str(target)], check=True, capture_output=True)
    return target


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument(
        "--embedding", action="store_true", help="the embedding host instead of the chat host"
    )
    parser.add_argument("--seed", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
