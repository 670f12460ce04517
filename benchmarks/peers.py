"""hearth, llama-server and llama-cpp-python's server in turns, on the same machine, model, threads and texts.

    python benchmarks/peers.py [--shape 270m] [--runs 5] [--scenario NAME ...] [--out RESULTS.json]
    python benchmarks/peers.py --table RESULTS.json

``benchmarks/peer_build.py`` builds the peers from the source archive that hearth pins; the scenarios are those of
`hearth bench`. Every round starts new servers, because one process can be a fifth faster than the next for its whole
life, depending on where its threads and memory are placed. Printed: a Markdown table with medians, the lowest and
highest value, and the ratios of hearth to the others, each of two values of the same round.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import msgspec

from benchmarks import peer_build, peer_servers
from benchmarks.common import command_line, new_server, spread
from gateway.base.cores import usable_cores
from gateway.benchmarking.flows import SCENARIOS, Scenario, scenarios
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.report import BenchmarkReport, Progress, Result, Series, measure
from gateway.benchmarking.target import Target

# Starts all servers and yields their addresses, hearth's first.
Servers = Callable[[], AbstractContextManager[dict[str, str]]]

HEARTH, SERVER, PYTHON = "hearth", "llama-server", "llama-cpp-python"
# A model with random weights repeats itself at temperature 0, which is too easy a case for drafts.
LEFT_OUT = ("copying",)


def main() -> None:
    asked = _arguments()
    if asked.table is not None:
        print(table(msgspec.json.decode(asked.table.read_bytes(), type=BenchmarkReport)))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are stopped
    chosen = scenarios(asked.scenario or [each.name for each in SCENARIOS if each.name not in LEFT_OUT])
    source = asked.sources or peer_build.sources()
    program = asked.llama_server or peer_build.llama_server(source)
    packages = None if asked.no_python else peer_build.server_packages()
    model = asked.model.resolve() if asked.model else peer_build.model(source, asked.shape)
    limits = {"threads": asked.threads, "context": asked.context, "slots": asked.slots}

    @contextmanager
    def servers() -> Iterator[dict[str, str]]:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            here = Path(folder)
            urls = {HEARTH: stack.enter_context(_hearth(model, **limits))}
            log = here / "llama-server.log"
            urls[SERVER] = stack.enter_context(peer_servers.llama_server(program, model, log, **limits))
            if packages is not None:
                log = here / "python.log"
                server = peer_servers.python_server(source, packages, model, log, **limits)
                urls[PYTHON] = stack.enter_context(server)
            yield urls

    print(table(asyncio.run(_measure(servers, chosen, asked))))


def _arguments() -> argparse.Namespace:
    parser = command_line(__doc__)
    parser.add_argument("--shape", choices=("270m", "1b"), default="270m", help="of the model")
    parser.add_argument("--model", type=Path, help="this model instead")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scenario", action="append", help="only this one; may be given more than once")
    parser.add_argument("--scale", type=float, default=1.0, help="of the texts' lengths")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=16_384)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--sources", type=Path, help="an unpacked source archive of llama-cpp-python")
    parser.add_argument("--llama-server", type=Path, help="the program, if it is built already")
    parser.add_argument("--no-python", action="store_true", help="without llama-cpp-python's server")
    parser.add_argument("--out", type=Path, help="write all values to this file after every round")
    parser.add_argument("--table", type=Path, help="print the table of such a file, measure nothing")
    asked = parser.parse_args()
    if asked.runs < 1:
        parser.error("--runs must be at least 1")
    return asked


@contextmanager
def _hearth(model: Path, *, threads: int, context: int, slots: int) -> Iterator[str]:
    # With a thread for each core, hearth runs with its default, which uses fewer threads when that is faster.
    chosen = 0 if threads == usable_cores() else threads
    limits = {"MODEL__THREADS": chosen, "MODEL__CONTEXT": context, "MODEL__PARALLEL": slots}
    with new_server(model, **limits) as server:
        yield server.url


async def _measure(
    servers: Servers, chosen: tuple[Scenario, ...], asked: argparse.Namespace
) -> BenchmarkReport:
    """Run all rounds. After each, write the results so far to ``asked.out``."""
    machine = this_machine()
    results: dict[str, Result] = {}
    for round_ in range(asked.runs):

        def progress(_: int, scenario: Scenario, target: Target, number: int = round_ + 1) -> None:
            what = f"round {number} of {asked.runs}: {scenario.name} on {target.label}"
            print(what, file=sys.stderr, flush=True)

        with servers() as urls:
            for result in await _round(urls, chosen, round_, asked.scale, progress):
                if result.label in results:
                    results[result.label].extend(result)
                else:
                    results[result.label] = result
        found = [results[label] for label in urls]
        report = BenchmarkReport(machine=machine, seed=1, rounds=round_ + 1, scale=asked.scale, results=found)
        if asked.out is not None:
            asked.out.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    return report


async def _round(
    urls: dict[str, str], chosen: tuple[Scenario, ...], number: int, scale: float, progress: Progress
) -> list[Result]:
    """Run every scenario once on every server, in an order that is reversed from round to round."""
    async with AsyncExitStack() as stack:
        targets = [await stack.enter_async_context(Target(url, label=label)) for label, url in urls.items()]
        for target in targets:
            await target.prepare()
        turns = targets if number % 2 == 0 else targets[::-1]
        return await measure(turns, chosen, rounds=1, seed=number + 1, scale=scale, progress=progress)


def table(report: BenchmarkReport) -> str:
    ours, *peers = report.results
    head = [ours.label, *(peer.label for peer in peers), *(f"ratio to {peer.label}" for peer in peers)]
    lines = [
        f"{report.machine}; model {ours.model}, {report.rounds} rounds. Median (lowest to highest).",
        "",
        f"| scenario | value | {' | '.join(head)} |",
        f"|---|---|{'---|' * len(head)}",
    ]
    for series in ours.series:
        if not series.values:
            continue
        theirs = [peer.get(series.scenario, series.metric) for peer in peers]
        cells = [str(series), *(str(other) if other else "–" for other in theirs)]
        cells += [ratio(series, other) if other else "–" for other in theirs]
        lines.append(f"| {series.scenario} | {series.metric}, {series.unit} | {' | '.join(cells)} |")
    lines += _mixed(ours, peers)
    for result in report.results:
        if result.estimated:
            lines.append(
                f"\n{result.label} does not count the tokens of streams: its speeds are chunks per second."
            )
        lines += [f"\n{result.label}, {name}: {why}." for name, why in result.skipped.items()]
    return "\n".join(lines)


def _mixed(ours: Result, peers: list[Result]) -> list[str]:
    """Compare hearth's flow with parallel calls to a peer's with one call at a time."""
    together = ours.get("ask", "together")
    if together is None:
        return []
    cells = [str(together)]
    ratios = []
    for peer in peers:
        apart = peer.get("ask", "apart")
        cells.append(str(apart) if apart else "–")
        ratios.append(ratio(together, apart) if apart else "–")
    return [f"| ask | together here, apart there, s | {' | '.join([*cells, *ratios])} |"]


def ratio(ours: Series, theirs: Series) -> str:
    """Return the median ratio of two values of the same round, with the spread."""
    pairs = zip(ours.values, theirs.values, strict=False)
    values = [mine / other for mine, other in pairs if other]
    return spread(values) if values else "–"


if __name__ == "__main__":
    main()
