"""Runs, their summaries, and the tables that show them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from gateway.evaluation.measures import Interval, intervals, quantile, values
from gateway.evaluation.score import Row, Tokens, total_by_step

# The first row is the header.
Table = list[list[str]]

# Of one type of question, besides the right ones.
_OF_A_TYPE = (
    "wrong_of_stored",
    "stated_facts_stored",
    "task_changes_made",
    "planted_in_prompt",
    "planted_in_prompt_when_asked",
    "evidence_recall_at_5",
    "planted_in_facts",
    "task_states_right",
    "superseded_shown_as_current",
    "invented",
    "secrets_at_rest",
    "summaries_by_the_model",
    "memory_calls_a_message",
    "waited_seconds_p50",
    "waited_seconds_p95",
    "waited_seconds_max",
    "fact_recall",
    "citation_precision",
    "citation_recall",
    "seconds_p50",
    "seconds_p95",
)
UNKNOWN = "–"
_LARGE = 100  # a number over this is shown with one decimal place


class Run(Struct, frozen=True, kw_only=True):
    """One evaluation: its conditions, and one row per question."""

    version: str  # of hearth
    model: str  # "" if only retrieval was scored
    weights: str = ""  # fingerprint of the model's file; unknown for a server
    question_set: str  # name and hash of the file
    server: str = ""  # address of the running server that was asked
    prompts: dict[str, int] = {}  # versions; unknown for a server
    settings: dict[str, Any] = {}  # of the flow; unknown for a server
    started_at: float
    rows: list[Row]


# Rows of runs that differ in one of these do not belong together.
_CONDITIONS = ("version", "model", "weights", "question_set", "server", "prompts", "settings")


def differences(one: Run, other: Run) -> list[str]:
    """Name the conditions in which two runs differ: model, prompts, …"""
    return [name.replace("_", " ") for name in _CONDITIONS if getattr(one, name) != getattr(other, name)]


def headline(run: Run) -> str:
    """Name model, weights, question set, version and day of a run."""
    weights = f" (weights {run.weights})" if run.weights else ""
    where = f" at {run.server}" if run.server else ""
    day = datetime.fromtimestamp(run.started_at).astimezone().date()
    return (
        f"{run.model or 'retrieval alone'}{weights}{where} on {run.question_set}, hearth {run.version}, {day}"
    )


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Compute counts, measures (None if no question counts), tokens by step, and p50 and p95 seconds by stage."""
    return {
        "questions": len(rows),
        "answerable": sum(row.answerable for row in rows),
        "errors": sum(row.error is not None for row in rows),
        "statements": sum(row.statements for row in rows),
        "citations": sum(row.citations for row in rows),
        **values(rows),
        "tokens": _tokens(rows),
        "seconds": _seconds(rows),
    }


def by_category(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Count questions and right answers per type, with some measures and the interval of the share of right ones."""
    found: dict[str, dict[str, Any]] = {}
    for category in sorted({row.category for row in rows}):
        of_it = [row for row in rows if row.category == category]
        measured = values(of_it)
        found[category] = {
            "questions": len(of_it),
            "right": sum(row.right for row in of_it),
            **{name: measured[name] for name in _OF_A_TYPE},
            "tokens": _tokens(of_it).get("total"),
        }
    return found


def tables(run: Run) -> list[Table]:
    """Show a run as tables: measures with intervals, types of question, tokens by step, seconds by stage."""
    found, around = summary(run.rows), intervals(run.rows)
    measured = [["measure", run.model or "retrieval alone", "95 % interval"]]
    measured += [
        [label(name), cell(value), between(around.get(name))] for name, value in single(found).items()
    ]
    types = [["type", "right", *map(label, _OF_A_TYPE), "prompt tokens", "completion tokens"]]
    for name, of_it in by_category(run.rows).items():
        tokens = of_it["tokens"] or {}
        types.append(
            [name, f"{of_it['right']} of {of_it['questions']}"]
            + [cell(of_it[each]) for each in _OF_A_TYPE]
            + [cell(tokens.get("prompt")), cell(tokens.get("completion"))]
        )
    types = _measured(types)
    steps = [["step", "prompt tokens", "of them cached", "completion tokens"]]
    for name, cost in found["tokens"].items():
        steps.append([name, cell(cost["prompt"]), cell(cost["cached"]), cell(cost["completion"])])
    stages = [["stage", "seconds p50", "seconds p95"]]
    stages += [[name, cell(median), cell(late)] for name, (median, late) in found["seconds"].items()]
    return [table for table in (measured, types, steps, stages) if len(table) > 1]


def _measured(table: Table) -> Table:
    """Leave out the columns that have no value."""
    kept = [column for column in zip(*table, strict=True) if set(column[1:]) != {UNKNOWN}]
    return [list(row) for row in zip(*kept, strict=True)]


def markdown(run: Run) -> str:
    """Render a run as Markdown tables."""
    return "\n\n".join([headline(run), *map(_markdown_table, tables(run))]) + "\n"


def single(summed: dict[str, Any]) -> dict[str, float | int]:
    """Select the single numbers of a summary that were measured."""
    return {
        name: value for name, value in summed.items() if not isinstance(value, dict) and value is not None
    }


def costs(summed: dict[str, Any]) -> dict[str, float | int]:
    """Flatten a summary's tokens by step and median seconds by stage into single numbers."""
    tokens = {
        f"{what} tokens, {step}": cost[what]
        for step, cost in summed["tokens"].items()
        for what in ("prompt", "completion")
    }
    return tokens | {
        f"median seconds, {stage}": round(middle, 3) for stage, (middle, _) in summed["seconds"].items()
    }


def label(name: str) -> str:
    """Make a measure's name readable: hit@3 own words."""
    return name.replace("_at_", "@").replace("_", " ")


def cell(value: float | int | None) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if abs(value) < _LARGE else f"{value:,.1f}"


def between(interval: Interval | None) -> str:
    return f"{cell(interval[0])} to {cell(interval[1])}" if interval else ""


def _markdown_table(table: Table) -> str:
    head, *rows = table
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])


def _tokens(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Sum the tokens of each step, and of all steps if there are any."""
    steps = total_by_step(pair for row in rows for pair in row.tokens.items())
    if steps:
        steps["total"] = sum(steps.values(), Tokens())
    return {step: msgspec.to_builtins(cost) for step, cost in steps.items()}


def _seconds(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    stages: dict[str, list[float]] = {}
    for row in rows:
        for stage, seconds in row.timings.items():
            stages.setdefault(stage, []).append(seconds)
    return {stage: (quantile(found, 0.5), quantile(found, 0.95)) for stage, found in stages.items()}
