"""Measures of a run, each a function of its rows, with bootstrap intervals over the questions."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence

from gateway.evaluation.score import Row, within

# Of rows; None if no row counts.
Measure = Callable[[Sequence[Row]], float | None]
Interval = tuple[float, float]

_RESAMPLES = 1000
_SEED = 20
_OUTSIDE = 0.025  # share of the resamples on either side of an interval


def ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def quantile(values: Sequence[float], share: float) -> float:
    """Return the median, or for another share the smallest value that at least this share of them does not exceed."""
    if share == 0.5:
        return statistics.median(values)
    return sorted(values)[math.ceil(share * len(values)) - 1]


def _share(chosen: Callable[[Row], bool], holds: Callable[[Row], bool]) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        found = [row for row in rows if chosen(row)]
        return ratio(sum(map(holds, found)), len(found))

    return measure


def _mean(chosen: Callable[[Row], bool], value: Callable[[Row], float]) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        found = [value(row) for row in rows if chosen(row)]
        return ratio(sum(found), len(found))

    return measure


def _seconds(share: float) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        found = [row.timings["total"] for row in rows if "total" in row.timings]
        return round(quantile(found, share), 4) if found else None

    return measure


def _fact_recall(rows: Sequence[Row]) -> float | None:
    asked = [row for row in rows if _asked(row)]
    return ratio(sum(row.facts for row in asked), sum(row.facts_wanted for row in asked))


def _abstention_f1(rows: Sequence[Row]) -> float | None:
    """F1 of refusals as the answer to the questions that the wiki does not answer; failed ones do not count."""
    answered = [row for row in rows if row.asked and row.error is None]
    wanted = sum(not row.answerable for row in answered)
    right = sum(row.refused and not row.answerable for row in answered)
    return ratio(2 * right, sum(row.refused for row in answered) + wanted) if wanted else None


def _wrong_stored(rows: Sequence[Row]) -> float | None:
    return ratio(sum(len(row.wrong) for row in rows), sum(row.stored or 0 for row in rows))


def _memory_recall(rows: Sequence[Row]) -> float | None:
    found = [row for row in rows if _is_line(row)]
    return ratio(sum(row.facts for row in found), sum(row.facts_wanted for row in found))


def _task_recall(rows: Sequence[Row]) -> float | None:
    return ratio(sum(row.changes for row in rows), sum(row.changes_wanted for row in rows))


def _planted(part: str) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        kept = [row.kept for row in rows if row.kept is not None]
        return ratio(sum(getattr(each, part) for each in kept), sum(each.planted for each in kept))

    return measure


def _amount(part: str) -> Measure:
    """How many entries the lists have together."""

    def measure(rows: Sequence[Row]) -> float | None:
        kept = [row.kept for row in rows if row.kept is not None]
        return float(sum(len(getattr(each, part)) for each in kept)) if kept else None

    return measure


def _tasks_right(rows: Sequence[Row]) -> float | None:
    kept = [row.kept for row in rows if row.kept is not None]
    return ratio(sum(each.tasks_right for each in kept), sum(each.tasks for each in kept))


def _waited(share: float) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        waits = [wait for row in rows if row.kept is not None for wait in row.kept.waited]
        return round(quantile(waits, share), 4) if waits else None

    return measure


def _calls(rows: Sequence[Row]) -> float | None:
    """Calls of the memory for each message; the replies are none."""
    kept = [row.kept for row in rows if row.kept is not None]
    made = sum(count for each in kept for kind, count in each.calls.items() if kind != "chat")
    return ratio(made, sum(each.messages for each in kept))


def _by_model(rows: Sequence[Row]) -> float | None:
    kept = [row.kept for row in rows if row.kept is not None]
    return ratio(sum(each.summaries for each in kept), sum(each.summaries + each.extracts for each in kept))


def _is_line(row: Row) -> bool:
    return row.stored is not None


def _answerable(row: Row) -> bool:
    return row.answerable and not _is_line(row)


def _asked(row: Row) -> bool:
    return row.answerable and row.asked


def _prompt_known(row: Row) -> bool:
    return row.answerable and row.page_in_prompt is not None


def _states(row: Row) -> bool:
    return row.statements > 0


def _has_tokens(row: Row) -> bool:
    return bool(row.tokens)


MEASURES: Mapping[str, Measure] = {
    "hit_at_1_own_words": _share(_answerable, lambda row: row.own_rank == 1),
    "hit_at_3_own_words": _share(_answerable, lambda row: within(row.own_rank, 3)),
    "hit_at_5_own_words": _share(_answerable, lambda row: within(row.own_rank, 5)),
    "hit_at_1_model_terms": _share(_asked, lambda row: row.model_rank == 1),
    "hit_at_3_model_terms": _share(_asked, lambda row: within(row.model_rank, 3)),
    "right_page_in_prompt": _share(_prompt_known, lambda row: row.page_in_prompt is True),
    "all_facts_in_prompt": _share(_prompt_known, lambda row: row.facts_in_prompt == row.facts_wanted),
    "answers_right": _share(_asked, lambda row: row.right),
    "fact_recall": _fact_recall,
    # Per answer, then averaged over the answers that state something, as in ALCE.
    "citation_precision": _mean(_states, lambda row: row.precise_citations / max(1, row.citations)),
    "citation_recall": _mean(_states, lambda row: row.recalled_statements / row.statements),
    "right_page_cited_where_right": _share(lambda row: _asked(row) and row.right, lambda row: row.right_page),
    "abstention_f1": _abstention_f1,
    "refusal_accuracy": _share(
        lambda row: not row.answerable and not _is_line(row) and row.kept is None, lambda row: row.refused
    ),
    "false_refusals": _share(_asked, lambda row: row.refused),
    "wrong_of_stored": _wrong_stored,
    "lines_with_wrong": _share(_is_line, lambda row: bool(row.wrong)),
    "stated_facts_stored": _memory_recall,
    "task_changes_made": _task_recall,
    "lines_right": _share(_is_line, lambda row: row.right),
    "planted_in_prompt": _planted("in_prompt"),
    "planted_in_prompt_when_asked": _planted("when_asked"),
    "evidence_recall_at_5": _planted("first_five"),
    "planted_in_facts": _planted("in_facts"),
    "task_states_right": _tasks_right,
    "superseded_shown_as_current": _amount("stale"),
    "invented": _amount("invented"),
    "secrets_at_rest": _amount("leaked"),
    "summaries_by_the_model": _by_model,
    "memory_calls_a_message": _calls,
    "waited_seconds_p50": _waited(0.5),
    "waited_seconds_p95": _waited(0.95),
    "waited_seconds_max": _waited(1.0),
    "seconds_p50": _seconds(0.5),
    "seconds_p95": _seconds(0.95),
    "prompt_tokens_a_question": _mean(_has_tokens, lambda row: sum(t.prompt for t in row.tokens.values())),
    "completion_tokens_a_question": _mean(
        _has_tokens, lambda row: sum(t.completion for t in row.tokens.values())
    ),
}  # fmt: skip


def values(rows: Sequence[Row]) -> dict[str, float | None]:
    return {name: measure(rows) for name, measure in MEASURES.items()}


def intervals(rows: Sequence[Row]) -> dict[str, Interval]:
    """Compute the 95 % percentile bootstrap interval of every measure that was taken, over the questions."""
    found: dict[str, list[float]] = {name: [] for name, value in values(rows).items() if value is not None}
    for drawn in _resamples(len(rows)):
        sample = [rows[index] for index in drawn]
        for name, seen in found.items():
            value = MEASURES[name](sample)
            if value is not None:
                seen.append(value)
    return {name: _middle(seen) for name, seen in found.items()}


def changes(before: Sequence[Row], after: Sequence[Row]) -> dict[str, tuple[float, float, float]]:
    """Compute for every measure its change with a 95 % interval. Both runs' rows are of the same questions in order."""
    first, second = values(before), values(after)
    found: dict[str, list[float]] = {}
    for drawn in _resamples(len(before)):
        samples = [before[index] for index in drawn], [after[index] for index in drawn]
        for name, measure in MEASURES.items():
            old, new = measure(samples[0]), measure(samples[1])
            if old is not None and new is not None:
                found.setdefault(name, []).append(new - old)
    changed = {}
    for name, seen in found.items():
        old, new = first[name], second[name]
        if old is not None and new is not None:
            changed[name] = (round(new - old, 4), *_middle(seen))
    return changed


def _resamples(size: int) -> list[list[int]]:
    """Draw the same resamples for every run of that size, so that runs are reproducible."""
    source = random.Random(_SEED)
    return [source.choices(range(size), k=size) for _ in range(_RESAMPLES if size else 0)]


def _middle(seen: list[float]) -> Interval:
    ordered = sorted(seen)
    low = int(_OUTSIDE * len(ordered))
    return round(ordered[low], 4), round(ordered[len(ordered) - 1 - low], 4)
