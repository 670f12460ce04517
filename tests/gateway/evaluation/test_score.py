"""Facts, citations, ranks, the summary of a run and the comparison of two."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.ask.types import AskResult, Budget, Citation
from gateway.evaluation.comparison import compare, comparison_table, sign_test
from gateway.evaluation.measures import intervals
from gateway.evaluation.questions import Question, has_fact
from gateway.evaluation.report import Run, by_category, markdown, summary
from gateway.evaluation.score import Row, rank, score
from gateway.wiki.source import Page, Section

LEAD = Section("", "", 1, "Befunge was created by Chris Pressey in 1993.")
PAGE = Page("Befunge", 7, "u", [LEAD, Section("Name", "Name", 2, "Coleman mistyped it.")])
QUESTION = Question(
    id="q", category="person", text="Who?", pages=["Befunge"], facts=[["Chris Pressey", "Pressey"]]
)


def result(answer: str, *citations: Citation) -> AskResult:
    budget = Budget(
        prompt_limit=1, prompt_tokens=1, cached_tokens=0, answer_limit=1, answer_tokens=1, background_tokens=1
    )
    return AskResult(
        id="r", answer=answer, citations=list(citations), search_terms=["Befunge"], skipped=[], budget=budget,
        timings={"total": 1.0}, model="m",
    )  # fmt: skip


def cited(section: str = "", title: str = "Befunge") -> Citation:
    return Citation(1, title, section, "u", 7)


@pytest.mark.parametrize(
    ("text", "fact", "there"),
    [
        ("It has 1,024 bytes.", ["1024"], True),
        ("It has seven commands.", ["7"], True),
        ("By Urban MÜLLER", ["Urban Müller"], True),
        ("It has 10240 bytes.", ["1024"], False),
        ("written in C#.", ["C#"], True),
        ("It is not so.", ["no"], False),
        ("the value 🏁 starts it", ["🏁"], True),
    ],
)
def test_facts(text: str, fact: list[str], there: bool) -> None:
    assert has_fact(text, fact) is there


def test_a_score_judges_facts_citations_and_rank() -> None:
    answer = "Chris Pressey created Befunge in 1993. [1] Dragons designed several mountains. [1]"
    scored = score(row("q"), QUESTION, result(answer, cited()), {"Befunge": PAGE}, ["Piet", "Befunge"])
    assert (scored.facts, scored.model_rank, scored.right_page) == (1, 2, True)
    assert (scored.statements, scored.recalled_statements) == (2, 1)
    assert (scored.citations, scored.precise_citations) == (2, 1)


def test_ranks_end_at_five() -> None:
    assert rank(list("abcdef"), ["e"]) == 5
    assert rank(list("abcdef"), ["f"]) is None
    assert rank([], ["d"]) is None


def row(name: str, **fields: Any) -> Row:
    given: dict[str, Any] = {"id": name, "category": "x", "text": name, "answerable": True, "facts_wanted": 1}
    return Row(**given | {"asked": True} | fields)


def run(*rows: Row) -> Run:
    return Run(version="1", model="m", question_set="s", started_at=0.0, rows=list(rows))


def test_a_summary_counts_what_it_says() -> None:
    rows = [
        row(
            "a", facts=1, own_rank=1, model_rank=3, statements=2, recalled_statements=1, citations=4,
            precise_citations=1, page_in_prompt=True, facts_in_prompt=1, timings={"total": 1.0},
        ),
        row("b", refused=True, own_rank=2, page_in_prompt=True, facts_in_prompt=0, timings={"total": 3.0}),
        row("c", answerable=False, facts_wanted=0, refused=True),
        row("d", answerable=False, facts_wanted=0, answer="Blue."),
        row("e", error="deadline_exceeded"),
    ]  # fmt: skip
    told = summary(rows)
    assert (told["answers_right"], told["false_refusals"]) == (0.3333, 0.3333)
    assert (told["hit_at_1_own_words"], told["hit_at_3_own_words"]) == (0.3333, 0.6667)
    assert (told["citation_precision"], told["citation_recall"]) == (0.25, 0.5)
    assert (told["right_page_in_prompt"], told["all_facts_in_prompt"]) == (1.0, 0.5)
    assert (told["refusal_accuracy"], told["errors"]) == (0.5, 1)
    assert told["abstention_f1"] == 0.5  # one right refusal of two, of two that were wanted
    assert (told["seconds_p50"], told["seconds_p95"]) == (2.0, 3.0)
    of_x = by_category(rows)["x"]
    assert (of_x["right"], of_x["questions"], of_x["fact_recall"]) == (2, 5, 0.3333)
    assert "| total | 2.000 | 3.000 |" in markdown(run(*rows))
    assert summary([])["answers_right"] is None
    assert summary(rows[:2])["abstention_f1"] is None  # nothing was to be refused


def test_retrieval_alone_has_no_answers_to_be_right() -> None:
    told = summary([row("a", asked=False, own_rank=1), row("b", asked=False)])
    assert (told["hit_at_3_own_words"], told["answers_right"], told["hit_at_3_model_terms"]) == (
        0.5,
        None,
        None,
    )
    of_x = by_category([row("a", asked=False, own_rank=1), row("b", asked=False)])["x"]
    assert (of_x["right"], of_x["questions"], of_x["tokens"]) == (1, 2, None)


def test_intervals_narrow_with_more_questions_and_are_the_same_every_time() -> None:
    few = [row(str(n), facts=n % 2) for n in range(10)]
    many = [row(str(n), facts=n % 2) for n in range(400)]
    low, high = intervals(few)["fact_recall"]
    closer = intervals(many)["fact_recall"]
    assert low < closer[0] < 0.5 < closer[1] < high
    assert closer == pytest.approx((0.45, 0.55), abs=0.015)  # normal approximation: 0.5 ± 1.96 · 0.025
    assert intervals(few) == intervals(few)
    assert intervals([row("a", facts=1)])["fact_recall"] == (1.0, 1.0)
    assert intervals([]) == {}


def test_two_runs_are_compared_question_by_question() -> None:
    before = run(row("a", facts=1), row("b"), row("c"), row("old"))
    after = run(row("a"), row("b", facts=1), row("c", facts=1), row("new"))
    told = compare(before, msgspec.structs.replace(after, weights="1f"))
    assert ([c["id"] for c in told["better"]], [c["id"] for c in told["worse"]]) == (["b", "c"], ["a"])
    assert told["differ_in"] == ["weights"]
    assert told["questions"] == 3 and told["p_value"] == 1.0
    change = told["changes"]["fact_recall"]
    assert change[0] == pytest.approx(1 / 3, abs=1e-3) and change[1] < 0 < change[2]
    shown = {line[0]: line[1:] for line in comparison_table(told)}
    assert shown["fact recall"][:3] == ["0.333", "0.667", "+0.333"]
    reworded = compare(run(row("a")), run(row("a", text="something else")))
    assert reworded["questions"] == 0
    assert sign_test(10, 0) == pytest.approx(2 / 1024)
