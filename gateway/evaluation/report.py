"""Summaries of an evaluation, and the comparison of two."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from gateway.evaluation.score import Row, Tokens


class Run(Struct, frozen=True, kw_only=True):
    """One evaluation: how it was made, and a row a question."""

    version: str  # of hearth
    model: str  # "" when retrieval alone was scored
    weights: str = ""  # fingerprint of the model's file; a server does not tell it
    question_set: str  # name and hash of the file
    server: str = ""  # address, when a running server was asked
    prompts: dict[str, int] = {}  # versions; a server does not tell them
    settings: dict[str, Any] = {}  # of the flow; a server does not tell them
    started_at: float
    rows: list[Row]


# What makes two runs two kinds of run.
_KIND = ("version", "model", "weights", "question_set", "server", "prompts", "settings")


def differences(one: Run, other: Run) -> list[str]:
    """In what two runs differ besides their rows: model, prompts, … Rows of such runs do not belong together."""
    return [name.replace("_", " ") for name in _KIND if getattr(one, name) != getattr(other, name)]


def headline(run: Run) -> str:
    """Who answered what, and when: model, weights, question set, version, day."""
    weights = f" (weights {run.weights})" if run.weights else ""
    where = f" at {run.server}" if run.server else ""
    day = datetime.fromtimestamp(run.started_at).astimezone().date()
    return (
        f"{run.model or 'retrieval alone'}{weights}{where} on {run.question_set}, hearth {run.version}, {day}"
    )


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Shares from 0 to 1 (None without any question of that kind), tokens by step, seconds by stage."""
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
    """Right answers and questions of each category."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        right, count = found.get(row.category, (0, 0))
        found[row.category] = right + row.right, count + 1
    return dict(sorted(found.items()))


def markdown(run: Run) -> str:
    """A run as a page for people."""
    told = summary(run.rows)
    lines = [headline(run), "", f"| measure | {run.model or 'retrieval alone'} |", "|---|---|"]
    lines += [f"| {label(name)} | {_cell(value)} |" for name, value in measures(told).items()]
    lines += ["", "| category | right |", "|---|---|"]
    lines += [f"| {name} | {right} of {count} |" for name, (right, count) in by_category(run.rows).items()]
    if told["tokens"]:
        lines += ["", "| step | prompt tokens | of them cached | completion tokens |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {cost['prompt']:,} | {cost['cached']:,} | {cost['completion']:,} |"
        for name, cost in told["tokens"].items()
    ]
    if told["seconds"]:
        lines += ["", "| stage | median s | 90th percentile s |", "|---|---|---|"]
    lines += [f"| {name} | {median:.3f} | {late:.3f} |" for name, (median, late) in told["seconds"].items()]
    return "\n".join(lines) + "\n"


def compare(before: Run, after: Run) -> dict[str, Any]:
    """Both summaries, the questions whose outcome changed, and a two-sided sign test over them.

    Questions that only one of the runs has, or that were changed in between, are left out.
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
    """Probability of a split at least as uneven, if better and worse were equally likely (exact binomial)."""
    n, extreme = better + worse, max(better, worse)
    tail: int = sum(math.comb(n, k) for k in range(extreme, n + 1))
    return min(1.0, float(2 * tail) / float(2**n))


def _change(before: Row, after: Row) -> dict[str, Any]:
    return {"id": before.id, "text": before.text, "answers": [before.answer, after.answer]}


def _tokens(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """What each step cost, and all together; nothing when no model was asked."""
    steps: dict[str, Tokens] = {}
    for row in rows:
        for step, cost in row.tokens.items():
            steps[step] = steps.get(step, Tokens()) + cost
    if steps:
        steps["total"] = sum(steps.values(), Tokens())
    return {step: msgspec.to_builtins(cost) for step, cost in steps.items()}


def _seconds(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Median and 90th percentile of each stage."""
    stages = dict.fromkeys(stage for row in rows for stage in row.timings)
    told = {}
    for stage in stages:
        seconds = sorted(row.timings[stage] for row in rows if stage in row.timings)
        told[stage] = statistics.median(seconds), seconds[min(len(seconds) - 1, int(len(seconds) * 0.9))]
    return told


def _share(rows: Sequence[Row], holds: Callable[[Row], bool]) -> float | None:
    return _ratio(sum(map(holds, rows)), len(rows))


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def measures(told: dict[str, Any]) -> dict[str, float | int]:
    """The single numbers of a summary, without those that nothing was measured for."""
    return {name: value for name, value in told.items() if not isinstance(value, dict) and value is not None}


def costs(told: dict[str, Any]) -> dict[str, float | int]:
    """Tokens by step and median seconds by stage of a summary, as single numbers."""
    tokens = {
        f"{what} tokens, {step}": cost[what]
        for step, cost in told["tokens"].items()
        for what in ("prompt", "completion")
    }
    return tokens | {
        f"median seconds, {stage}": round(middle, 3) for stage, (middle, _) in told["seconds"].items()
    }


def label(name: str) -> str:
    """A measure's name for people: hit@3 own words."""
    return name.replace("_at_", "@").replace("_", " ")


def _cell(value: float | int) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"
