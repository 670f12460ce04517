"""Measures of a run, each a function of its rows, with bootstrap intervals over the questions."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence

from gateway.evaluation.score import MemoryContents, Row, within

# Of rows; None if no row counts.
Measure = Callable[[Sequence[Row]], float | None]
Chosen = Callable[[Row], bool]
Value = Callable[[Row], float]
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


def _ratio(chosen: Chosen, part: Value, whole: Value) -> Measure:
    """Divide sums over the chosen rows."""

    def measure(rows: Sequence[Row]) -> float | None:
        found = [row for row in rows if chosen(row)]
        return ratio(sum(map(part, found)), sum(map(whole, found)))

    return measure


def _mean(chosen: Chosen, value: Value) -> Measure:
    return _ratio(chosen, value, lambda _: 1)


def _of_kept(part: Callable[[MemoryContents], float], whole: Callable[[MemoryContents], float]) -> Measure:
    """Divide sums over the dialogues."""

    def measure(rows: Sequence[Row]) -> float | None:
        kept = [row.kept for row in rows if row.kept is not None]
        return ratio(sum(map(part, kept)), sum(map(whole, kept)))

    return measure


def _amount(entries: Callable[[MemoryContents], Sequence[str]]) -> Measure:
    """Count the entries of all dialogues."""

    def measure(rows: Sequence[Row]) -> float | None:
        kept = [row.kept for row in rows if row.kept is not None]
        return float(sum(len(entries(each)) for each in kept)) if kept else None

    return measure


def _seconds(durations: Callable[[Row], Sequence[float]], share: float) -> Measure:
    def measure(rows: Sequence[Row]) -> float | None:
        found = [seconds for row in rows for seconds in durations(row)]
        return round(quantile(found, share), 4) if found else None

    return measure


def _abstention_f1(rows: Sequence[Row]) -> float | None:
    """F1 of refusals as the answer to the questions that the wiki does not answer; failed ones do not count."""
    answered = [row for row in rows if row.asked and row.error is None]
    wanted = sum(not row.answerable for row in answered)
    right = sum(row.refused and not row.answerable for row in answered)
    return ratio(2 * right, sum(row.refused for row in answered) + wanted) if wanted else None


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


def _planted(kept: MemoryContents) -> int:
    return kept.planted


def _calls(kept: MemoryContents) -> int:
    """Calls of the memory; the replies are none."""
    return sum(count for kind, count in kept.calls.items() if kind != "chat")


def _waited(row: Row) -> list[float]:
    return row.kept.waited if row.kept is not None else []


def _total(row: Row) -> list[float]:
    return [row.timings["total"]] if "total" in row.timings else []


MEASURES: Mapping[str, Measure] = {
    "hit_at_1_own_words": _mean(_answerable, lambda row: row.own_rank == 1),
    "hit_at_3_own_words": _mean(_answerable, lambda row: within(row.own_rank, 3)),
    "hit_at_5_own_words": _mean(_answerable, lambda row: within(row.own_rank, 5)),
    "hit_at_1_model_terms": _mean(_asked, lambda row: row.model_rank == 1),
    "hit_at_3_model_terms": _mean(_asked, lambda row: within(row.model_rank, 3)),
    "right_page_in_prompt": _mean(_prompt_known, lambda row: row.page_in_prompt is True),
    "all_facts_in_prompt": _mean(_prompt_known, lambda row: row.facts_in_prompt == row.facts_wanted),
    "answers_right": _mean(_asked, lambda row: row.right),
    "fact_recall": _ratio(_asked, lambda row: row.facts, lambda row: row.facts_wanted),
    # Per answer, then averaged over the answers that state something, as in ALCE.
    "citation_precision": _mean(_states, lambda row: row.precise_citations / max(1, row.citations)),
    "citation_recall": _mean(_states, lambda row: row.recalled_statements / row.statements),
    "right_page_cited_where_right": _mean(lambda row: _asked(row) and row.right, lambda row: row.right_page),
    "abstention_f1": _abstention_f1,
    "refusal_accuracy": _mean(
        lambda row: not row.answerable and not _is_line(row) and row.kept is None, lambda row: row.refused
    ),
    "false_refusals": _mean(_asked, lambda row: row.refused),
    "wrong_of_stored": _ratio(_is_line, lambda row: len(row.wrong), lambda row: row.stored or 0),
    "lines_with_wrong": _mean(_is_line, lambda row: bool(row.wrong)),
    "stated_facts_stored": _ratio(_is_line, lambda row: row.facts, lambda row: row.facts_wanted),
    "task_changes_made": _ratio(_is_line, lambda row: row.changes, lambda row: row.changes_wanted),
    "lines_right": _mean(_is_line, lambda row: row.right),
    "planted_in_prompt": _of_kept(lambda kept: kept.in_prompt, _planted),
    "planted_in_prompt_when_asked": _of_kept(lambda kept: kept.when_asked, _planted),
    "evidence_recall_at_5": _of_kept(lambda kept: kept.first_five, _planted),
    "planted_in_facts": _of_kept(lambda kept: kept.in_facts, _planted),
    "task_states_right": _of_kept(lambda kept: kept.tasks_right, lambda kept: kept.tasks),
    "superseded_shown_as_current": _amount(lambda kept: kept.stale),
    "invented": _amount(lambda kept: kept.invented),
    "secrets_at_rest": _amount(lambda kept: kept.leaked),
    "summaries_by_the_model": _of_kept(lambda kept: kept.summaries, lambda kept: kept.summaries + kept.extracts),
    "memory_calls_a_message": _of_kept(_calls, lambda kept: kept.messages),
    "waited_seconds_p50": _seconds(_waited, 0.5),
    "waited_seconds_p95": _seconds(_waited, 0.95),
    "waited_seconds_max": _seconds(_waited, 1.0),
    "seconds_p50": _seconds(_total, 0.5),
    "seconds_p95": _seconds(_total, 0.95),
    "prompt_tokens_a_question": _mean(_has_tokens, lambda row: sum(t.prompt for t in row.tokens.values())),
    "completion_tokens_a_question": _mean(
        _has_tokens, lambda row: sum(t.completion for t in row.tokens.values())
    ),
}  # fmt: skip


def values(rows: Sequence[Row]) -> dict[str, float | None]:
    return {name: measure(rows) for name, measure in MEASURES.items()}


def intervals(rows: Sequence[Row]) -> dict[str, Interval]:
    """Compute the 95 % percentile bootstrap interval of every measure that was taken, over the questions."""
    return _bootstrap(len(rows), lambda drawn: values([rows[index] for index in drawn]))


def changes(before: Sequence[Row], after: Sequence[Row]) -> dict[str, tuple[float, float, float]]:
    """Compute for every measure its change with a 95 % interval. Both runs' rows are of the same questions in order."""

    def change(drawn: Sequence[int]) -> dict[str, float | None]:
        first, second = (values([rows[index] for index in drawn]) for rows in (before, after))
        return {
            name: None if old is None or (new := second[name]) is None else new - old
            for name, old in first.items()
        }

    changed, around = change(range(len(before))), _bootstrap(len(before), change)
    return {name: (round(value, 4), *around[name]) for name, value in changed.items() if value is not None}


def _bootstrap(size: int, measure: Callable[[Sequence[int]], dict[str, float | None]]) -> dict[str, Interval]:
    """Measure resamples of the rows, which are the same for every run of that size, so that runs are reproducible."""
    source = random.Random(_SEED)
    found: dict[str, list[float]] = {}
    for _ in range(_RESAMPLES if size else 0):
        for name, value in measure(source.choices(range(size), k=size)).items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return {name: _middle(sorted(seen)) for name, seen in found.items()}


def _middle(ordered: list[float]) -> Interval:
    low = int(_OUTSIDE * len(ordered))
    return round(ordered[low], 4), round(ordered[-1 - low], 4)
