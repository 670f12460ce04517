"""Facts, citations, ranks, the summary of a run and the comparison of two."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.ask.types import AskResult, Budget, Citation
from gateway.evaluation.questions import Question, has_fact
from gateway.evaluation.report import Run, by_category, compare, markdown, sign_test, summary
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


@pytest.mark.parametrize(
    ("answer", "citation", "valid"),
    [
        ("Chris Pressey created Befunge in 1993. [1]", cited(), 1),
        ("Chris Pressey created Befunge in 1995. [1]", cited(), 0),
        ("Dragons designed several mountains. [1]", cited(), 0),
        ("Coleman mistyped it. [1]", cited("Name"), 1),
        ("With such words that were created, dragons won. [1]", cited(), 0),
        ("Chris Pressey created Befunge. [1]", cited(title="Piet"), 0),
    ],
)
def test_a_citation_must_be_true(answer: str, citation: Citation, valid: int) -> None:
    scored = score(row("q"), QUESTION, result(answer, citation), {"Befunge": PAGE}, ["Piet", "Befunge"])
    assert (scored.valid_citations, scored.model_rank) == (valid, 2)


def test_ranks_end_at_three() -> None:
    assert rank(["a", "b", "c", "d"], ["d"]) is None
    assert rank([], ["d"]) is None


def row(name: str, **fields: Any) -> Row:
    given: dict[str, Any] = {"id": name, "category": "x", "text": name, "answerable": True, "facts_wanted": 1}
    return Row(**given | {"asked": True} | fields)


def run(*rows: Row) -> Run:
    return Run(version="1", model="m", question_set="s", started_at=0.0, rows=list(rows))


def test_a_summary_counts_what_it_says() -> None:
    rows = [
        row("a", facts=1, own_rank=1, model_rank=3, citations=2, valid_citations=1, timings={"total": 1.0}),
        row("b", refused=True, own_rank=2, timings={"total": 3.0}),
        row("c", answerable=False, facts_wanted=0, refused=True),
        row("d", answerable=False, facts_wanted=0, answer="Blue."),
        row("e", error="deadline_exceeded"),
    ]
    told = summary(rows)
    assert (told["answers_right"], told["false_refusals"]) == (0.3333, 0.3333)
    assert (told["hit_at_1_own_words"], told["hit_at_3_own_words"]) == (0.3333, 0.6667)
    assert (told["citation_validity"], told["refusal_accuracy"], told["errors"]) == (0.5, 0.5, 1)
    assert by_category(rows) == {"x": (2, 5)}
    assert "| total | 2.000 | 3.000 |" in markdown(run(*rows))
    assert summary([])["answers_right"] is None


def test_retrieval_alone_has_no_answers_to_be_right() -> None:
    told = summary([row("a", asked=False, own_rank=1), row("b", asked=False)])
    assert (told["hit_at_3_own_words"], told["answers_right"], told["hit_at_3_model_terms"]) == (
        0.5,
        None,
        None,
    )
    assert by_category([row("a", asked=False, own_rank=1), row("b", asked=False)]) == {"x": (1, 2)}


def test_two_runs_are_compared_question_by_question() -> None:
    before = run(row("a", facts=1), row("b"), row("c"), row("old"))
    after = run(row("a"), row("b", facts=1), row("c", facts=1), row("new"))
    told = compare(before, msgspec.structs.replace(after, weights="1f"))
    assert ([c["id"] for c in told["better"]], [c["id"] for c in told["worse"]]) == (["b", "c"], ["a"])
    assert told["differ_in"] == ["weights"]
    assert told["questions"] == 3 and told["p_value"] == 1.0
    reworded = compare(run(row("a")), run(row("a", text="something else")))
    assert reworded["questions"] == 0
    assert sign_test(10, 0) == pytest.approx(2 / 1024)
