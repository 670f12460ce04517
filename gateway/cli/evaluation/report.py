"""How a run, and the comparison of two, look on a terminal."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.cli.common.text import say
from gateway.evaluation.report import Run, by_category, compare, costs, headline, label, measures, summary


def show_run(run: Run) -> None:
    """Print measures, right answers by category, tokens and times; failed questions go to stderr."""
    told = summary(run.rows)
    say(headline(run))
    for name, value in measures(told).items():
        say(f"  {label(name):<32} {value}")
    for category, (right, count) in by_category(run.rows).items():
        say(f"  right: {category:<25} {right} of {count}")
    for step, cost in told["tokens"].items():
        say(
            f"  tokens, {step:<24} {cost['prompt']} in, {cost['cached']} of them cached, {cost['completion']} out"
        )
    for stage, (middle, late) in told["seconds"].items():
        say(f"  seconds, {stage:<23} {middle:.3f} (median), {late:.3f} (90th percentile)")
    for row in run.rows:
        if row.error:
            say(f"  {row.id} failed: {row.error}", err=True)


def show_comparison(before: Run, after: Run, as_json: bool) -> None:
    """Print both runs' measures side by side, the questions that changed, and the sign test."""
    told = compare(before, after)
    if as_json:
        say(msgspec.json.encode(told))
        return
    say(f"the runs differ in: {', '.join(told['differ_in']) or 'nothing but their outcome'}")
    first, second = told["models"]
    say(f"{'':<32}{first:>18}{second:>18}")
    for name, values in _side_by_side(told["summaries"]):
        say(f"{label(name):<32}{values[0]!s:>18}{values[1]!s:>18}")
    for word in ("better", "worse"):
        for change in told[word]:
            old, new = change["answers"]
            say(f"{word}: {change['text']}\n    {old}\n  → {new}")
    changed = f"{len(told['better'])} better, {len(told['worse'])} worse of {told['questions']}"
    say(f"{changed}; sign test p = {told['p_value']:.3f}")


def _side_by_side(summaries: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """What either run has, with a dash where the other one has nothing."""
    known = [measures(told) | costs(told) for told in summaries]
    return [(name, [each.get(name, "–") for each in known]) for name in dict.fromkeys([*known[0], *known[1]])]
