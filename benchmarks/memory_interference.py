"""Time to the first token of a chat while another conversation is being compacted, against the same without.

    python benchmarks/memory_interference.py [MODEL] [--pairs 20]

The real server and model. The two cases take turns, so that a busy machine slows both; printed: medians and ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx2

from tests.end_to_end.server import Server

_LINE = "The ferry to the island leaves at {} and the ticket costs {} dong, said the woman at the counter."


def first_token(client: httpx2.Client, conversation: str, text: str) -> float:
    """Seconds until the first delta of a reply."""
    begun = time.perf_counter()
    body = {"text": text, "stream": True, "max_tokens": 8}
    seconds: float | None = None
    with client.stream("POST", f"/v1/conversations/{conversation}/messages", json=body) as reply:
        for line in reply.iter_lines():
            if line == "event: delta" and seconds is None:
                seconds = time.perf_counter() - begun
    if seconds is None:
        raise RuntimeError("the reply had no text")
    return seconds


def filled(client: httpx2.Client, lines: int) -> str:
    """A conversation with a history that has never been compacted."""
    name = str(client.post("/v1/conversations", json={}).raise_for_status().json()["id"])
    for number in range(lines):
        text = _LINE.format(f"{number % 24}:15", 1000 + number)
        client.post(
            f"/v1/conversations/{name}/messages", json={"text": text, "reply": False}
        ).raise_for_status()
    return name


class Compacting:
    """Compacts filled conversations one after the other while inside the block."""

    def __init__(self, url: str, lines: int) -> None:
        self._client = httpx2.Client(base_url=url, timeout=300)
        self._lines = lines
        self._stop = threading.Event()
        self._busy = threading.Event()

    def __enter__(self) -> Compacting:
        names = [filled(self._client, self._lines) for _ in range(2)]
        self._thread = threading.Thread(target=self._work, args=(names,))
        self._thread.start()
        self._busy.wait()
        return self

    def _work(self, names: list[str]) -> None:
        while not self._stop.is_set():
            for name in names:
                self._busy.set()
                self._client.post(f"/v1/conversations/{name}/compact", json={})

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="hearth-demo")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--lines", type=int, default=60)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "HEARTH_MODEL__THREADS": "2",
            "HEARTH_MEMORY__FACTS": "false",
            "HEARTH_MEMORY__TASKS": "false",
        }
        server = Server(Path(folder) / "data", asked.model, env=environment)
        try:
            alone, beside = [], []
            with httpx2.Client(base_url=server.url, timeout=300) as client:
                for number in range(asked.pairs):
                    name = str(client.post("/v1/conversations", json={}).json()["id"])
                    first_token(client, name, "Hello there, how are you today?")
                    alone.append(first_token(client, name, _LINE.format("7:45", number)))
                    with Compacting(server.url, asked.lines):
                        time.sleep(0.1)
                        beside.append(first_token(client, name, _LINE.format("8:45", number)))
        finally:
            server.stop()
    print(f"first token alone        {statistics.median(alone) * 1000:7.1f} ms (median of {len(alone)})")
    print(f"beside a compaction      {statistics.median(beside) * 1000:7.1f} ms")
    print(f"ratio                    {statistics.median(beside) / statistics.median(alone):7.2f}")
    print(
        f"medians of pairs' ratios {statistics.median(b / a for a, b in zip(alone, beside, strict=True)):7.2f}"
    )


if __name__ == "__main__":
    main()
