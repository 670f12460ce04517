"""What prompt-lookup speculation brings where replies repeat their prompts: the demo model's own jobs.

    python benchmarks/speculation.py [--model MODEL.gguf] [--prompts 20] [--rounds 5] [--threads 2]

Two hosts, one with guesses and one without, get the same prompts in turns: made-up ones of the demo model's training
generator with names that training has not seen. Replies are greedy. Printed for each job: decoded tokens a second of
both, the median ratio of the rounds with the lowest and highest, and in how many prompts the replies were the same.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models" / "demo"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.bare_host import ROOT, BareHost

AIM = 1.5


def prompts(job: str, count: int) -> list[str]:
    """Prompts as the product sends them, the same ones at every run."""
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
    """Tokens decoded after the first of each reply, the seconds that took, and the replies."""
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
    """Print a Markdown table."""
    flags = ("--context", "4096", "--threads", str(threads))
    hosts = {name: BareHost(model, *flags, "--drafts", name) for name in ("8", "0")}
    print("| job | with guesses, tokens/s | without | ratio | the same replies |")
    print("|---|---|---|---|---|")
    try:
        for host in hosts.values():
            host.until("ready")
        for job in ("answer", "summary", "summary of a chat"):
            texts = prompts(job, count)
            speeds: dict[str, list[float]] = {name: [] for name in hosts}
            replies: dict[str, list[str]] = {}
            for round_ in range(-1, rounds):  # the first one fills the cache and does not count
                for name, host in hosts.items():
                    tokens, seconds, replies[name] = run(host, texts)
                    if round_ >= 0:
                        speeds[name].append(tokens / seconds)
            ratios = sorted(a / b for a, b in zip(speeds["8"], speeds["0"], strict=True))
            same = sum(a == b for a, b in zip(replies["8"], replies["0"], strict=True))
            print(
                f"| {job} | {statistics.median(speeds['8']):.0f} | {statistics.median(speeds['0']):.0f} "
                f"| {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) | {same} of {count} |"
            )
    finally:
        for host in hosts.values():
            host.shut_down()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "demo" / "hearth-demo.gguf")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    measure(asked.model, asked.prompts, asked.rounds, asked.threads)
    print(f"\nThe aim is a ratio of {AIM} for summaries.")


if __name__ == "__main__":
    main()
