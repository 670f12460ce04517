"""What prompt-lookup speculation gains where replies repeat their prompts: the jobs of the demo model.

    python benchmarks/speculation.py [--model MODEL.gguf] [--prompts 20] [--rounds 5] [--threads 2]

Two hosts, one with draft tokens and one without, get the same prompts in turns. The prompts come from the generator of
the demo model's training data, with names that training has not seen. Replies are greedy. Printed for each job: decoded
tokens per second of both, the median ratio of the rounds with the lowest and the highest, and for how many prompts the
replies were the same.
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

from benchmarks.common import DEMO_MODEL, BareHost, command_line, spread

sys.path.insert(0, str(DEMO_MODEL.parent))  # its scripts import each other without a package

AIM = 1.5


def prompts(job: str, count: int) -> list[str]:
    """Return prompts as the product sends them, the same for every run."""
    from chat_summary import chat_tree  # type: ignore[import-not-found]
    from dialogue import history_tree  # type: ignore[import-not-found]
    from tasks import answer_tree  # type: ignore[import-not-found]

    rng = random.Random(f"speculation {job}")
    made = []
    for _ in range(count):
        if job == "answer":
            tree = answer_tree(rng, True, 2, 4, 3)
        else:
            make = chat_tree if job == "summary of a chat" else history_tree
            tree = make(rng, True, rng.randint(6, 12))
        made.append(tree.prefix + tree.branches[0].suffix)
    return made


def run(host: BareHost, texts: list[str]) -> tuple[int, float, list[str]]:
    """Return how many tokens were decoded after the first of each reply, the seconds for that, and the replies."""
    tokens, seconds, replies = 0, 0.0, []
    for text in texts:
        host.send(
            "generate",
            messages=[{"role": "user", "content": text}],
            max_tokens=220,
            sampling={"temperature": 0.0},
        )
        pieces = []
        for _, event in host.events():
            if event["event"] == "delta":
                pieces.append(event["text"])
            elif event["event"] == "finished":
                tokens += max(0, event["completion_tokens"] - 1)
                seconds += event["decode_seconds"]
                break
        replies.append("".join(pieces))
    return tokens, seconds, replies


def measure(model: Path, count: int, rounds: int, threads: int) -> None:
    flags = ("--context", "4096", "--threads", str(threads))
    hosts = {name: BareHost(model, *flags, "--drafts", name) for name in ("8", "0")}
    print("| job | with drafts, tokens/s | without | ratio | the same replies |")
    print("|---|---|---|---|---|")
    try:
        for host in hosts.values():
            host.until("ready")
        for job in ("answer", "summary", "summary of a chat"):
            texts = prompts(job, count)
            speeds: dict[str, list[float]] = {name: [] for name in hosts}
            replies: dict[str, list[str]] = {}
            for round_ in range(-1, rounds):  # the first round fills the cache and does not count
                for name, host in hosts.items():
                    tokens, seconds, replies[name] = run(host, texts)
                    if round_ >= 0:
                        speeds[name].append(tokens / seconds)
            ratios = [a / b for a, b in zip(speeds["8"], speeds["0"], strict=True)]
            same = sum(a == b for a, b in zip(replies["8"], replies["0"], strict=True))
            print(
                f"| {job} | {statistics.median(speeds['8']):.0f} | {statistics.median(speeds['0']):.0f} "
                f"| {spread(ratios)} | {same} of {count} |"
            )
    finally:
        for host in hosts.values():
            host.shut_down()


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--model", type=Path, default=DEMO_MODEL)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    measure(asked.model, asked.prompts, asked.rounds, asked.threads)
    print(f"\nThe aim is a ratio of {AIM} for summaries.")


if __name__ == "__main__":
    main()
