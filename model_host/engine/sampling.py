"""One chain of llama.cpp's samplers per request, with an optional grammar.

Order: biases and ban of end tokens, penalties, top-k, typical-p, top-p, min-p, XTC, temperature, draw; temperature 0
takes the best token. Where top-k or greedy sampling follows, the chain is given only a shortlist that contains the best
k tokens. With a grammar the unconstrained choice is tried first, as in llama.cpp's own ``common_sampler``; only if the
grammar rejects it does the chain draw from the likeliest tokens that the grammar allows.
"""

from __future__ import annotations

import ctypes
import math
import secrets
from typing import Any

import llama_cpp
import numpy as np

from model_host import protocol
from model_host.engine.constraint import Constraint, Logits, Search
from model_host.engine.vocabulary import Vocabulary
from model_host.grammar.gbnf.program import Program
from model_host.protocol import TokenLogprob, TopLogprob

LARGE_VOCABULARY = 16_384  # tokens; with fewer a shortlist costs more than it saves (docs/benchmarks.md)
_LONGEST = 1024  # tokens; a longer list would save little
_FIRST_DISTANCE = 10.0  # from the best logit to the least in the list; adapts while sampling
_FARTHER, _NEARER = 1.5, 0.9
_TRIES = 3
_ENOUGH = 16  # times the wanted tokens: from there on the distance may shrink
_LEAST_LOGPROB = -9999.0  # JSON has no infinity; OpenAI's number for the impossible

_TOKEN_DATA = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)], align=True)


