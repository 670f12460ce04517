"""The time from a request that starts the model host to its first token, in parts.

    python benchmarks/wake_up.py MODEL.gguf [MODEL.gguf ...] [--runs 10] [--tokens 1800]

Each run starts a host process for the next turn of a conversation of 1,800 tokens that an earlier process has saved,
and another one without the snapshot. The parts end at events of the host:

start      process start and imports, until ``loading``; the load begins beside them
load       the rest of the load, until ``ready``
restore    tokenizing, restoring and the first step, until ``started``
prefill    steps for what was not restored, until the first ``delta``
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from benchmarks.common import BareHost, command_line, spread
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.texts import BenchmarkTexts

PARTS = ("start", "load", "restore", "prefill", "total")
Messages = list[dict[str, str]]


def run(
    model: Path, messages: Messages, folder: Path | None, flags: list[str]
) -> tuple[dict[str, float], str]:
    """Start a host. Return the seconds of each part with the number of restored tokens, and the reply."""
    saving = ["--snapshots", str(folder)] if folder is not None else []
    host = BareHost(model, *saving, *flags)
    host.send("generate", messages=messages, max_tokens=8, owner="bench", sampling={"temperature": 0})
    marks: dict[str, float] = {}
    reply, restored = "", 0
    for when, event in host.events():
        marks.setdefault(event["event"], when - host.started)
        reply += event.get("text", "")
        if event["event"] == "started":
            restored = event["cached_tokens"]
        if event["event"] == "finished":
            break
    host.shut_down()
    first = marks.get("delta", marks["finished"])  # a token may be without text
    begun, loaded, taken = marks["loading"], marks["ready"], marks["started"]
    parts = (begun, loaded - begun, taken - loaded, first - taken, first)
    return {**dict(zip(PARTS, parts, strict=True)), "restored": float(restored)}, reply


def conversation(tokens: int) -> Messages:
    """Return turns of about 100 tokens each, the last one the user's."""
    texts = BenchmarkTexts("wake", 1.1)
    count = tokens // 100 | 1
    return [{"role": ("user", "assistant")[n % 2], "content": texts.text(100)} for n in range(count)]


def measure(model: Path, runs: int, tokens: int, flags: list[str]) -> None:
    history = conversation(tokens)
    with tempfile.TemporaryDirectory() as folder:
        _, reply = run(model, history, Path(folder), flags)
        turn = [*history, {"role": "assistant", "content": reply}, {"role": "user", "content": "And then?"}]
        saved, unsaved = [], []
        for _ in range(runs):
            unsaved.append(run(model, turn, None, flags)[0])
            # Each run has a folder of its own, because what one run saves would help the next.
            with tempfile.TemporaryDirectory() as copy:
                shutil.copytree(folder, copy, dirs_exist_ok=True)
                saved.append(run(model, turn, Path(copy), flags)[0])
    for name, rows in (("not saved", unsaved), ("saved", saved)):
        cells = [spread([row[part] for row in rows]) for part in PARTS]
        restored = statistics.median(row["restored"] for row in rows)
        print(f"| {model.stem}, {name} | {' | '.join(cells)} | {restored:.0f} |", flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=1800)
    parser.add_argument("--threads", type=int, default=0)
    asked = parser.parse_args()
    print(f"{this_machine()}; {asked.runs} runs. Seconds, median (lowest to highest).\n")
    print(f"| model | {' | '.join(PARTS)} | tokens restored |\n|---|{'---|' * (len(PARTS) + 1)}")
    for model in asked.models:
        measure(model.resolve(), asked.runs, asked.tokens, ["--threads", str(asked.threads)])


if __name__ == "__main__":
    main()
