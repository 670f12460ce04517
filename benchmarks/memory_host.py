"""How much of a long conversation's prompts a real server and model find in the KV cache.

    python benchmarks/memory_host.py [MODEL] [--turns 1000] [--seconds 300] [--threads 2]

One conversation with short replies, compacted when that is due. Prints a Markdown table of the tokens of the prompts
and how many of them the host had in its KV cache. The first prompt after a compaction, which begins anew after the
summaries, is counted apart.
"""

from __future__ import annotations

import time

import httpx2

from benchmarks.common import command_line, new_server
from tests.end_to_end.server import Server

CACHED_AIM = 0.85
_DAY = "On day {} the ferry to the island left at {}:15 and the ticket cost {} dong, said the woman at the counter."

Prompts = list[tuple[int, int]]  # tokens of each prompt, and how many of them were cached


def share(prompts: Prompts) -> float:
    return sum(cached for _, cached in prompts) / max(1, sum(tokens for tokens, _ in prompts))


def count_cached(server: Server, turns: int, seconds: float) -> tuple[Prompts, Prompts, int]:
    """Return the prompts between compactions, those right after one, and the number of summaries."""
    between: Prompts = []
    after: Prompts = []
    end, covered = time.monotonic() + seconds, 0
    with httpx2.Client(base_url=server.url, timeout=300) as client:
        path = (
            f"/v1/conversations/{client.post('/v1/conversations', json={}).raise_for_status().json()['id']}"
        )
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


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("model", nargs="?", default="hearth-demo")
    parser.add_argument("--turns", type=int, default=1000, help="of the conversation")
    parser.add_argument("--seconds", type=float, default=300.0, help="after that no turn begins")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    settings = {"MODEL__THREADS": asked.threads, "MEMORY__FACTS": "false", "MEMORY__TASKS": "false"}
    with new_server(asked.model, **settings) as server:
        between, after, summaries = count_cached(server, asked.turns, asked.seconds)
    print("| model | turns | summaries | from the cache | after a compaction | aim |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {asked.model} | {len(between) + len(after) + 1} | {summaries} | {share(between):.3f} "
        f"| {share(after):.3f} ({len(after)} prompts) | {CACHED_AIM} |"
    )


if __name__ == "__main__":
    main()
