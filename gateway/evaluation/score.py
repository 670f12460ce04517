"""Scores of one question's result; citations are checked against the cited text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from gateway.ask.checking.citations import is_refusal
from gateway.ask.text.words import is_stop_word
from gateway.ask.types import AskResult, Citation
from gateway.evaluation.questions import Question, has_fact, normalized
from gateway.wiki.source import Page

_MARKER = re.compile(r"\[(\d{1,3})\]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?!\[)|\n+")
# A valid citation has this share of the sentence's key terms (longer words, no stop words) and all its numbers.
_LEAST_SHARE = 0.5
_LONGER = 4  # characters


class Tokens(Struct, frozen=True):
    prompt: int = 0
    cached: int = 0
    completion: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.prompt + other.prompt, self.cached + other.cached, self.completion + other.completion
        )


class Row(Struct, frozen=True, kw_only=True):
    """One question's outcome. Ranks count from 1 and are None if no expected page is among the first three.

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
    citations: int = 0
    valid_citations: int = 0
    right_page: bool = False
    tokens: dict[str, Tokens] = {}  # by step of the flow
    timings: dict[str, float] = {}
    error: str | None = None

    @property
    def right(self) -> bool:
        """Whether all facts are there, or a refusal is right; for retrieval only, an expected page is found."""
        if self.error:
            return False
        if not self.asked:
            return self.own_rank is not None
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
    return msgspec.structs.replace(
        row,
        answer=result.answer,
        refused=is_refusal(result.answer),
        facts=sum(has_fact(result.answer, fact) for fact in question.facts),
        model_rank=rank(found, question.pages),
        terms=result.search_terms,
        citations=len(result.citations),
        valid_citations=sum(_valid(result.answer, each, cited.get(each.title)) for each in result.citations),
        right_page=any(each.title in question.pages for each in result.citations),
        timings=result.timings,
    )


def rank(titles: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return the place of the first expected page among the first three titles, from 1."""
    return next((place for place, title in enumerate(titles[:3], 1) if title in wanted), None)


def _valid(answer: str, cited: Citation, page: Page | None) -> bool:
    """Whether the cited section or the lead has the key terms and numbers of each sentence with the marker."""
    if page is None:
        return False
    texts = [section.text for section in page.sections if section.heading in ("", cited.section)]
    source = normalized("\n".join([page.title, cited.section, *texts]))
    sentences = [s for s in _SENTENCE.split(answer) if str(cited.n) in _MARKER.findall(s)]
    return bool(sentences) and all(_supported(sentence, source) for sentence in sentences)


def _supported(sentence: str, source: str) -> bool:
    words = re.findall(r"\w+", normalized(_MARKER.sub(" ", sentence)))
    known = set(re.findall(r"\w+", source))
    numbers = {word for word in words if word.isdigit()}
    terms = {word for word in words if len(word) >= _LONGER and not word.isdigit() and not is_stop_word(word)}
    share = len(terms & known) / len(terms) if terms else 1.0
    return numbers <= known and share >= _LEAST_SHARE
