"""Log-probabilities as they are reported beside the text they belong to."""

from __future__ import annotations

from typing import Protocol

from model_host.batching.request import SequenceState
from model_host.protocol import TokenLogprob, TopLogprob

_LEAST = -9999.0  # JSON has no infinity; OpenAI's number for the impossible


class Spelling(Protocol):
    """What is needed of the model."""

    def piece(self, token: int) -> bytes:
        """Bytes a token adds to the text."""
        ...

    def text(self, token: int) -> str:
        """The token as the vocabulary spells it."""
        ...


def token_logprob(model: Spelling, sequence: SequenceState, row: int, token: int) -> TokenLogprob | None:
    """Of a token sampled from output ``row``, and of the likeliest there; None where nobody asked for it."""
    if sequence.logprobs is None:
        return None
    own, best = sequence.sampler.logprobs(row, token, sequence.logprobs)
    top = [TopLogprob(*_spelled(model, one), _finite(value)) for one, value in best]
    return TokenLogprob(*_spelled(model, token), _finite(own), top)


def _spelled(model: Spelling, token: int) -> tuple[str, list[int]]:
    """A token's text, and the bytes it adds to the output: none for a control token."""
    piece = model.piece(token)
    return piece.decode("utf-8", "replace") if piece else model.text(token), list(piece)


def _finite(logprob: float) -> float:
    return round(max(logprob, _LEAST), 6)
