"""Scores of one question's result; citations are checked against the cited text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from gateway.ask.checking.citations import is_refusal
from gateway.ask.types import AskResult
from gateway.evaluation.questions import Question, has_fact
from gateway.evaluation.support import judge
from gateway.wiki.source import Page


class Tokens(Struct, frozen=True):
    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.prompt + other.prompt, self.cached + other.cached, self.completion + other.completion
        )


class MemoryContents(Struct, frozen=True, kw_only=True):
    """The memory's contents after a dialogue.

    Of the ``planted`` items: ``in_prompt`` of the message after it, ``when_asked`` in the prompt of the question,
    ``first_five`` of a search, ``in_facts``. ``stale``: shown as current though superseded. ``invented``:
    in summaries or facts and nowhere in the log. ``leaked``: secrets in files. ``waited``: seconds until each message
    was stored, or its prompt made.
    """

    messages: int
    planted: int
    in_prompt: int
    when_asked: int
    first_five: int
    in_facts: int
    missing: list[str]  # of ``when_asked``
    tasks: int
    tasks_right: int
    stored_facts: list[str]
    stale: list[str]
    invented: list[str]
    secrets: int
    leaked: list[str]
    waited: list[float]
    calls: dict[str, int]  # model calls before the questions, by kind
    summaries: int  # by the model
    extracts: int


class Row(Struct, frozen=True, kw_only=True):
    """The outcome of one question, line or dialogue.

    Ranks count from 1; None: no expected page is among the first three.

    ``asked`` is false if only retrieval was scored; ``error`` says why there is no answer.
    """

    id: str
    category: str
    text: str
    answerable: bool
    asked: bool = False
    answer: str = ""
    refused: bool = False
    facts: int = 0  # found
    facts_wanted: int = 0
    own_rank: int | None = None  # of an expected page, by the question's own words
    model_rank: int | None = None  # by the model's terms
    terms: list[str] = []
    page_in_prompt: bool | None = None  # an expected page; None: not known
    facts_in_prompt: int | None = None
    statements: int = 0
    recalled_statements: int = 0  # supported by what they cite
    citations: int = 0
    precise_citations: int = 0
    right_page: bool = False
    tokens: dict[str, Tokens] = {}  # by step of the flow
    timings: dict[str, float] = {}
    # Of a line of conversation: facts and task changes that it left, those of them that do not follow from it.
    stored: int | None = None
    wrong: list[str] = []
    changes: int = 0  # expected task changes that were made
    changes_wanted: int = 0
    kept: MemoryContents | None = None  # of a dialogue
    error: str | None = None

    @property
    def right(self) -> bool:
        """Whether all facts are there, or a refusal is right; for retrieval only, an expected page is found.

        A line of conversation has left what it should, and nothing wrong.
        """
        if self.error:
            return False
        if self.kept is not None:
            return not (self.kept.stale or self.kept.invented or self.kept.leaked)
        if self.stored is not None:
            return (self.facts, self.changes, len(self.wrong)) == (self.facts_wanted, self.changes_wanted, 0)
        if not self.asked:
            return within(self.own_rank, 3)
        return self.facts == self.facts_wanted if self.answerable else self.refused


def total_by_step(costs: Iterable[tuple[str, Tokens]]) -> dict[str, Tokens]:
    """Sum costs by step of the flow."""
    steps: dict[str, Tokens] = {}
    for step, cost in costs:
        steps[step] = steps.get(step, Tokens()) + cost
    return steps


def score(
    row: Row, question: Question, result: AskResult, cited: Mapping[str, Page], found: Sequence[str]
) -> Row:
    """Add the scores of an answer. ``found`` are titles by the model's terms, ``cited`` the cited pages."""
    judged = judge(
        result.answer, {each.n: cited[each.title] for each in result.citations if each.title in cited}
    )
    return msgspec.structs.replace(
        row,
        answer=result.answer,
        refused=is_refusal(result.answer),
        facts=sum(has_fact(result.answer, fact) for fact in question.facts),
        model_rank=rank(found, question.pages),
        terms=result.search_terms,
        statements=judged.statements,
        recalled_statements=judged.recalled,
        citations=judged.citations,
        precise_citations=judged.precise,
        right_page=any(each.title in question.pages for each in result.citations),
        timings=result.timings,
    )


def rank(titles: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the place of the first expected page among the first five titles, from 1."""
    return next((place for place, title in enumerate(titles[:5], 1) if title in wanted), None)


def within(place: int | None, first: int) -> bool:
    """Whether a place is among the ``first`` ones."""
    return place is not None and place <= first
