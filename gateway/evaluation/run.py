"""Runs a question set through the flow of /ask, question by question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Self
from uuid import uuid4

import msgspec
from msgspec import Struct

from gateway.ask.flow import AskFlow
from gateway.ask.journal import Journal
from gateway.ask.retrieve import Retrieval
from gateway.ask.types import AnswerDone, AskCall, AskResult
from gateway.base.errors import ConfigurationError, DeadlineError, HearthError, NotFoundError
from gateway.evaluation.questions import Question, has_fact
from gateway.evaluation.score import Row, Tokens, rank, score, total_by_step
from gateway.store.request_log import RequestRecord
from gateway.wiki.source import Page, WikiSource

_PAGES = 5
_SECONDS = 60.0
# After this many failures in a row, the questions are not the cause.
_MOST_FAILURES = 5


class AskOutcome(Struct, frozen=True):
    """An answer, the tokens of each step, and the answer's prompt: ``pages`` is None if it is not known."""

    result: AskResult
    tokens: dict[str, Tokens]
    pages: list[str] | None = None  # titles
    background: str = ""

    @classmethod
    def logged(cls, result: AskResult, record: RequestRecord) -> Self:
        """Read tokens and prompt from the question's record."""
        steps = total_by_step(
            (made.step, Tokens(made.prompt_tokens, made.cached_tokens, made.completion_tokens))
            for made in record.generations
        )
        prompts = [
            made.variables.get("background", "") for made in record.generations if made.step == "answer"
        ]
        background = "\n".join(prompts) or record.details.get("background", "")  # the model was not asked
        return cls(result, steps, [page.title for page in record.pages], background)


# Returns the answer to a question and its costs. Raises HearthError.
Asker = Callable[[str], Awaitable[AskOutcome]]


async def ask_flow(
    flow: AskFlow, records: list[RequestRecord], deadline: float, question: str, adapter: str = ""
) -> AskOutcome:
    """Ask the flow in this process, which appends its request records with the token counts to ``records``."""
    records.clear()
    call = AskCall(id=f"eval-{uuid4().hex[:12]}", question=question, adapter=adapter)
    try:
        async with asyncio.timeout(deadline), aclosing(flow.run(call)) as events:  # type: ignore[type-var]
            async for event in events:
                if isinstance(event, AnswerDone):
                    return AskOutcome.logged(event.result, records[-1])
    except TimeoutError:
        raise DeadlineError(f"no answer within {deadline:g} seconds") from None
    raise HearthError("the flow ended without a result")


class Evaluator:
    """Scores questions against ``wiki``; without an ``asker`` only retrieval, which needs no model."""

    def __init__(self, wiki: WikiSource, asker: Asker | None) -> None:
        self._wiki = wiki
        self._asker = asker

    async def run(self, questions: Sequence[Question]) -> AsyncIterator[Row]:
        """Yield a row per question, in order. A failed question's row has its error.

        Raises ConfigurationError, and after five failures in a row the HearthError of the last one.
        """
        failures = 0
        for question in questions:
            row = await self._retrieved(question)
            if self._asker is not None:
                try:
                    row = await self._asked(row, question, self._asker)
                    failures = 0
                except ConfigurationError:
                    raise  # it affects every question
                except HearthError as error:
                    failures += 1
                    row = msgspec.structs.replace(row, asked=True, error=f"{error.code}: {error.message}")
                    if failures == _MOST_FAILURES:
                        yield row
                        raise
            yield row

    async def _retrieved(self, question: Question) -> Row:
        """Score retrieval by the question's own words.

        Where that is all, a search without its vectors is an error, so that no run mixes two kinds of search.
        """
        own, problem = await self._found(question.text, [])
        return Row(
            id=question.id,
            category=question.category,
            text=question.text,
            answerable=question.answerable,
            facts_wanted=len(question.facts),
            own_rank=rank(own, question.pages),
            error=problem if self._asker is None else None,
        )

    async def _asked(self, row: Row, question: Question, asker: Asker) -> Row:
        asked = await asker(question.text)
        by_terms, _ = await self._found(question.text, asked.result.search_terms)
        row = score(row, question, asked.result, await self._cited(asked.result), by_terms)
        if asked.pages is not None:
            row = msgspec.structs.replace(
                row,
                page_in_prompt=any(title in question.pages for title in asked.pages),
                facts_in_prompt=sum(has_fact(asked.background, fact) for fact in question.facts),
            )
        return msgspec.structs.replace(row, asked=True, tokens=asked.tokens)

    async def _found(self, question: str, terms: list[str]) -> tuple[list[str], str | None]:
        """The titles that the flow's retrieval finds, in its order, and why a search with the question failed."""
        journal = Journal(AskCall(id="evaluation", question=question))
        found = await Retrieval(self._wiki, journal, _PAGES, _SECONDS).run(question, terms)
        problem = next((each.reason for each in journal.skipped if each.title == question), None)
        return [each.page.title for each in found.pages], problem

    async def _cited(self, result: AskResult) -> dict[str, Page]:
        """Fetch the cited pages that the wiki has."""
        pages = {}
        for title in {cited.title for cited in result.citations}:
            try:
                pages[title] = await self._wiki.fetch(title)
            except NotFoundError:
                continue
        return pages
