"""Time to the first token of a chat while another conversation is being compacted, against the same chat alone.

    python benchmarks/memory_interference.py [MODEL] [--pairs 60] [--seconds 240] [--threads 2]

The real server and model. In each pair a new chat sends one message alone and one beside a compaction, in turns which
comes first, so that whatever else slows the machine slows both. The compaction of a long history is under way when
the message is sent, at another moment of it in each pair, and is given up after it; how long one takes is measured
first. A pair in which it ended before the first token counts for nothing and is measured again. Printed: a Markdown
table; its last row is the one to keep.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx2
from memory_server import conversations_only

from tests.end_to_end.server import Server

AIM = 1.3
_LINE = "The ferry to the island leaves at {} and the ticket costs {} dong, said the woman at the counter."
_MET_SHARE = 0.8  # of the time that a compaction takes: it is met while it reads and while it writes


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
        role = "assistant" if number % 2 else "user"
        body = {"text": _LINE.format(f"{number % 24}:15", 1000 + number), "reply": False, "role": role}
        client.post(f"/v1/conversations/{name}/messages", json=body).raise_for_status()
    return name


class Compaction:
    """One that is under way, in a thread, until it is given up."""

    def __init__(self, url: str, conversation: str) -> None:
        self._client = httpx2.Client(base_url=url, timeout=300)
        self._path = f"/v1/conversations/{conversation}/compact"
        self._thread = threading.Thread(target=self._work)
        self._ended = threading.Event()
        self._given_up = False

    @property
    def runs(self) -> bool:
        """Whether it has not ended by itself."""
        return not self._ended.is_set()

    def _work(self) -> None:
        try:
            reply = self._client.post(self._path)
            if reply.is_error and reply.json()["error"]["code"] != "summary_rejected":
                reply.raise_for_status()
        except httpx2.HTTPError:
            if not self._given_up:
                raise
        finally:
            self._ended.set()

    def begin(self, server: Server) -> None:
        """Return when the model works for it."""
        self._thread.start()
        while self.runs and not server.health()["queue"]["running"]:
            time.sleep(0.01)

    def give_up(self) -> None:
        """Go away, which cancels it."""
        self._given_up = True
        self._client.close()
        self._thread.join()


def whole_compaction(server: Server, history: str) -> float:
    """Seconds that one takes when nothing disturbs it."""
    work, begun = Compaction(server.url, history), time.monotonic()
    work.begin(server)
    while work.runs:
        time.sleep(0.01)
    return time.monotonic() - begun


@contextmanager
def compacting(server: Server, history: str, after: float) -> Iterator[Compaction]:
    """Inside the block a compaction of ``history`` has been under way for ``after`` seconds."""
    work = Compaction(server.url, history)
    work.begin(server)
    time.sleep(after)
    try:
        yield work
    finally:
        work.give_up()


def measure(server: Server, pairs: int, seconds: float, lines: int) -> tuple[list[float], list[float], int]:
    """First tokens alone and beside a compaction, and how many pairs did not count."""
    alone: list[float] = []
    beside: list[float] = []
    missed, chance, end = 0, random.Random(1), time.monotonic() + seconds
    with httpx2.Client(base_url=server.url, timeout=300) as client:
        latest = _MET_SHARE * whole_compaction(server, filled(client, lines))
        history = filled(client, lines)
        while len(alone) < pairs and time.monotonic() < end:
            name = str(client.post("/v1/conversations", json={}).raise_for_status().json()["id"])
            first_token(client, name, "Hello there, how are you today?")
            number = len(alone) + missed
            before = first_token(client, name, _LINE.format("7:45", number)) if number % 2 else None
            with compacting(server, history, chance.uniform(0.0, latest)) as work:
                met = work.runs
                took = first_token(client, name, _LINE.format("8:45", number))
                met = met and work.runs
            after = before or first_token(client, name, _LINE.format("9:45", number))
            if met:
                alone.append(after)
                beside.append(took)
            else:
                missed += 1
                history = filled(client, lines)
    return alone, beside, missed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="hearth-demo")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=240.0, help="no new pair is begun after that time")
    parser.add_argument("--lines", type=int, default=90, help="of the history that is compacted")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    with conversations_only(asked.model, asked.threads) as server:
        alone, beside, missed = measure(server, asked.pairs, asked.seconds, asked.lines)
    if len(alone) < 2:
        raise SystemExit(
            f"only {len(alone)} pairs in {asked.seconds:.0f} s ({missed} missed): try --seconds or --lines"
        )
    ratios = sorted(b / a for a, b in zip(alone, beside, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4)
    print("| model | pairs | first token alone | beside a compaction | ratio (quartiles) | aim |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {asked.model} | {len(alone)} ({missed} missed) | {statistics.median(alone) * 1000:.0f} ms "
        f"| {statistics.median(beside) * 1000:.0f} ms "
        f"| {statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}) | {AIM} |"
    )


if __name__ == "__main__":
    main()
