"""Applies a grammar to the tokens of a vocabulary: which tokens may come next."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from model_host.engine.vocabulary import Vocabulary
from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.program import Program
from model_host.grammar.gbnf.syntax import GrammarError

FEW = 8  # prefixes of tokens
FIRST_LOOK = 64  # likeliest tokens that are checked first

Logits = np.ndarray[Any, np.dtype[np.float32]]


class Constraint:
    """A grammar and the text so far. Its methods raise GrammarError when the grammar takes too much work."""

    def __init__(self, vocabulary: Vocabulary, grammar: Program, *, closes: bool = False) -> None:
        """``closes``: :meth:`closes_within` and :meth:`ending` are needed."""
        self._vocabulary = vocabulary
        self._endings = frozenset(vocabulary.ending_ids)
        self._matcher = Matcher(grammar)
        self._beginnings = vocabulary.beginnings  # computed now, in the preparer, and not during a step
        if closes:
            self._matcher.plan_endings()

    def allows(self, token: int) -> bool:
        """Whether ``token`` may come next. End tokens may when the text is complete."""
        if token in self._endings:
            return self._matcher.may_end
        return self._matcher.allows(token, self._vocabulary.piece(token))

    def accept(self, token: int) -> None:
        if token not in self._endings:
            self._matcher.accept(token, self._vocabulary.piece(token))

    def closes_within(self, token: int, left: int) -> bool:
        """Whether ``left`` tokens after ``token``, which may come next, can end the text."""
        if token in self._endings:
            return True
        piece = self._vocabulary.piece(token)
        length = self._matcher.ending_length(token, piece)
        if length <= left or length == math.inf:
            return length <= left
        return len(self._vocabulary.spell(self._matcher.ending(token, piece)) or range(left + 1)) <= left

    def ending(self) -> list[int]:
        """Tokens of the shortest ending of the text, where there is one; none if they lack a byte."""
        return self._vocabulary.spell(self._matcher.ending())

    @property
    def end(self) -> int | None:
        """A token that may end the reply now, if there is one."""
        return next(iter(self._endings), None) if self._matcher.may_end else None

    def exclude(self, logits: Logits, *, endings: bool) -> None:
        """Exclude the tokens that cannot come next, judged by their first bytes, and without ``endings`` end tokens."""
        named, most = self._matcher.tokens()
        firsts = self._matcher.first_bytes()
        # The last entry is for tokens without such a byte, which have -1 there.
        possible = np.array([most or allowed for allowed in firsts] + [False])[self._beginnings[0]]
        if not most:
            self._exclude_longer(possible)
        possible[list(named)] = True
        possible[list(self._endings)] = endings and self._matcher.may_end
        logits[~possible] = -np.inf

    def _exclude_longer(self, possible: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Exclude by the following bytes as well while few prefixes are possible: then few of many tokens are."""
        tokens: dict[bytes, Any] = {b"": slice(None)}  # by prefix
        for row, following in pairwise(self._beginnings):
            prefixes = [
                prefix + bytes([byte])
                for prefix in tokens
                for byte, allowed in enumerate(self._matcher.first_bytes(prefix))
                if allowed
            ]
            if len(prefixes) > FEW:
                return
            found = {}
            for prefix in prefixes:
                within = tokens[prefix[:-1]]
                same = np.flatnonzero(row[within] == prefix[-1])
                these = found[prefix] = same if isinstance(within, slice) else within[same]
                possible[these] = np.array([*self._matcher.first_bytes(prefix), True])[following[these]]
            tokens = found


class Search:
    """Finds the likeliest tokens that a constraint allows, and excludes others from ``logits`` on the way.

    Without ``endings`` the reply ends only where nothing else can follow.
    """

    def __init__(self, constraint: Constraint, logits: Logits, *, endings: bool) -> None:
        constraint.exclude(logits, endings=endings)
        self._constraint = constraint
        self._logits = logits
        self._unseen = logits.copy()
        self._amount = FIRST_LOOK
        self._allowed: set[int] = set()

    def narrow(self) -> int | None:
        """Check the likeliest tokens that were not checked yet, and exclude those that are not allowed.

        Returns an end token if nothing else is left. Raises GrammarError if no token is.
        """
        left = self._unseen > -np.inf
        count = int(np.count_nonzero(left))
        amount = min(self._amount, count)
        if count > self._unseen.size // 4:
            best = np.argpartition(self._unseen, -amount)[-amount:]
        else:  # partitioning many equal values takes long
            best = np.flatnonzero(left)
            if amount < count:
                best = best[np.argpartition(self._unseen[best], -amount)[-amount:]]
        self._unseen[best] = -np.inf
        for token in best.tolist():
            if self._constraint.allows(token):
                self._allowed.add(token)
            else:
                self._logits[token] = -np.inf
        self._amount *= 2
        if np.isfinite(self._logits).any():
            return None
        if self._constraint.end is None:
            raise GrammarError(
                "no token of the model's vocabulary continues the text as the grammar requires"
            )
        return self._constraint.end

    def allows(self, token: int) -> bool:
        """Whether ``token`` is allowed; if not, it is excluded from now on."""
        if token in self._allowed or self._constraint.allows(token):
            return True
        self._logits[token] = self._unseen[token] = -np.inf
        return False
