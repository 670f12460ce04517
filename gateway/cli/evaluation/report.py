"""How a run, and the comparison of two, look on a terminal."""

from __future__ import annotations

import msgspec

from gateway.cli.common.text import say, table
from gateway.evaluation.comparison import compare, comparison_table
from gateway.evaluation.report import Run, headline, tables


def show_run(run: Run) -> None:
    """Print the run's tables; failed questions go to stderr."""
    say(headline(run))
    for each in tables(run):
        say("\n" + table(each))
    for row in run.rows:
        if row.error:
            say(f"{row.id} failed: {row.error}", err=True)


def show_comparison(before: Run, after: Run, as_json: bool) -> None:
    """Print both runs' measures side by side, the questions that changed, and the sign test."""
    result = compare(before, after)
    if as_json:
        say(msgspec.json.encode(result))
        return
    say(f"the runs differ in: {', '.join(result['differ_in']) or 'nothing but their outcome'}")
    say(table(comparison_table(result)))
    for word in ("better", "worse"):
        for change in result[word]:
            old, new = change["answers"]
            say(f"{word}: {change['text']}\n    {old}\n  → {new}")
    changed = f"{len(result['better'])} better, {len(result['worse'])} worse of {result['questions']}"
    say(f"{changed}; sign test p = {result['p_value']:.3f}")
