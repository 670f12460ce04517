"""The tokens of one step, and their division into batches. Pure.

llama.cpp's attention computes tiles of 64 prompt tokens against every cell that one of them may see. A token of another
conversation in a tile makes the whole tile visit that conversation's cells as well: a step of 128 tokens took up to 1.5
times as long as the same tokens in two batches (`mixed_steps.py` in commit 74249d7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from model_host.batching.request import SequenceState
from model_host.batching.tiles import TILE_ROWS


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens to append to a KV sequence from position ``start`` on. The last ``logits`` of them get output rows."""

    sequence: int
    start: int
    tokens: Sequence[int]
    logits: int


@dataclass(frozen=True, slots=True)
class Feed:
    """The next ``count`` pending tokens of ``sequence``. ``last``: they are all that is pending, so it needs logits.

    ``draft`` tokens are decoded after them with logits of their own, and stay only if they are sampled.
    """

    sequence: SequenceState
    count: int
    last: bool
    draft: tuple[int, ...] = ()

    def span(self) -> Span:
        """The feed as the engine takes it."""
        sequence = self.sequence
        assert sequence.slot is not None
        tokens = [*sequence.tokens[sequence.done : sequence.done + self.count], *self.draft]
        rows = 1 + len(self.draft) if self.last else 0
        return Span(sequence.slot.id, sequence.done, tokens, len(tokens) if sequence.scoring else rows)


def batches(feeds: Sequence[Feed]) -> list[list[Feed]]:
    """Decoding sequences first, whose readers wait, then prompts; all in one batch if the prompts fill no tile.

    A batch has one adapter, because llama.cpp computes a whole batch with the same ones.
    """
    made = []
    for adapter in dict.fromkeys(feed.sequence.adapter for feed in feeds):
        alike = [feed for feed in feeds if feed.sequence.adapter == adapter]
        decoding = [feed for feed in alike if feed.sequence.decoding]
        prefilling = [feed for feed in alike if not feed.sequence.decoding]
        if sum(feed.count for feed in prefilling) < TILE_ROWS:
            decoding, prefilling = [*decoding, *prefilling], []
        made += [batch for batch in (decoding, prefilling) if batch]
    return made
