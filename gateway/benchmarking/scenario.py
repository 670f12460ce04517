"""What a scenario is: a name, what it measures, and one measurement of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from gateway.benchmarking.target import Target
from gateway.benchmarking.texts import BenchmarkTexts

Measured = dict[str, float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a scenario yields. ``better`` says in which direction."""

    name: str
    unit: str
    better: Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``measure`` runs it once on texts of its own and returns a value for each metric.

    It raises SkippedError where a server cannot be measured in this way.
    """

    name: str
    about: str
    metrics: tuple[Metric, ...]
    measure: Callable[[Target, BenchmarkTexts], Awaitable[Measured]]


def speed(name: str) -> Metric:
    """Tokens a second."""
    return Metric(name, "tokens/s", "more")


def seconds(name: str) -> Metric:
    """A duration."""
    return Metric(name, "s", "less")


def ratio(name: str, better: Literal["more", "less"]) -> Metric:
    """Of two values of one measurement."""
    return Metric(name, "×", better)
