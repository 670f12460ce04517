"""How much of its prompts a long conversation finds in the KV cache of the real model host.

    python benchmarks/memory_cache.py [MODEL] [--turns 1000] [--seconds 300] [--threads 2]

One conversation with short replies goes on and on; compactions happen as they come. Counted are the tokens of each
reply's prompt and those of them that the host had in its cache, apart for the first prompt after a compaction, which
begins anew after the summaries. Printed: a Markdown table; its last row is the one to keep.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx2
from memory_server import conversations_only

from tests.end_to_end.server import Server

AIM = 0.85
_LINE = "On day {} the ferry to the island left at {}:15 and the ticket cost {} dong, said the woman at the counter."


@dataclass
class Count:
    """Prompt tokens, and how many of them were cached."""

    prompts: int = 0
    tokens: int = 0
    cached: int = 0

    def add(self, tokens: int, cached: int) -> None:
        """One prompt."""
        self.prompts += 1
        self.tokens += tokens
        self.cached += cached

    @property
    def share(self) -> float:
        """Of all tokens, those from the cache."""
        return self.cached / self.tokens if self.tokens else 0.0


def talk(server: Server, turns: int, seconds: float) -> tuple[Count, Count, int]:
    """Prompts between compactions and right after one, and how many summaries were made."""
    between, after = Count(), Count()
    begun, covered = time.monotonic(), 0
    with httpx2.Client(base_url=server.url, timeout=300) as client:
        path = (
            f"/v1/conversations/{client.post('/v1/conversations', json={}).raise_for_status().json()['id']}"
        )
        for turn in range(turns):
            if time.monotonic() - begun > seconds:
                break
            body = {"text": _LINE.format(turn, turn % 24, 1000 + turn * 7), "max_tokens": 24}
            said = client.post(f"{path}/messages", json=body).raise_for_status().json()
            budget = said["budget"]
            summaries = client.get(f"{path}/summaries", params={"limit": 1}).raise_for_status().json()["data"]
            newest = summaries[0]["seq"] if summaries else 0
            if turn:  # the first prompt has nothing before it
                (between if newest == covered else after).add(budget["total"], budget["cached_tokens"])
            covered = newest
        return between, after, len(client.get(f"{path}/summaries", params={"limit": 200}).json()["data"])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", default="hearth-demo")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300.0, help="no new turn is begun after that time")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    with conversations_only(asked.model, asked.threads) as server:
        between, after, summaries = talk(server, asked.turns, asked.seconds)
    print("| model | turns | summaries | from the cache | after a compaction | aim |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {asked.model} | {between.prompts + after.prompts + 1} | {summaries} | {between.share:.3f} "
        f"| {after.share:.3f} ({after.prompts} prompts) | {AIM} |"
    )


if __name__ == "__main__":
    main()
