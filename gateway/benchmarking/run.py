"""Scenarios on one server or several, in turns, so that whatever else a machine does slows all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gateway.benchmarking.report import Result
from gateway.benchmarking.scenario import Scenario
from gateway.benchmarking.target import SkippedError, Target
from gateway.benchmarking.texts import BenchmarkTexts

# Told before each measurement: round, scenario, target.
Progress = Callable[[int, Scenario, Target], None]


async def measure(
    targets: Sequence[Target],
    scenarios: Sequence[Scenario],
    *,
    rounds: int,
    seed: int,
    scale: float = 1.0,
    progress: Progress = lambda *_: None,
) -> list[Result]:
    """One result for each target, in their order. Every target has been prepared.

    In each round a scenario has the same texts on every target, and other ones than in any other round. The order
    of the targets is turned round from round to round. Raises BenchError when a server fails; a scenario that a
    server cannot be measured in is skipped, with the reason in the result.
    """
    results = [Result.empty(target, scenarios) for target in targets]
    pairs = list(zip(targets, results, strict=True))
    for round_ in range(rounds):
        for scenario in scenarios:
            for target, result in pairs if round_ % 2 == 0 else reversed(pairs):
                if scenario.name in result.skipped:
                    continue
                progress(round_, scenario, target)
                await _measure_one(target, result, scenario, f"{seed}/{round_}", scale)
    return results


async def _measure_one(target: Target, result: Result, scenario: Scenario, seed: str, scale: float) -> None:
    texts = BenchmarkTexts(f"{seed}/{scenario.name}", target.tokens_per_word, scale)
    try:
        await target.wake()
        result.add(scenario, await scenario.measure(target, texts))
    except SkippedError as skipped:
        result.skip(scenario, skipped.message)
    result.estimated = target.estimated
