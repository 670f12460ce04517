"""Seeded texts of a given length in tokens: every server gets the same prompts for the same seed."""

from __future__ import annotations

import random

# Common words, one token each in most vocabularies.
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
    """Texts of one measurement. ``Target.prepare`` measures ``tokens_per_word``."""

    def __init__(self, seed: str, tokens_per_word: float, scale: float = 1.0) -> None:
        self._random = random.Random(seed)
        self._tokens_per_word = tokens_per_word
        self._scale = scale

    def tokens(self, count: int) -> int:
        """Scale ``count``, to at least 8."""
        return max(8, round(count * self._scale))

    def text(self, tokens: int) -> str:
        """Make unique sentences of about ``tokens`` tokens, scaled."""
        return sentences(self._random, max(4, round(self.tokens(tokens) / self._tokens_per_word)))


def sentences(source: random.Random, words: int) -> str:
    """Arrange ``words`` random words in sentences of 8 to 16."""
    parts = []
    while words > 0:
        count = min(words, source.randint(8, 16))
        parts.append(" ".join(source.choices(_WORDS, k=count)).capitalize() + ".")
        words -= count
    return " ".join(parts)
