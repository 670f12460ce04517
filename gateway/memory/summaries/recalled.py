"""Summaries of a month or a year that a message mentions: in the prompt only then."""

from __future__ import annotations

from datetime import date, datetime

from gateway.memory.compose import readable
from gateway.memory.context import MemoryParts
from gateway.memory.planning.periods import mentioned_period
from gateway.memory.types import Block, LeftOut, Offer
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.summaries import superseded_between

# The block's share of the size of a prompt after a compaction.
_SHARE = 0.25


async def recalled_summaries(parts: MemoryParts, conversation: Conversation, asked: str) -> Offer:
    """The newest condensed summaries that fit, in their original words, oldest first."""
    zone = parts.zone(conversation)
    period = mentioned_period(asked, parts.now(conversation).date())
    if period is None:
        return Offer()

    def moment(day: date) -> float:
        return datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()

    found = await parts.database.read(
        lambda c: superseded_between(c, conversation.id, moment(period.first), moment(period.end))
    )
    told = ("\n".join([readable(each.text), *each.pins]).strip() for each in found)
    texts = [text for text in told if text]
    if not texts:
        return Offer()
    room = int((await parts.budget()).floor * _SHARE)
    kept: list[str] = []
    for text, tokens in zip(reversed(texts), reversed(await parts.inference.count(texts)), strict=True):
        room -= tokens + 1
        if room < 0:
            break
        kept.insert(0, text)
    left = len(texts) - len(kept)
    why = f"no room for all that was summarized in {period.name}"
    left_out = [LeftOut(f"{left} older summaries", why)] if left else []
    if not kept:
        return Offer([], left_out)
    text = "\n".join([f"What was said in {period.name}:", *kept])
    [tokens] = await parts.inference.count([text])
    return Offer([Block("recalled", tokens, text)], left_out)
