"""Seeded texts of a wanted length in tokens. The same seed gives every server the very same prompts."""

from __future__ import annotations

import random

# Ordinary words: most vocabularies have one token for each.
_TEXT = (
    "the a of to and in that it was for on with as at by from this be have not are but they his her she which "
    "you one we all there can more when what time up out if about who get would make like him into year some "
    "could them see other than then now look only come over think also back after use two how our work first "
    "well way even new want because any these give day most us water river stone garden window table paper "
    "letter ferry island harbour market bridge forest mountain village winter summer morning evening doctor "
    "teacher farmer sailor captain number answer question story music colour bread apple coffee sugar engine "
    "train ticket station street corner lamp mirror clock silver copper iron wooden heavy narrow quiet early"
)
_WORDS = _TEXT.split()


class BenchmarkTexts:
    """Texts of one measurement. ``tokens_per_word`` is the server's own, see ``Target.prepare``."""

    def __init__(self, seed: str, tokens_per_word: float, scale: float = 1.0) -> None:
        self._random = random.Random(seed)
        self._tokens_per_word = tokens_per_word
        self._scale = scale

    def tokens(self, count: int) -> int:
        """``count`` made smaller or larger by the scale; at least 8."""
        return max(8, round(count * self._scale))

    def text(self, tokens: int) -> str:
        """About ``tokens`` tokens, times the scale, of sentences that occur nowhere else."""
        return sentences(self._random, max(4, round(self.tokens(tokens) / self._tokens_per_word)))


def sentences(source: random.Random, words: int) -> str:
    """``words`` random words as sentences of 8 to 16."""
    parts = []
    while words > 0:
        count = min(words, source.randint(8, 16))
        parts.append(" ".join(source.choices(_WORDS, k=count)).capitalize() + ".")
        words -= count
    return " ".join(parts)
