"""Results: every value that was measured, and what is made of them for people."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from msgspec import Struct

from gateway.benchmarking.machine import BenchmarkMachine
from gateway.benchmarking.scenario import Measured, Scenario
from gateway.benchmarking.target import Target


class Series(Struct, frozen=True, kw_only=True):
    """The values of one metric, in the order of measuring."""

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


class Result(Struct, kw_only=True):
    """One server. ``skipped`` tells by scenario why it was not measured.

    ``estimated``: the server does not count the tokens of streams, so speeds are from counted chunks.
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
        """Nothing measured yet."""
        series = [
            Series(
                scenario=scenario.name, metric=metric.name, unit=metric.unit, better=metric.better, values=[]
            )
            for scenario in scenarios
            for metric in scenario.metrics
        ]
        return cls(
            label=target.label,
            url=target.url,
            kind=target.kind,
            model=target.model,
            series=series,
            skipped={},
        )

    def add(self, scenario: Scenario, measured: Measured) -> None:
        """One measurement of a scenario."""
        for each in self.series:
            if each.scenario == scenario.name:
                each.values.append(measured[each.metric])

    def extend(self, later: Result) -> None:
        """What was measured later of a server of the same kind, in the same scenarios."""
        for each, more in zip(self.series, later.series, strict=True):
            each.values.extend(more.values)
        self.skipped |= later.skipped
        self.estimated |= later.estimated

    def skip(self, scenario: Scenario, why: str) -> None:
        """This scenario is not for this server."""
        self.skipped[scenario.name] = why

    def get(self, scenario: str, metric: str) -> Series | None:
        """The series, None without any value."""
        found = (each for each in self.series if (each.scenario, each.metric) == (scenario, metric))
        return next((each for each in found if each.values), None)


class BenchmarkReport(Struct, frozen=True, kw_only=True):
    """One run of the benchmark."""

    machine: BenchmarkMachine
    seed: int
    rounds: int
    scale: float
    results: list[Result]


def rows_of(result: Result) -> list[list[str]]:
    """A row a metric, with a head, for a table on a terminal."""
    rows = [["SCENARIO", "METRIC", "UNIT", "MEDIAN (LOWEST TO HIGHEST)"]]
    rows += [[each.scenario, each.metric, each.unit, str(each)] for each in result.series if each.values]
    return rows


def _number(value: float) -> str:
    """Three digits that count."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
