"""The evaluator on the sample wiki: rows of answers, failures, and when it gives up."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.ask.types import AskResult, Budget, Citation
from gateway.base.errors import ConfigurationError, DeadlineError, HearthError, OverloadedError
from gateway.evaluation.questions import Question
from gateway.evaluation.report import costs, summary
from gateway.evaluation.run import AskOutcome, Evaluator
from gateway.evaluation.score import Row, Tokens
from gateway.store.request_log import RequestRecord
from gateway.wiki.local import LocalWiki
from gateway.wiki.source import Hits

QUESTIONS = [
    Question(id=str(number), category="x", text="Who made Befunge?", pages=["Befunge"], facts=[["Pressey"]])
    for number in range(8)
]


class Outcomes:
    """An asker whose questions end as listed; after the list, all are answered."""

    def __init__(self, *ends: HearthError | None) -> None:
        self._ends = list(ends)
        self.asked = 0

    async def ask(self, question: str) -> AskOutcome:
        self.asked += 1
        if self._ends and (error := self._ends.pop(0)) is not None:
            raise error
        tokens = {"terms": Tokens(30, 0, 4), "answer": Tokens(70, 20, 9)}
        result = answered("Chris Pressey made Befunge in 1993. [1]")
        return AskOutcome(result, tokens, ["Piet", "Befunge"], "Befunge was made by Chris Pressey.")


def answered(text: str) -> AskResult:
    budget = Budget(
        prompt_limit=1, prompt_tokens=1, cached_tokens=0, answer_limit=1, answer_tokens=1, background_tokens=1
    )
    citations = [Citation(1, "Befunge", "", "u", 7), Citation(2, "No such page", "", "u", 7)]
    return AskResult(
        id="r", answer=text, citations=citations, search_terms=["Befunge author"], skipped=[], budget=budget,
        timings={"total": 1.0}, model="m",
    )  # fmt: skip


async def test_a_row_has_both_kinds_of_retrieval_and_the_answers_scores(wiki: LocalWiki) -> None:
    (row,) = [row async for row in Evaluator(wiki, Outcomes().ask).run(QUESTIONS[:1])]
    assert (row.own_rank, row.model_rank, row.terms) == (1, 1, ["Befunge author"])
    assert (row.facts, row.right, row.asked) == (1, True, True)
    assert (row.statements, row.recalled_statements, row.citations, row.precise_citations) == (1, 1, 1, 1)
    assert (row.right_page, row.page_in_prompt, row.facts_in_prompt) == (True, True, 1)
    assert row.tokens["answer"] == Tokens(70, 20, 9)
    told = summary([row, row])
    assert told["tokens"]["terms"] == {"prompt": 60, "cached": 0, "completion": 8}
    assert told["tokens"]["total"] == {"prompt": 200, "cached": 40, "completion": 26}
    assert costs(told) == {
        "prompt tokens, terms": 60,
        "completion tokens, terms": 8,
        "prompt tokens, answer": 140,
        "completion tokens, answer": 18,
        "prompt tokens, total": 200,
        "completion tokens, total": 26,
        "median seconds, total": 1.0,
    }


def test_where_no_model_is_asked_the_record_has_what_the_answer_is_chosen_from() -> None:
    details = {"background": "Befunge was made by Chris Pressey."}
    record = RequestRecord(
        id="r", kind="ask", started_at=0.0, seconds=1.0, status=200, text="Who?", details=details
    )
    assert AskOutcome.logged(answered("Chris Pressey"), record).background == details["background"]


async def test_a_failure_is_a_row_and_the_next_question_is_asked(wiki: LocalWiki) -> None:
    asker = Outcomes(DeadlineError("no answer"), None, DeadlineError("no answer"))
    rows = [row async for row in Evaluator(wiki, asker.ask).run(QUESTIONS)]
    assert [row.error is None for row in rows] == [False, True, False, True, True, True, True, True]
    assert rows[0].error == "deadline_exceeded: no answer" and rows[0].own_rank == 1 and not rows[0].right


async def test_failures_in_a_row_end_the_run(wiki: LocalWiki) -> None:
    rows: list[Row] = []
    asker = Outcomes(*[OverloadedError("the queue is full", retry_after=1.0)] * 8)
    with pytest.raises(OverloadedError):
        async for row in Evaluator(wiki, asker.ask).run(QUESTIONS):
            rows.append(row)
    assert (asker.asked, len(rows)) == (5, 5)


async def test_a_wrong_configuration_ends_the_run_at_once(wiki: LocalWiki) -> None:
    asker = Outcomes(ConfigurationError("no such model"))
    with pytest.raises(ConfigurationError):
        _ = [row async for row in Evaluator(wiki, asker.ask).run(QUESTIONS)]
    assert asker.asked == 1


class WithoutVectors:
    """The wiki, whose searches by meaning fail."""

    def __init__(self, wiki: LocalWiki) -> None:
        self._wiki = wiki

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wiki, name)

    async def search_text(self, term: str, limit: int) -> Hits:
        return Hits((await self._wiki.search_text(term, limit)).refs, "searched by words alone: too slow")


async def test_a_search_without_its_vectors_is_an_error_where_only_retrieval_is_scored(
    wiki: LocalWiki,
) -> None:
    failing = WithoutVectors(wiki)
    (row,) = [row async for row in Evaluator(failing, None).run(QUESTIONS[:1])]
    assert row.error == "searched by words alone: too slow"
    assert not row.right
    (row,) = [row async for row in Evaluator(failing, Outcomes().ask).run(QUESTIONS[:1])]
    assert row.error is None  # an answer without vectors is one that a server may give
    (row,) = [row async for row in Evaluator(wiki, None).run(QUESTIONS[:1])]
    assert row.error is None
