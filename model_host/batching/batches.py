"""The batches of a step. Pure.

llama.cpp's attention computes tiles of 64 tokens of a prompt against every cell that one of them may see. A token of
another conversation among them makes its whole tile read that conversation's cells as well: a step of 128 tokens took
up to 1.5 times as long as the same tokens in two batches (`mixed_steps.py` in commit 74249d7).
"""

from __future__ import annotations

from collections.abc import Sequence

from model_host.batching.scheduler import Feed
from model_host.batching.tiles import TILE_ROWS


def batches(feeds: Sequence[Feed]) -> list[list[Feed]]:
    """What is computed at once: those that decode first, as somebody reads along, then the prompts."""
    decoding = [feed for feed in feeds if feed.sequence.decoding]
    reading = [feed for feed in feeds if not feed.sequence.decoding]
    if sum(feed.count for feed in reading) < TILE_ROWS:  # without tiles
        decoding, reading = [*decoding, *reading], []
    return [batch for batch in (decoding, reading) if batch]
