"""Conversations on a real server and model: what they find in the KV cache, and what a compaction costs another chat.

    python benchmarks/memory_host.py cache [MODEL] [--turns 1000] [--seconds 300] [--threads 2]
    python benchmarks/memory_host.py interference [MODEL] [--pairs 60] [--seconds 300] [--threads 2]

``cache``: one conversation with short replies, compacted when that is due. Counted are the tokens of each prompt, and
those that the host had in its KV cache; the first prompt after a compaction, which begins anew after the summaries, is
counted apart.

``interference``: the time to the first token of a chat beside the compaction of another conversation, against the same
chat alone. In each pair a new chat sends one message alone and one beside a compaction, in alternating order, so that
other programs slow both. The message meets the compaction at a random moment; the compaction is cancelled after it. A
pair whose compaction ended before the first token does not count and is measured again.

Printed: a Markdown table.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor

import httpx2

from benchmarks.common import command_line, new_server
from tests.end_to_end.server import Server

CACHED_AIM = 0.85
INTERFERENCE_AIM = 1.3
_DAY = "On day {} the ferry to the island left at {}:15 and the ticket cost {} dong, said the woman at the counter."
_FERRY = "The ferry to the island leaves at {} and the ticket costs {} dong, said the woman at the counter."
_MET_SHARE = 0.8  # of a compaction's duration: a message meets it while it reads or writes


Prompts = list[tuple[int, int]]  # tokens of each prompt, and how many of them were cached


def share(prompts: Prompts) -> float:
    """Return the share of cached tokens."""
    return sum(cached for _, cached in prompts) / max(1, sum(tokens for tokens, _ in prompts))


def count_cached(server: Server, turns: int, seconds: float) -> tuple[Prompts, Prompts, int]:
    """Return the prompts between compactions, those right after one, and the number of summaries."""
    between: Prompts = []
    after: Prompts = []
    end, covered = time.monotonic() + seconds, 0
    with httpx2.Client(base_url=server.url, timeout=300) as client:
        path = f"/v1/conversations/{new_conversation(client)}"
        for turn in range(turns):
            if time.monotonic() > end:
                break
            body = {"text": _DAY.format(turn, turn % 24, 1000 + turn * 7), "max_tokens": 24}
            budget = client.post(f"{path}/messages", json=body).raise_for_status().json()["budget"]
            summaries = client.get(f"{path}/summaries", params={"limit": 1}).raise_for_status().json()["data"]
            newest = summaries[0]["seq"] if summaries else 0
            if turn:  # nothing can be cached for the first prompt
                (between if newest == covered else after).append((budget["total"], budget["cached_tokens"]))
            covered = newest
        return between, after, len(client.get(f"{path}/summaries", params={"limit": 200}).json()["data"])


def new_conversation(client: httpx2.Client, lines: int = 0) -> str:
    """Create a conversation with a history that has never been compacted, and return its id."""
    name = str(client.post("/v1/conversations", json={}).raise_for_status().json()["id"])
    for number in range(lines):
        role = "assistant" if number % 2 else "user"
        body = {"text": _FERRY.format(f"{number % 24}:15", 1000 + number), "reply": False, "role": role}
        client.post(f"/v1/conversations/{name}/messages", json=body).raise_for_status()
    return name


def first_token(client: httpx2.Client, conversation: str, text: str) -> float:
    """Return the seconds until the first delta of a reply."""
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


class Compaction:
    """A compaction in the background; its construction returns when the model works on it."""

    def __init__(self, server: Server, conversation: str) -> None:
        self._client = httpx2.Client(base_url=server.url, timeout=300)
        path = f"/v1/conversations/{conversation}/compact"
        self._reply = ThreadPoolExecutor(1).submit(self._client.post, path)
        while self.running and not server.health()["queue"]["running"]:
            time.sleep(0.01)

    @property
    def running(self) -> bool:
        return not self._reply.done()

    def wait(self) -> None:
        self._reply.result().raise_for_status()

    def cancel(self) -> None:
        if not self.running:
            self.wait()
        self._client.close()
        futures.wait([self._reply])


def measure_interference(
    server: Server, pairs: int, seconds: float, lines: int
) -> tuple[list[float], list[float], int]:
    """Return the times alone, those beside a compaction, and how many pairs did not count."""
    alone: list[float] = []
    beside: list[float] = []
    missed, rng, end = 0, random.Random(1), time.monotonic() + seconds
    with httpx2.Client(base_url=server.url, timeout=300) as client:
        history, begun = new_conversation(client, lines), time.monotonic()
        Compaction(server, history).wait()
        latest = _MET_SHARE * (time.monotonic() - begun)
        history = new_conversation(client, lines)
        while len(alone) < pairs and time.monotonic() < end:
            name = new_conversation(client)
            first_token(client, name, "Hello there, how are you today?")
            number = len(alone) + missed
            before = first_token(client, name, _FERRY.format("7:45", number)) if number % 2 else None
            compaction = Compaction(server, history)
            time.sleep(rng.uniform(0.0, latest))
            took = first_token(client, name, _FERRY.format("8:45", number))
            met = compaction.running
            compaction.cancel()
            after = before or first_token(client, name, _FERRY.format("9:45", number))
            if met:
                alone.append(after)
                beside.append(took)
            else:
                missed += 1
                history = new_conversation(client, lines)
    return alone, beside, missed


def print_cached(server: Server, asked: argparse.Namespace) -> None:
    between, after, summaries = count_cached(server, asked.turns, asked.seconds)
    print("| model | turns | summaries | from the cache | after a compaction | aim |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {asked.model} | {len(between) + len(after) + 1} | {summaries} | {share(between):.3f} "
        f"| {share(after):.3f} ({len(after)} prompts) | {CACHED_AIM} |"
    )


def print_interference(server: Server, asked: argparse.Namespace) -> None:
    alone, beside, missed = measure_interference(server, asked.pairs, asked.seconds, asked.lines)
    if len(alone) < 2:
        raise SystemExit(
            f"only {len(alone)} pairs in {asked.seconds:.0f} s ({missed} missed): raise --seconds or --lines"
        )
    ratios = [b / a for a, b in zip(alone, beside, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    print("| model | pairs | first token alone | beside a compaction | ratio (quartiles) | aim |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {asked.model} | {len(alone)} ({missed} missed) | {statistics.median(alone) * 1000:.0f} ms "
        f"| {statistics.median(beside) * 1000:.0f} ms "
        f"| {statistics.median(ratios):.2f} ({low:.2f} to {high:.2f}) | {INTERFERENCE_AIM} |"
    )


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("what", choices=("cache", "interference"))
    parser.add_argument("model", nargs="?", default="hearth-demo")
    parser.add_argument("--turns", type=int, default=1000, help="of the conversation (cache)")
    parser.add_argument("--pairs", type=int, default=60, help="(interference)")
    parser.add_argument("--lines", type=int, default=90, help="of the history to compact (interference)")
    parser.add_argument("--seconds", type=float, default=300.0, help="after that no turn or pair begins")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    settings = {"MODEL__THREADS": asked.threads, "MEMORY__FACTS": "false", "MEMORY__TASKS": "false"}
    with new_server(asked.model, **settings) as server:
        (print_cached if asked.what == "cache" else print_interference)(server, asked)


if __name__ == "__main__":
    main()
