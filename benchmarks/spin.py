"""Speeds of a model host on free cores and beside endless loops, and how fast it adapts to their start and end.

    python benchmarks/spin.py MODEL.gguf [--rounds 7] [--loops 1,2,4] [--settings passive,default] [--against CHECKOUT]

One host for each setting, all loaded at once, measured in turns: decoding and a prompt of 400 tokens alone, then beside
the loops, then decoding alone again. ``default`` is OpenMP's own choice, ``passive`` and ``active`` are values of
OMP_WAIT_POLICY, a number is GOMP_SPINCOUNT; ``default/1`` uses one thread. ``--against`` adds the host of another
checkout. "To adapt" and "to recover" are the seconds until decoding reaches four fifths of its later speed. A turn
waits up to a minute until other programs use less than a quarter of a core; the last column has the cores that they
used during the turn.
"""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import psutil

from benchmarks.common import BareHost, command_line, spread
from gateway.benchmarking.cpu_load import busy_loops
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.texts import BenchmarkTexts

BESIDE_SECONDS = 2.4
AFTER_SECONDS = 1.2
BIN_SECONDS = 0.2
QUIET_CORES = 0.25
COLUMNS = (
    "decode alone | beside, 1st s | beside, later | after | prefill alone | beside | s to adapt | s to recover | "
    "other cores used"
)


class Timeline:
    """Times of decoded tokens, from one short request after the other."""

    def __init__(self, host: BareHost, seconds: float) -> None:
        self._tokens: list[tuple[float, int]] = []
        self._begun = time.perf_counter()
        while time.perf_counter() < self._begun + seconds:
            host.send("generate", prompt="Hello", max_tokens=32, ignore_eos=True, sampling={"seed": 1})
            for when, event in host.events():
                if event["event"] == "delta":
                    self._tokens.append((when - self._begun, event["tokens"]))
                if event["event"] == "finished":
                    break
        self._seconds = time.perf_counter() - self._begun

    def speed(self, start: float = 0.0, end: float | None = None) -> float:
        """Tokens per second between two times."""
        end = self._seconds if end is None else end
        return sum(tokens for when, tokens in self._tokens if start <= when < end) / (end - start)

    def settled(self) -> float:
        """Seconds until the speed first reaches four fifths of that of the second half."""
        starts = [index / 20 for index in range(int(20 * (self._seconds - BIN_SECONDS)))]
        later = self.speed(self._seconds / 2)
        found = (at for at in starts if self.speed(at, at + BIN_SECONDS) >= 0.8 * later)
        return next(found, self._seconds)


def prefill(host: BareHost, seed: object) -> float:
    """Tokens per second of a prompt that is new to the host."""
    host.send("generate", prompt=f"{seed} {BenchmarkTexts(str(seed), 1.1).text(400)}", max_tokens=1)
    ended = host.until("finished")
    return float(ended["prompt_tokens"] - ended["cached_tokens"]) / float(ended["prefill_seconds"])


def busy_seconds() -> float:
    """CPU time of all programs."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq + times.steal


def own_seconds(host: BareHost) -> float:
    """CPU time of this process, its loops and a host."""
    processes = [psutil.Process(), psutil.Process(host.process.pid)]
    loops = [child for child in processes[0].children() if "-S" in child.cmdline()]
    processes += [process for loop in loops for process in (loop, *loop.children())]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def wait_for_quiet(seconds: float = 60.0) -> None:
    """Wait until other programs use little CPU time, up to ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = busy_seconds()
        time.sleep(0.4)
        if busy_seconds() - before < 0.4 * QUIET_CORES:
            return


def turn(host: BareHost, loops: int, seed: str) -> tuple[float, ...]:
    wait_for_quiet()
    begun, busy, own = time.perf_counter(), busy_seconds(), own_seconds(host)
    alone, alone_prefill = Timeline(host, 0.8), prefill(host, f"{seed} alone")
    with busy_loops(loops):
        beside, beside_prefill = Timeline(host, BESIDE_SECONDS), prefill(host, f"{seed} beside")
        own -= own_seconds(host)
        busy -= busy_seconds()
        seconds = time.perf_counter() - begun
    after = Timeline(host, AFTER_SECONDS)
    return (
        alone.speed(),
        beside.speed(0, 1),
        beside.speed(1),
        after.speed(AFTER_SECONDS / 2),
        alone_prefill,
        beside_prefill,
        beside.settled(),
        after.settled(),
        max(0.0, own - busy) / seconds,
    )


def started(model: Path, setting: str, tree: Path | None = None) -> BareHost:
    """Start a host and wait until it is ready; ``1000/2`` is GOMP_SPINCOUNT=1000 with two threads."""
    spinning, _, threads = setting.partition("/")
    env = {
        "OMP_WAIT_POLICY": spinning if spinning in ("passive", "active") else ""
    }  # empty is as good as absent
    if spinning.isdigit():
        env["GOMP_SPINCOUNT"] = spinning
    if tree is not None:
        env["PYTHONPATH"] = str(tree)
    wait_for_quiet()
    host = BareHost(model, "--context", "4096", "--threads", threads or "0", "--drafts", "0", env=env)
    host.until("ready")
    return host


def measure(model: Path, settings: list[str], loops: list[int], rounds: int, against: Path | None) -> None:
    hosts: dict[str, BareHost] = {}
    rows: dict[tuple[int, str], list[tuple[float, ...]]] = defaultdict(list)
    try:
        for setting in settings:  # one after the other: a new host measures
            hosts[setting] = started(model, setting)
        if against is not None:
            hosts[str(against)] = started(model, "default", against.resolve())
        for round_ in range(rounds):
            for count in loops:
                for setting, host in hosts.items():
                    rows[count, setting].append(turn(host, count, f"{round_} {count}"))
    finally:
        for host in hosts.values():
            host.close()
    for (count, setting), found in rows.items():
        cells = [spread(column, 0 if max(column) > 10 else 2) for column in zip(*found, strict=True)]
        print(f"| {model.stem} | {count} | {setting} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--loops", default="1,2,4")
    parser.add_argument("--settings", default="default")
    parser.add_argument("--against", type=Path, help="another checkout")
    asked = parser.parse_args()
    print(f"{this_machine()}; {asked.rounds} rounds. Tokens per second, median (lowest to highest).\n")
    print(f"| model | loops | spinning | {COLUMNS} |")
    print(f"|---|---|---|{'---|' * (COLUMNS.count('|') + 1)}")
    loops = [int(count) for count in asked.loops.split(",")]
    for model in asked.models:
        measure(model.resolve(), asked.settings.split(","), loops, asked.rounds, asked.against)


if __name__ == "__main__":
    main()