class Shortlist:
    """Finds lists that contain the ``wanted`` likeliest tokens for certain, and not many more.

    llama.cpp's samplers begin with a list of all tokens, which for 262,144 of them means writing and searching 3 MB for
    each token of each sequence. Two passes over the logits find those close to the best.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._distance = _FIRST_DISTANCE

    @staticmethod
    def pays(wanted: int, vocabulary: int) -> bool:
        """Whether a shortlist saves time."""
        return 0 < wanted <= _LONGEST and vocabulary >= LARGE_VOCABULARY

    def find(self, logits: Logits) -> np.ndarray[Any, np.dtype[np.intp]] | None:
        """Ids in ascending order; None if the best logit is not finite, or the list would be long.

        Excluded tokens (minus infinity) are never in it, even if that leaves fewer than wanted.
        """
        best = logits.max()
        if not np.isfinite(best):
            return None
        distance = self._distance
        for _ in range(_TRIES):
            ids = np.flatnonzero(logits >= best - distance)
            if len(ids) >= self._wanted:
                self._distance = distance * (_NEARER if len(ids) > _ENOUGH * self._wanted else 1.0)
                return ids
            distance *= _FARTHER
        ids = np.flatnonzero(logits > -np.inf)
        if len(ids) > _ENOUGH * self._wanted:
            self._distance = distance
            return None
        return ids


class SamplerChain:
    """The sampler of one sequence. Create it anywhere; call :meth:`sample` between decode steps only."""

    def __init__(
        self,
        context: llama_cpp.llama_context_p,
        vocabulary: Vocabulary,
        settings: protocol.Sampling,
        *,
        grammar: Program | None,
        lazy: bool,
        ignore_eos: bool,
        closes: bool,
    ) -> None:
        self.seed = settings.seed if settings.seed is not None else secrets.randbelow(2**32 - 1)
        self._context = context
        self._vocabulary = vocabulary
        self._size = vocabulary.size
        self._constraint = Constraint(vocabulary, grammar, closes=closes) if grammar is not None else None
        self._closes = closes and grammar is not None
        self._ending: list[int] = []  # tokens that remain of the ending
        self.closed = False
        self._constrained = self._constraint is not None and not lazy
        self._ignore_eos = ignore_eos
        self._chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        biases = settings.logit_bias | dict.fromkeys(vocabulary.ending_ids if ignore_eos else [], -math.inf)
        if biases:
            array = (llama_cpp.llama_logit_bias * len(biases))(
                *map(llama_cpp.llama_logit_bias, *zip(*biases.items(), strict=True))
            )
            self._add(llama_cpp.llama_sampler_init_logit_bias(self._size, len(biases), array))
        self._least = settings.min_tokens  # before the reply may end
        self._shortlist: Shortlist | None = None
        self._build(settings, len(biases))

    def sample(self, row: int, left: int) -> int:
        """Choose and accept the next token from output ``row`` of the last batch, the first of ``left``."""
        early = self._least > 0
        self._least -= early
        if not self._constrained and self._shortlist is None and not early:
            return int(llama_cpp.llama_sampler_sample(self._chain, self._context, row))
        logits = self._logits(row)
        if early:
            logits = logits.copy()
            logits[self._vocabulary.ending_ids] = -np.inf
        token = self._draw(logits)
        if self._constrained:
            assert self._constraint is not None
            if not self._constraint.allows(token):
                token = self._draw_allowed(
                    self._constraint, self._logits(row).copy(), endings=not (self._ignore_eos or early)
                )
            token = self._closing(self._constraint, token, left) if self._closes else token
            self._constraint.accept(token)
        llama_cpp.llama_sampler_accept(self._chain, token)
        return token

    def _closing(self, constraint: Constraint, token: int, left: int) -> int:
        """``token``, or the next one of the shortest ending, if the text could not end within the limit otherwise."""
        if not self.closed and not constraint.closes_within(token, left - 1):
            ending = constraint.ending()
            if len(ending) <= left:
                self._ending, self.closed = ending, bool(ending) or constraint.end is not None
        if not self.closed:
            return token
        end = constraint.end
        return self._ending.pop(0) if self._ending else token if end is None else end

    def constrain(self) -> None:
        """Apply a lazy grammar from the next token on."""
        self._constrained = self._constraint is not None

    def logprob(self, row: int, token: int, top: int) -> TokenLogprob:
        """Natural logarithms of the probabilities of ``token`` and of the ``top`` likeliest tokens in output ``row``.

        They are computed from the raw logits, before penalties, temperature and grammar.
        """
        logits = self._logits(row).astype(np.float64)
        logits -= logits.max()
        logits -= np.log(np.exp(logits).sum())
        top = min(top, self._size)
        best = np.argpartition(-logits, top - 1)[:top] if top else np.empty(0, np.int64)
        best = best[np.argsort(-logits[best], kind="stable")]

        def values(one: int) -> tuple[str, list[int], float]:
            piece = self._vocabulary.piece(one)  # empty for a control token
            text = piece.decode("utf-8", "replace") if piece else self._vocabulary.text(one)
            return text, list(piece), round(max(float(logits[one]), _LEAST_LOGPROB), 6)

        return TokenLogprob(*values(token), [TopLogprob(*values(one)) for one in best.tolist()])

    def close(self) -> None:
        """Free the C side."""
        if self._chain is not None:
            llama_cpp.llama_sampler_free(self._chain)
        self._chain = self._constraint = None

    def _build(self, settings: protocol.Sampling, biases: int) -> None:
        neutral = not settings.penalty_last_n or (
            settings.repeat_penalty == 1.0
            and not settings.presence_penalty
            and not settings.frequency_penalty
        )
        wanted = 1 if settings.temperature <= 0.0 else settings.top_k
        # A token that rises may be outside of the list; each that falls needs a further one in it.
        rises = (
            (not neutral and settings.repeat_penalty < 1.0)
            or (not neutral and min(settings.presence_penalty, settings.frequency_penalty) < 0.0)
            or any(bias > 0.0 for bias in settings.logit_bias.values())
        )
        fallen = biases + (0 if neutral else settings.penalty_last_n)
        if wanted and not rises and Shortlist.pays(wanted + fallen, self._size):
            self._shortlist = Shortlist(wanted + fallen)
        if not neutral:
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
        if settings.typical_p < 1.0:
            self._add(llama_cpp.llama_sampler_init_typical(settings.typical_p, 1))
        if settings.top_p < 1.0:
            self._add(llama_cpp.llama_sampler_init_top_p(settings.top_p, 1))
        if settings.min_p > 0.0:
            self._add(llama_cpp.llama_sampler_init_min_p(settings.min_p, 1))
        if settings.xtc_probability > 0.0:
            xtc = settings.xtc_probability, settings.xtc_threshold, 1, self.seed
            self._add(llama_cpp.llama_sampler_init_xtc(*xtc))
        self._add(llama_cpp.llama_sampler_init_temp(settings.temperature))
        self._add(llama_cpp.llama_sampler_init_dist(self.seed))

    def _add(self, sampler: llama_cpp.llama_sampler_p) -> None:
        llama_cpp.llama_sampler_chain_add(self._chain, sampler)

    def _logits(self, row: int) -> Logits:
        """Output ``row`` of the last batch: a view of llama.cpp's own memory."""
        logits = llama_cpp.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(logits, shape=(self._size,))

    def _draw(self, logits: Logits) -> int:
        """Let the chain choose a token; the logits stay as they are."""
        ids = self._shortlist.find(logits) if self._shortlist is not None else None
        data = np.zeros(self._size if ids is None else len(ids), _TOKEN_DATA)
        data["id"] = np.arange(self._size, dtype=np.int32) if ids is None else ids
        data["logit"] = logits if ids is None else logits[ids]
        pointer = data.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(data=pointer, size=len(data), selected=-1, sorted=False)
        llama_cpp.llama_sampler_apply(self._chain, ctypes.byref(array))
        assert 0 <= array.selected < array.size, "the sampler chain selected nothing"
        return int(array.data[array.selected].id)

    def _draw_allowed(self, constraint: Constraint, logits: Logits, *, endings: bool) -> int:
        """Let the chain choose among the tokens that the grammar allows; changes ``logits``."""
        search = Search(constraint, logits, endings=endings)
        while True:
            token = search.narrow()
            if token is not None:
                return token
            token = self._draw(logits)
            if search.allows(token):
                return token
