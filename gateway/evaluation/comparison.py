"""The comparison of two runs, question by question."""

from __future__ import annotations

import math
from typing import Any

from gateway.evaluation import report
from gateway.evaluation.measures import changes
from gateway.evaluation.score import Row


def compare(before: report.Run, after: report.Run) -> dict[str, Any]:
    """Compare summaries and outcomes of two runs.

    Changes of measures have a 95 % interval (paired bootstrap), the changed outcomes a two-sided sign test. Questions
    that only one run has, or whose text differs, are left out.
    """
    first = {row.id: row for row in before.rows}
    second = {row.id: row for row in after.rows}
    both = [name for name in first if name in second and first[name].text == second[name].text]
    rows = [first[name] for name in both], [second[name] for name in both]
    better = [name for name in both if second[name].right and not first[name].right]
    worse = [name for name in both if first[name].right and not second[name].right]
    return {
        "models": [before.model, after.model],
        "differ_in": report.differences(before, after),
        "questions": len(both),
        "summaries": [report.summary(rows[0]), report.summary(rows[1])],
        "changes": changes(*rows),
        "better": [_change(first[name], second[name]) for name in better],
        "worse": [_change(first[name], second[name]) for name in worse],
        "p_value": sign_test(len(better), len(worse)),
    }


def comparison_table(compared: dict[str, Any]) -> report.Table:
    """Show both runs side by side, with what either run has and a dash where the other one has nothing."""
    known = [report.single(summed) | report.costs(summed) for summed in compared["summaries"]]
    rows = [
        ["measure", *(model or "retrieval alone" for model in compared["models"]), "change", "95 % interval"]
    ]
    for name in dict.fromkeys([*known[0], *known[1]]):
        change, *interval = compared["changes"].get(name, (None,))
        rows.append(
            [report.label(name)]
            + [report.cell(each.get(name)) for each in known]
            + [
                "" if change is None else f"{change:+.3f}",
                report.between((interval[0], interval[1])) if interval else "",
            ]
        )
    return rows


def sign_test(better: int, worse: int) -> float:
    """Return the exact binomial probability of a split at least as uneven if both were equally likely."""
    n, extreme = better + worse, max(better, worse)
    tail: int = sum(math.comb(n, k) for k in range(extreme, n + 1))
    return min(1.0, float(2 * tail) / float(2**n))


def _change(before: Row, after: Row) -> dict[str, Any]:
    return {"id": before.id, "text": before.text, "answers": [before.answer, after.answer]}
