"""Runs a question set through the flow that /ask uses, question by question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from uuid import uuid4

import msgspec

from gateway.ask.flow import AskFlow
from gateway.ask.journal import Journal
from gateway.ask.retrieve import Retrieval
from gateway.ask.terms import key_terms
from gateway.ask.types import AnswerDone, AskCall, AskResult
from gateway.errors import HearthError
from gateway.evaluation.questions import Question
from gateway.evaluation.score import Row, rank, score
from gateway.store.request_log import RequestRecord
from gateway.wiki.source import Page, WikiSource

_PAGES_A_TERM = 3
_SECONDS = 60.0


class Evaluator:
    """``records`` is where the flow puts its request records: the counts come from there."""

    def __init__(self, flow: AskFlow, wiki: WikiSource, records: list[RequestRecord]) -> None:
        self._flow = flow
        self._wiki = wiki
        self._records = records

    async def run(self, questions: Sequence[Question]) -> AsyncIterator[Row]:
        """A row a question, in order. What fails is a row with its error."""
        for question in questions:
            yield await self._one(question)

    async def _one(self, question: Question) -> Row:
        own = [page.title for page in await self.found(key_terms(question.text))]
        try:
            result = await self._ask(question.text)
        except HearthError as error:
            return Row(
                id=question.id,
                category=question.category,
                text=question.text,
                answerable=question.answerable,
                facts_wanted=len(question.facts),
                own_rank=rank(own, question.pages),
                error=error.code,
            )
        by_terms = await self.found(result.search_terms)
        pages = {page.title: page for page in by_terms}
        row = score(question, result, pages, own, [page.title for page in by_terms])
        return self._counted(row)

    async def found(self, terms: list[str]) -> list[Page]:
        """The pages that the flow's own retrieval finds for these terms, in its order."""
        journal = Journal(AskCall(id="evaluation", question=" ".join(terms)))
        found = await Retrieval(self._wiki, journal, _PAGES_A_TERM, _SECONDS).run(terms)
        return [each.page for each in found]

    async def _ask(self, text: str) -> AskResult:
        call = AskCall(id=f"eval-{uuid4().hex[:12]}", question=text)
        async with aclosing(self._flow.run(call)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, AnswerDone):
                    return event.result
        raise HearthError("the flow ended without a result")

    def _counted(self, row: Row) -> Row:
        if not self._records:
            return row
        made = self._records.pop().generations
        self._records.clear()
        return msgspec.structs.replace(
            row,
            prompt_tokens=sum(each.prompt_tokens for each in made),
            cached_tokens=sum(each.cached_tokens for each in made),
            completion_tokens=sum(each.completion_tokens for each in made),
        )
