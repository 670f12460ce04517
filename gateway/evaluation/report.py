"""Runs, their summaries, and the comparison of two."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from gateway.evaluation.score import Row, Tokens, total_by_step


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
    """Compute shares from 0 to 1 (None if no question counts), tokens by step, and seconds by stage."""
    answerable = [row for row in rows if row.answerable]
    asked = [row for row in answerable if row.asked]
    others = [row for row in rows if not row.answerable]
    cited = sum(row.citations for row in rows)
    return {
        "questions": len(rows),
        "answerable": len(answerable),
        "errors": sum(row.error is not None for row in rows),
        "hit_at_1_own_words": _share(answerable, lambda row: row.own_rank == 1),
        "hit_at_3_own_words": _share(answerable, lambda row: row.own_rank is not None),
        "hit_at_1_model_terms": _share(asked, lambda row: row.model_rank == 1),
        "hit_at_3_model_terms": _share(asked, lambda row: row.model_rank is not None),
        "answers_right": _share(asked, lambda row: row.right),
        "fact_recall": _ratio(sum(row.facts for row in asked), sum(row.facts_wanted for row in asked)),
        "right_page_cited_where_right": _share(
            [row for row in asked if row.right], lambda row: row.right_page
        ),
        "citations": cited,
        "citation_validity": _ratio(sum(row.valid_citations for row in rows), cited),
        "refusal_accuracy": _share(others, lambda row: row.refused),
        "false_refusals": _share(asked, lambda row: row.refused),
        "tokens": _tokens(rows),
        "seconds": _seconds(rows),
    }


def by_category(rows: Sequence[Row]) -> dict[str, tuple[int, int]]:
    """Count right answers and questions per category."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        right, count = found.get(row.category, (0, 0))
        found[row.category] = right + row.right, count + 1
    return dict(sorted(found.items()))


def markdown(run: Run) -> str:
    """Render a run as Markdown tables."""
    found = summary(run.rows)
    lines = [headline(run), "", f"| measure | {run.model or 'retrieval alone'} |", "|---|---|"]
    lines += [f"| {label(name)} | {_cell(value)} |" for name, value in measures(found).items()]
    lines += ["", "| category | right |", "|---|---|"]
    lines += [f"| {name} | {right} of {count} |" for name, (right, count) in by_category(run.rows).items()]
    if found["tokens"]:
        lines += ["", "| step | prompt tokens | of them cached | completion tokens |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {cost['prompt']:,} | {cost['cached']:,} | {cost['completion']:,} |"
        for name, cost in found["tokens"].items()
    ]
    if found["seconds"]:
        lines += ["", "| stage | median s | 90th percentile s |", "|---|---|---|"]
    lines += [f"| {name} | {median:.3f} | {late:.3f} |" for name, (median, late) in found["seconds"].items()]
    return "\n".join(lines) + "\n"


def compare(before: Run, after: Run) -> dict[str, Any]:
    """Compare summaries and outcomes of two runs, with a two-sided sign test over the changed outcomes.

    Questions that only one run has, or whose text differs, are left out.
    """
    first = {row.id: row for row in before.rows}
    second = {row.id: row for row in after.rows}
    both = [name for name in first if name in second and first[name].text == second[name].text]
    better = [name for name in both if second[name].right and not first[name].right]
    worse = [name for name in both if first[name].right and not second[name].right]
    return {
        "models": [before.model, after.model],
        "differ_in": differences(before, after),
        "questions": len(both),
        "summaries": [summary([first[n] for n in both]), summary([second[n] for n in both])],
        "better": [_change(first[name], second[name]) for name in better],
        "worse": [_change(first[name], second[name]) for name in worse],
        "p_value": sign_test(len(better), len(worse)),
    }


def sign_test(better: int, worse: int) -> float:
    """Return the exact binomial probability of a split at least as uneven if both were equally likely."""
    n, extreme = better + worse, max(better, worse)
    tail: int = sum(math.comb(n, k) for k in range(extreme, n + 1))
    return min(1.0, float(2 * tail) / float(2**n))


def _change(before: Row, after: Row) -> dict[str, Any]:
    return {"id": before.id, "text": before.text, "answers": [before.answer, after.answer]}


def _tokens(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Sum the tokens of each step, and of all steps if there are any."""
    steps = total_by_step(pair for row in rows for pair in row.tokens.items())
    if steps:
        steps["total"] = sum(steps.values(), Tokens())
    return {step: msgspec.to_builtins(cost) for step, cost in steps.items()}


def _seconds(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Compute median and 90th percentile of each stage."""
    stages: dict[str, list[float]] = {}
    for row in rows:
        for stage, seconds in row.timings.items():
            stages.setdefault(stage, []).append(seconds)
    return {
        stage: (statistics.median(found), sorted(found)[int(len(found) * 0.9)])
        for stage, found in stages.items()
    }


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> float | None:
    return _ratio(sum(map(holds, rows)), len(rows))


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def measures(summed: dict[str, Any]) -> dict[str, float | int]:
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


def _cell(value: float | int) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
