"""The time to the first token of a prompt that was read before: warm, and after the model was unloaded.

    python benchmarks/read_twice.py MODEL.gguf [MODEL.gguf ...] [--rounds 5] [--tokens 1781] [--system 600] [--page]

In each round a first host answers a conversation with a system prompt, and another one a question about a public page.
Each prompt that repeats part of that is then sent to three hosts: one without snapshots (fresh), one that has just
answered the first prompt (warm), and one that starts with its snapshots (unloaded). Seconds are from the request to the
first token; the ratios divide by ``fresh`` of the same round. "With the load" adds the start of the host, which
``fresh`` never includes. ``--page`` asks about the page only.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common import BareHost, command_line, spread
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.texts import BenchmarkTexts

TURN = 120  # tokens of a message of the conversation
Messages = list[dict[str, Any]]


def ask(host: BareHost, messages: Messages, owner: str = "bench") -> tuple[float, int, int, str]:
    """Seconds to the first token, tokens of the prompt, how many of them were cached, and the reply."""
    begun = time.perf_counter()
    host.send("generate", messages=messages, max_tokens=24, owner=owner, sampling={"temperature": 0})
    first, reply = 0.0, ""
    for when, event in host.events():
        if event["event"] in ("delta", "finished") and not first:
            first = when - begun
        reply += event.get("text", "")
        if event["event"] == "finished":
            return first, event["prompt_tokens"], event["cached_tokens"], reply
    raise AssertionError("the events end with an error")


def start(model: Path, flags: list[str], folder: Path | None = None) -> BareHost:
    host = BareHost(model, *flags, *([] if folder is None else ["--snapshots", str(folder)]))
    host.until("ready")
    return host


@dataclass
class Row:
    """Measurements of all rounds for one kind of prompt."""

    counts: list[tuple[int, int, int]] = field(default_factory=list)  # tokens, cached warm, cached unloaded
    fresh: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    unloaded: list[float] = field(default_factory=list)
    with_load: list[float] = field(default_factory=list)

    def cells(self) -> str:
        counts = [str(round(statistics.median(column))) for column in zip(*self.counts, strict=True)]
        seconds = [spread(self.fresh), spread(self.warm), spread(self.unloaded)]
        ratios = [
            spread([each / fresh for each, fresh in zip(values, self.fresh, strict=True)])
            for values in (self.warm, self.unloaded, self.with_load)
        ]
        return " | ".join([*counts, *seconds, *ratios])


def public(text: str, question: str) -> Messages:
    return [{"role": "user", "content": [{"text": text, "shared": True}, {"text": question}]}]


def measure(model: Path, asked: argparse.Namespace) -> None:
    """Print the rows of a model."""
    rows: dict[str, Row] = defaultdict(Row)
    bytes_: dict[str, list[int]] = defaultdict(list)
    for number in range(asked.rounds):
        with tempfile.TemporaryDirectory() as name:
            _round(model, asked, BenchmarkTexts(f"twice {number}", 1.1), Path(name), rows, bytes_)
    for case, row in rows.items():
        print(f"| {model.stem}, {case} | {row.cells()} |", flush=True)
    for kept, sizes in bytes_.items():
        print(f"\n{model.stem}: {round(statistics.median(sizes)):,} bytes saved of the {kept}", flush=True)


def _round(
    model: Path,
    asked: argparse.Namespace,
    texts: BenchmarkTexts,
    folder: Path,
    rows: dict[str, Row],
    bytes_: dict[str, list[int]],
) -> None:
    flags = ["--threads", str(asked.threads)]
    rules = {"role": "system", "content": texts.text(asked.system)}
    turns = range(max(1, (asked.tokens - asked.system) // TURN) | 1)
    talk = [{"role": ("user", "assistant")[n % 2], "content": texts.text(TURN)} for n in turns]
    chat: Messages = [rules, *talk]
    page = f"Answer from the page.\n\n{texts.text(asked.tokens)}\n\nQuestion: "
    firsts = {"chat": ("bench", chat), "page": ("alice", public(page, texts.text(20)))}
    cases: list[tuple[str, str, Messages]] = [
        ("second question about a page", "page", public(page, texts.text(20)))
    ]
    if asked.page:
        del firsts["chat"]
    replies = {}
    for kept, (owner, messages) in firsts.items():
        host = start(model, flags, folder / kept)
        replies[kept] = ask(host, messages, owner)[3]
        host.shut_down()
        bytes_[kept].append(sum(file.stat().st_size for file in (folder / kept).rglob("*.kv")))
    if not asked.page:
        said = {"role": "assistant", "content": replies["chat"]}
        edited = {"role": "user", "content": texts.text(TURN)}
        other = {"role": "user", "content": texts.text(30)}
        cases += [
            ("next message", "chat", [*chat, said, other]),
            ("reply again", "chat", chat),
            ("edited last message", "chat", [*chat[:-1], edited]),
            ("new chat, same system prompt", "chat", [rules, other]),
        ]
    for case, kept, messages in cases:
        owner = "bob" if kept == "page" else "bench"
        row = rows[case]
        host = start(model, flags)
        fresh, count, _, _ = ask(host, messages, owner)
        host.close()
        host = start(model, flags)
        ask(host, firsts[kept][1], firsts[kept][0])
        warm, _, warm_cached, _ = ask(host, messages, owner)
        host.close()
        copy = folder / case.replace(" ", "-")
        shutil.copytree(folder / kept, copy)
        host = start(model, flags, copy)
        load = time.perf_counter() - host.started
        unloaded, _, cached, _ = ask(host, messages, owner)
        host.close()
        row.counts.append((count, warm_cached, cached))
        row.fresh.append(fresh)
        row.warm.append(warm)
        row.unloaded.append(unloaded)
        row.with_load.append(load + unloaded)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--tokens", type=int, default=1781, help="of the conversation, and of the page")
    parser.add_argument("--system", type=int, default=600, help="tokens of the system prompt")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", action="store_true", help="measure the page only")
    parser.add_argument("--threads", type=int, default=0)
    asked = parser.parse_args()
    print(f"{this_machine()}\n")
    columns = [
        "model, prompt",
        "tokens",
        "cached warm",
        "cached unloaded",
        "seconds fresh",
        "warm",
        "unloaded",
    ]
    columns += ["ratio warm", "ratio unloaded", "with the load"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for model in asked.models:
        measure(model.resolve(), asked)


if __name__ == "__main__":
    main()
