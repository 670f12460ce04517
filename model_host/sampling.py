"""Per-request sampler chains on llama.cpp's samplers, with optional grammar.

Order: end-of-text ban, penalties, top-k, top-p, min-p, temperature, draw; temperature 0 takes the best token.
With a grammar the unconstrained choice is tried first and redrawn among the allowed tokens only when the
grammar rejects it, which gives the constrained distribution without filtering the vocabulary every time
(the scheme of llama.cpp's own ``common_sampler``).
"""

from __future__ import annotations

import ctypes
import math
import secrets
from typing import Any

import llama_cpp
import numpy as np

from model_host import protocol
from model_host.grammar import GrammarError, check_grammar
from model_host.vocabulary import Vocabulary

_TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)], align=True)


class SamplerChain:
    """The sampler of one sequence. Create it anywhere; call :meth:`sample` between decode steps only."""

    def __init__(
        self,
        context: llama_cpp.llama_context_p,
        vocabulary: Vocabulary,
        settings: protocol.Sampling,
        *,
        grammar: str | None = None,
        grammar_waits: bool = False,
        ignore_eos: bool = False,
    ) -> None:
        self.seed = settings.seed if settings.seed is not None else secrets.randbelow(2**32 - 1)
        self._context = context
        self._size = vocabulary.size
        self._grammar = self._make_grammar(vocabulary, grammar) if grammar is not None else None
        self._constrained = self._grammar is not None and not grammar_waits
        self._chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        if ignore_eos:
            self._add(self._ban(vocabulary.ending_ids))
        self._build(settings)
        self._best_first = np.zeros(self._size, _TOKEN_DATA) if self._grammar is not None else None

    def sample(self, row: int) -> int:
        """Choose and accept the next token from output ``row`` of the last batch."""
        if not self._constrained:
            return int(llama_cpp.llama_sampler_sample(self._chain, self._context, row))
        token = self._draw(row, constrained=False)
        if not self._allowed(token):
            token = self._draw(row, constrained=True)
        llama_cpp.llama_sampler_accept(self._grammar, token)
        llama_cpp.llama_sampler_accept(self._chain, token)
        return token

    def constrain(self) -> None:
        """From the next token on the grammar holds, if there is one that waits."""
        self._constrained = self._grammar is not None

    def logprobs(self, row: int, token: int, top: int) -> tuple[float, list[tuple[int, float]]]:
        """Natural logarithms of the model's probabilities: of ``token``, and of the ``top`` likeliest tokens.

        They come from the raw logits, before penalties, temperature and grammar.
        """
        logits = np.ctypeslib.as_array(
            llama_cpp.llama_get_logits_ith(self._context, row), shape=(self._size,)
        ).astype(np.float64)
        logits -= logits.max()
        logits -= np.log(np.exp(logits).sum())
        top = min(top, self._size)
        best = np.argpartition(-logits, top - 1)[:top] if top else np.empty(0, np.int64)
        best = best[np.argsort(-logits[best], kind="stable")]
        return float(logits[token]), [(int(one), float(logits[one])) for one in best]

    def close(self) -> None:
        """Free the C side."""
        for sampler in (self._chain, self._grammar):
            if sampler is not None:
                llama_cpp.llama_sampler_free(sampler)
        self._chain = self._grammar = None

    def _build(self, settings: protocol.Sampling) -> None:
        neutral = (
            settings.repeat_penalty == 1.0
            and not settings.presence_penalty
            and not settings.frequency_penalty
        )
        if not neutral and settings.penalty_last_n:
            self._add(
                llama_cpp.llama_sampler_init_penalties(
                    self._size,
                    settings.penalty_last_n,
                    settings.repeat_penalty,
                    settings.frequency_penalty,
                    settings.presence_penalty,
                )
            )
        if settings.temperature <= 0.0:
            self._add(llama_cpp.llama_sampler_init_greedy())
            return
        if settings.top_k:
            self._add(llama_cpp.llama_sampler_init_top_k(settings.top_k))
        if settings.top_p < 1.0:
            self._add(llama_cpp.llama_sampler_init_top_p(settings.top_p, 1))
        if settings.min_p > 0.0:
            self._add(llama_cpp.llama_sampler_init_min_p(settings.min_p, 1))
        self._add(llama_cpp.llama_sampler_init_temp(settings.temperature))
        self._add(llama_cpp.llama_sampler_init_dist(self.seed))

    def _add(self, sampler: llama_cpp.llama_sampler_p) -> None:
        llama_cpp.llama_sampler_chain_add(self._chain, sampler)

    def _ban(self, tokens: list[int]) -> Any:
        biases = (llama_cpp.llama_logit_bias * max(1, len(tokens)))()
        for bias, token in zip(biases, tokens, strict=False):
            bias.token, bias.bias = token, -math.inf
        return llama_cpp.llama_sampler_init_logit_bias(self._size, len(tokens), biases)

    def _make_grammar(self, vocabulary: Vocabulary, grammar: str) -> Any:
        check_grammar(grammar)
        sampler = llama_cpp.llama_sampler_init_grammar(vocabulary.handle, grammar.encode(), b"root")
        if not sampler:
            raise GrammarError("the grammar does not parse, has no rule `root`, or is left-recursive")
        return sampler

    def _draw(self, row: int, *, constrained: bool) -> int:
        assert self._best_first is not None
        logits = llama_cpp.llama_get_logits_ith(self._context, row)
        data = self._best_first
        data["id"] = np.arange(self._size, dtype=np.int32)
        data["logit"] = np.ctypeslib.as_array(logits, shape=(self._size,))
        data["p"] = 0.0
        array = _array_over(data)
        if constrained:
            llama_cpp.llama_sampler_apply(self._grammar, ctypes.byref(array))
        llama_cpp.llama_sampler_apply(self._chain, ctypes.byref(array))
        assert 0 <= array.selected < array.size, "the sampler chain selected nothing"
        return int(array.data[array.selected].id)

    def _allowed(self, token: int) -> bool:
        single = np.array([(token, 1.0, 0.0)], _TOKEN_DATA)
        array = _array_over(single)
        llama_cpp.llama_sampler_apply(self._grammar, ctypes.byref(array))
        return bool(array.data[0].logit != -math.inf)


def _array_over(data: np.ndarray[Any, Any]) -> Any:
    pointer = data.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
    return llama_cpp.llama_token_data_array(data=pointer, size=len(data), selected=-1, sorted=False)
