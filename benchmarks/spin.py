"""How long threads that wait should spin: speeds on free cores and beside as many endless loops as there are cores.

    python benchmarks/spin.py MODEL.gguf [--rounds 7] [--settings passive,1000,10000,100000,default,active]

One host for each setting, all loaded at once, asked in turns: a prompt of 400 tokens and 48 decoded ones. ``passive``
and ``active`` are values of OMP_WAIT_POLICY, ``default`` is OpenMP's own choice, a number is GOMP_SPINCOUNT; ``1000/1``
is that with one thread. Fair beside the loops is half of the speed on free cores. The last column is the CPU time of a
host with nothing to do.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil

from benchmarks.common import BareHost
from gateway.benchmarking.hogs import busy_loops
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.texts import BenchmarkTexts

SETTINGS = ("passive", "1000", "10000", "100000", "default", "active")
IDLE_SECONDS = 2.0


def environment(setting: str) -> dict[str, str]:
    """The variables of a setting; empty ones are as good as absent."""
    if setting.isdigit():
        return {"GOMP_SPINCOUNT": setting}
    return {"OMP_WAIT_POLICY": setting} if setting in ("passive", "active") else {"OMP_WAIT_POLICY": ""}


def started(model: Path, setting: str) -> BareHost:
    """A host with a setting; ``1000/2`` is with two threads."""
    spinning, _, threads = setting.partition("/")
    flags = ("--context", "4096", "--threads", threads or "0", "--drafts", "0")
    return BareHost(model, *flags, env=environment(spinning))


def speeds(host: BareHost, text: str) -> tuple[float, float]:
    """Tokens a second of reading the prompt and of decoding."""
    host.send("generate", prompt=text, max_tokens=48, ignore_eos=True, sampling={"seed": 1})
    ended = host.until("finished")
    read = ended["prompt_tokens"] - ended["cached_tokens"]
    return read / ended["prefill_seconds"], ended["completion_tokens"] / ended["decode_seconds"]


def idle_cpu(host: BareHost) -> float:
    """Share of a core that a host takes while it waits, in percent."""
    process = psutil.Process(host.process.pid)
    before = process.cpu_times()
    time.sleep(IDLE_SECONDS)
    after = process.cpu_times()
    return 100 * (after.user + after.system - before.user - before.system) / IDLE_SECONDS


def measure(model: Path, settings: list[str], rounds: int) -> None:
    """Print a row for each setting."""
    hosts: dict[str, BareHost] = {}
    rows: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    try:
        for setting in settings:  # one after the other: a new host measures
            host = hosts[setting] = started(model, setting)
            host.until("ready")
            speeds(host, BenchmarkTexts("warm", 1.1).text(100))
        for round_ in range(rounds):
            text = BenchmarkTexts(f"spin {round_}", 1.1).text(400)
            for crowded in (False, True):
                with busy_loops() if crowded else nullcontext():
                    for setting, host in hosts.items():
                        # The end of the prompt makes it new in this host.
                        rows.setdefault((setting, crowded), []).append(speeds(host, f"{crowded} {text}"))
        idle = {setting: idle_cpu(host) for setting, host in hosts.items()}
    finally:
        for host in hosts.values():
            host.close()
    for setting in settings:
        free, beside = rows[setting, False], rows[setting, True]
        cells = [_cell([row[part] for row in some]) for some in (free, beside) for part in (0, 1)]
        shares = [
            statistics.median(row[part] for row in beside) / statistics.median(row[part] for row in free)
            for part in (0, 1)
        ]
        cells += [f"{share:.2f}" for share in shares]
        print(f"| {model.stem} | {setting} | {' | '.join(cells)} | {idle[setting]:.1f} % |", flush=True)


def _cell(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    asked = parser.parse_args()
    print(f"{this_machine()}; {asked.rounds} rounds. Tokens a second, median (lowest to highest).\n")
    head = ("prompt, free", "decoding, free", "prompt, crowded", "decoding, crowded")
    print(f"| model | spinning | {' | '.join(head)} | share: prompt | share: decoding | idle CPU |")
    print(f"|---|---|{'---|' * (len(head) + 3)}")
    for model in asked.models:
        measure(model.resolve(), asked.settings.split(","), asked.rounds)


if __name__ == "__main__":
    main()
