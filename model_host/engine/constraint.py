"""A grammar over the tokens of a vocabulary: which of them may come next."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from model_host.engine.vocabulary import Vocabulary
from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.program import Program
from model_host.grammar.gbnf.syntax import GrammarError

FEW = 8  # beginnings of tokens
FIRST_LOOK = 64  # of the likeliest tokens, how many are looked at to begin with

Logits = np.ndarray[Any, np.dtype[np.float32]]


class Constraint:
    """A grammar and the text so far. Its methods raise GrammarError where the grammar asks for too much work."""

    def __init__(self, vocabulary: Vocabulary, grammar: Program) -> None:
        self._vocabulary = vocabulary
        self._endings = frozenset(vocabulary.ending_ids)
        self._matcher = Matcher(grammar)
        self._beginnings = vocabulary.beginnings  # made here, where nobody else waits for it

    def allows(self, token: int) -> bool:
        """Whether ``token`` may come next. Tokens that end a generation may when the text is complete."""
        if token in self._endings:
            return self._matcher.may_end
        return self._matcher.allows(token, self._vocabulary.piece(token))

    def accept(self, token: int) -> None:
        """Go on behind a token that is allowed."""
        if token not in self._endings:
            self._matcher.accept(token, self._vocabulary.piece(token))

    @property
    def end(self) -> int | None:
        """A token that ends the reply, where the text is complete and there is one."""
        return next(iter(self._endings), None) if self._matcher.may_end else None

    def exclude(self, logits: Logits, *, endings: bool) -> None:
        """Take out of ``logits`` what cannot come next, judging by first bytes; without ``endings`` those too."""
        named, most = self._matcher.tokens()
        firsts = self._matcher.first_bytes()
        # One entry more, the last, for tokens without such a byte: it is given as -1.
        possible = np.array([most or allowed for allowed in firsts] + [False])[self._beginnings[0]]
        if not most:
            self._exclude_longer(possible)
        possible[list(named)] = True
        possible[list(self._endings)] = endings and self._matcher.may_end
        logits[~possible] = -np.inf

    def _exclude_longer(self, possible: np.ndarray[Any, np.dtype[np.bool_]]) -> None:
        """Judge by the following bytes too where few are possible: few tokens are, to be looked for among many."""
        tokens: dict[bytes, Any] = {b"": slice(None)}  # by what they begin with
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
    """The likeliest tokens that a constraint allows, looked for from the top. ``logits`` are changed on the way.

    Without ``endings`` the reply ends only where nothing else can follow.
    """

    def __init__(self, constraint: Constraint, logits: Logits, *, endings: bool) -> None:
        constraint.exclude(logits, endings=endings)
        self._constraint = constraint
        self._logits = logits
        self._unseen = logits.copy()
        self._amount = FIRST_LOOK
        self._allowed: set[int] = set()

    def look(self) -> int | None:
        """Take those out of the logits that are not allowed, among the likeliest that were not looked at yet.

        Returns a token when it is the only one left: the end. Raises GrammarError when there is none at all.
        """
        left = self._unseen > -np.inf
        count = int(np.count_nonzero(left))
        amount = min(self._amount, count)
        if count > self._unseen.size // 4:
            best = np.argpartition(self._unseen, -amount)[-amount:]
        else:  # partitioning many equal ones takes long
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
            raise GrammarError("no token of the model's vocabulary goes on as the grammar wants")
        return self._constraint.end

    def allows(self, token: int) -> bool:
        """Whether ``token`` is allowed; if not, it is out of the logits from now on."""
        if token in self._allowed or self._constraint.allows(token):
            return True
        self._logits[token] = self._unseen[token] = -np.inf
        return False
