"""The best passages in the order of a reranker's scores, as far as time allows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.ask.background.draft import PageDraft, heading_text
from gateway.ask.background.rank import Ranked
from gateway.ask.journal import Journal
from gateway.base.errors import HearthError, PromptTooLongError
from gateway.inference.embedding import RerankCall, Reranker

_MOST = 32  # passages
_AT_ONCE = 8
# Of a passage, which is usually shorter. Question and passage fit the 512 tokens of small models.
_PASSAGE_TOKENS = 320
# Of ask.target_seconds: prompts are planned for the rest.
_SHARE = 0.1


async def rerank(
    reranker: Reranker, journal: Journal, drafts: Sequence[PageDraft], ranked: list[Ranked], target: float
) -> list[Ranked]:
    """Score the best passages, eight at once, for a tenth of ``target`` seconds (0: without limit).

    Passages without a score follow in their order. Without a reranker nothing changes.
    """
    if reranker.name is None or not ranked:
        return ranked
    scores: list[float] = []
    journal.stage("rerank")
    with journal.timed("rerank"):
        try:
            async with asyncio.timeout(_SHARE * target or None):
                for at in range(0, min(len(ranked), _MOST), _AT_ONCE):
                    call = RerankCall(
                        journal.question,
                        [_text(drafts, each) for each in ranked[at : min(at + _AT_ONCE, _MOST)]],
                        max_tokens=_PASSAGE_TOKENS,
                        owner=journal.call.owner,
                        lane="retrieval",
                        request_id=journal.call.id,
                    )
                    scores += (await reranker.rerank(call)).scores
        except TimeoutError:
            done = f"{len(scores)} of {min(len(ranked), _MOST)} passages were scored in {_SHARE * target:g} s"
            journal.skip("the reranker", done)
        except PromptTooLongError as error:
            tokens, limit = error.details.get("tokens"), error.details.get("limit")
            journal.skip("the reranker", f"it takes {limit} tokens, a passage and the question have {tokens}")
        except HearthError as error:
            journal.skip("the reranker", error.message)
    journal.details["rerank"] = {"passages": len(scores)}
    return _merged(ranked, scores)


def _merged(ranked: list[Ranked], scores: list[float]) -> list[Ranked]:
    """The scored passages, best first, then the others with scores that fall from the worst one."""
    if not scores:
        return ranked
    scored = [Ranked(each.draft, each.passage, score) for each, score in zip(ranked, scores, strict=False)]
    rest, worst = ranked[len(scores) :], min(scores)
    best = rest[0].score if rest and rest[0].score else 1.0
    left = [Ranked(each.draft, each.passage, worst * each.score / best) for each in rest]
    return [*sorted(scored, key=lambda each: -each.score), *left]


def _text(drafts: Sequence[PageDraft], each: Ranked) -> str:
    draft = drafts[each.draft]
    passage = draft.passages[each.passage]
    header = passage.header if passage.header != passage.text else ""
    shown = [draft.page.names, heading_text(draft.paths[passage.section]), header, passage.text]
    return "\n".join(filter(None, shown))
