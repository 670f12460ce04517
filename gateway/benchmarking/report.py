"""Measures scenarios on one server or several, and reports every measured value."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from msgspec import Struct

from gateway.benchmarking.flows import Measured, Scenario
from gateway.benchmarking.machine import BenchmarkMachine
from gateway.benchmarking.target import SkippedError, Target
from gateway.benchmarking.texts import BenchmarkTexts

# Called before each measurement with round, scenario and target.
Progress = Callable[[int, Scenario, Target], None]


class Series(Struct, frozen=True):
    """The values of one metric, in the order of measurement."""

    scenario: str
    metric: str
    unit: str
    better: str
    values: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        """Median and spread, such as ``0.13 (0.12 to 0.15)``."""
        return f"{_number(self.median)} ({_number(min(self.values))} to {_number(max(self.values))})"


class Result(Struct):
    """One server. ``skipped`` gives the reason by scenario.

    ``estimated`` is true if the server does not count the tokens of streams; speeds then count chunks.
    """

    label: str
    url: str
    kind: str
    model: str
    series: list[Series]
    skipped: dict[str, str]
    estimated: bool = False

    @classmethod
    def empty(cls, target: Target, scenarios: Sequence[Scenario]) -> Result:
        series = [
            Series(scenario.name, metric.name, metric.unit, metric.better, [])
            for scenario in scenarios
            for metric in scenario.metrics
        ]
        return cls(target.label, target.url, target.kind, target.model, series, {})

    def add(self, scenario: Scenario, measured: Measured) -> None:
        for each in self.series:
            if each.scenario == scenario.name:
                each.values.append(measured[each.metric])

    def extend(self, later: Result) -> None:
        """Add later measurements of such a server, in the same scenarios."""
        for each, more in zip(self.series, later.series, strict=True):
            each.values.extend(more.values)
        self.skipped |= later.skipped
        self.estimated |= later.estimated

    def get(self, scenario: str, metric: str) -> Series | None:
        """Return the series, or None if it has no value."""
        found = (each for each in self.series if (each.scenario, each.metric) == (scenario, metric))
        return next((each for each in found if each.values), None)


class BenchmarkReport(Struct, frozen=True, kw_only=True):
    machine: BenchmarkMachine
    seed: int
    rounds: int
    scale: float
    results: list[Result]


async def measure(
    targets: Sequence[Target],
    scenarios: Sequence[Scenario],
    *,
    rounds: int,
    seed: int,
    scale: float = 1.0,
    progress: Progress = lambda *_: None,
) -> list[Result]:
    """Measure all scenarios on prepared targets in turn, so that other load slows all of them alike.

    In each round, a scenario has the same texts on every target, and new ones in the next round. The order of the
    targets alternates between rounds. Raises BenchError if a server fails; a scenario that a server cannot run is
    skipped, with the reason in the result.
    """
    results = [Result.empty(target, scenarios) for target in targets]
    pairs = list(zip(targets, results, strict=True))
    for round_ in range(rounds):
        for scenario in scenarios:
            for target, result in pairs if round_ % 2 == 0 else reversed(pairs):
                if scenario.name in result.skipped:
                    continue
                progress(round_, scenario, target)
                texts = BenchmarkTexts(f"{seed}/{round_}/{scenario.name}", target.tokens_per_word, scale)
                try:
                    await target.wake()
                    result.add(scenario, await scenario.measure(target, texts))
                except SkippedError as skipped:
                    result.skipped[scenario.name] = skipped.message
                result.estimated = target.estimated
    return results


def rows_of(result: Result) -> list[list[str]]:
    """Build the rows of a table for a terminal: a header, then one row per metric."""
    rows = [["SCENARIO", "METRIC", "UNIT", "MEDIAN (LOWEST TO HIGHEST)"]]
    rows += [[each.scenario, each.metric, each.unit, str(each)] for each in result.series if each.values]
    return rows


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
