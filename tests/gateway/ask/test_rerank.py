"""The order of passages by a real reranker host, whose weights are random."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.ask.background.draft import RetrievedPage, draft_page
from gateway.ask.background.rank import Ranked, rank
from gateway.ask.background.rerank import rerank
from gateway.ask.journal import Journal
from gateway.ask.types import AskCall
from gateway.config.settings import ModelSettings
from gateway.inference.embedder import HostReranker
from gateway.inference.embedding import RerankCall, Reranker
from gateway.models.catalog import ResolvedModel
from tests.gateway.ask.helpers import BEFUNGE, PIET, page

QUESTION = "Who made Befunge?"
DRAFTS = [
    draft_page(RetrievedPage(page("Befunge", *BEFUNGE), "q"), 40),
    draft_page(RetrievedPage(page("Piet", *PIET), "q"), 40),
]


@pytest.fixture
async def reranker(tiny_reranker: Path) -> AsyncIterator[HostReranker]:
    model = ResolvedModel(
        name="tiny", path=tiny_reranker, size_bytes=1, ram_bytes=1, context=256, kind="rerank"
    )
    host = HostReranker(lambda: model, ModelSettings(threads=1, memory_headroom_bytes=0))
    yield host
    await host.close()


def places(ranked: list[Ranked]) -> list[tuple[int, int]]:
    return [(each.draft, each.passage) for each in ranked]


async def test_passages_come_in_the_order_of_their_scores(reranker: HostReranker) -> None:
    journal = Journal(AskCall(id="q", question=QUESTION))
    ranked = rank(DRAFTS, QUESTION)
    found = await rerank(reranker, journal, DRAFTS, ranked, 0.0)
    texts = {
        (0, 0): f"Befunge\n{BEFUNGE[0]}",
        (0, 1): f"Befunge\nHistory\n{BEFUNGE[1][1]}",
        (0, 2): f"Befunge\nPlayfield\n{BEFUNGE[2][1]}",
        (1, 0): f"Piet\n{PIET[0]}",
        (1, 1): f"Piet\nName\n{PIET[1][1]}",
    }
    assert sorted(places(ranked)) == sorted(texts)
    scores = (await reranker.rerank(RerankCall(QUESTION, list(texts.values())))).scores
    expected = dict(zip(texts, scores, strict=True))
    assert places(found) == sorted(texts, key=lambda place: -expected[place])
    assert [each.score for each in found] == pytest.approx(sorted(scores, reverse=True), abs=1e-3)
    assert journal.details["rerank"] == {"passages": 5} and not journal.skipped
    assert "rerank" in journal.timings()


async def test_what_time_does_not_allow_keeps_its_order(reranker: HostReranker) -> None:
    """The host is not loaded yet, and a tenth of the target is too short for that."""
    journal = Journal(AskCall(id="q", question=QUESTION))
    ranked = rank(DRAFTS, QUESTION)
    assert await rerank(reranker, journal, DRAFTS, ranked, 0.001) == ranked
    [skipped] = journal.skipped
    assert (skipped.title, skipped.reason) == (
        "the reranker",
        "0 of 5 passages were scored in 0.0001 s",
    )


async def test_a_failing_reranker_is_reported(reranker: HostReranker) -> None:
    journal = Journal(AskCall(id="q", question="word " * 300))
    ranked = rank(DRAFTS, QUESTION)
    assert await rerank(reranker, journal, DRAFTS, ranked, 0.0) == ranked
    assert journal.skipped[0].reason.startswith("it takes 256 tokens, a passage and the question have ")


async def test_passages_without_a_score_follow(reranker: HostReranker) -> None:
    """More passages than are scored: the rest keeps its order behind them."""
    sections = [(f"H{n}", f"Befunge fact number {n}.") for n in range(60)]
    many = draft_page(RetrievedPage(page("Long", "Lead.", *sections), "q"), 40)
    ranked = rank([many], QUESTION)
    assert len(ranked) == 61
    found = await rerank(reranker, Journal(AskCall(id="q", question=QUESTION)), [many], ranked, 0.0)
    assert places(found)[32:] == places(ranked)[32:]
    assert sorted(places(found)[:32]) == sorted(places(ranked)[:32])
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)


async def test_without_a_reranker_nothing_changes() -> None:
    journal = Journal(AskCall(id="q", question=QUESTION))
    ranked = rank(DRAFTS, QUESTION)
    assert await rerank(Reranker(), journal, DRAFTS, ranked, 20.0) == ranked
    assert journal.details == {} and journal.timings().keys() == {"total"}
