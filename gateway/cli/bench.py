"""`hearth bench`: seeded scenarios against this server, or any other with OpenAI's API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from itertools import chain, repeat

import click
from tqdm import tqdm

from gateway.benchmarking.flows import SCENARIOS, Scenario, scenarios
from gateway.benchmarking.machine import this_machine
from gateway.benchmarking.report import BenchmarkReport, measure, rows_of
from gateway.benchmarking.target import Target
from gateway.cli.common.client import ServerOptions, with_server
from gateway.cli.common.options import json_option
from gateway.cli.common.text import say, table


@click.command()
@click.option("--scenario", "names", multiple=True, help="Only this scenario; may be given more than once.")
@click.option("--list", "as_list", is_flag=True, help="List the scenarios.")
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1), help="Measurements of each.")
@click.option("--model", help="The model to ask for; by default the first one that the server lists.")
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.01, 10),
    help="Shorter or longer texts, for a small context or a slow machine.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Seed of the texts; by default a new one, because servers cache prompts.",
)
@json_option
@with_server
def bench(
    names: tuple[str, ...],
    as_list: bool,
    runs: int,
    model: str | None,
    scale: float,
    seed: int | None,
    as_json: bool,
    server: ServerOptions,
) -> None:
    """Measure a server's speed as its users experience it. The server should be otherwise idle."""
    chosen = scenarios(names)
    if as_list:
        say(table([[each.name, each.about] for each in SCENARIOS]))
        return
    client = server.connect()
    seed = int(time.time()) if seed is None else seed
    report = asyncio.run(_run(Target(client.url, client.key, model=model), chosen, runs, seed, scale))
    if as_json:
        say(report)
    else:
        _show(report)


async def _run(
    target: Target, chosen: Sequence[Scenario], runs: int, seed: int, scale: float
) -> BenchmarkReport:
    machine = this_machine()
    with tqdm(total=runs * len(chosen), unit=" runs", disable=None) as bar:
        steps = chain([0], repeat(1))  # progress is called at the beginning of each run

        def progress(_round: int, scenario: Scenario, _target: Target) -> None:
            bar.set_postfix_str(scenario.name)
            bar.update(next(steps))

        async with target:
            await target.prepare()
            results = await measure([target], chosen, rounds=runs, seed=seed, scale=scale, progress=progress)
            bar.update()
    return BenchmarkReport(machine=machine, seed=seed, rounds=runs, scale=scale, results=results)


def _show(report: BenchmarkReport) -> None:
    (result,) = report.results
    say(f"{result.model} at {result.url}, {report.rounds} runs, seed {report.seed}")
    say(f"{report.machine}\n")
    say(table(rows_of(result)))
    if result.estimated:
        say("speeds are from counted chunks: the server does not count the tokens of streams", err=True)
    for name, why in result.skipped.items():
        say(f"{name} skipped: {why}", err=True)
