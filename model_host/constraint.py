"""A grammar over the tokens of a vocabulary: which of them may come next."""

from __future__ import annotations

from typing import Any

import numpy as np

from model_host.gbnf.matcher import Matcher
from model_host.gbnf.program import Program
from model_host.gbnf.syntax import GrammarError
from model_host.vocabulary import Vocabulary

FIRST_LOOK = 64  # of the likeliest tokens, how many are looked at to begin with

Logits = np.ndarray[Any, np.dtype[np.float32]]


class Constraint:
    """A grammar and the text so far. Its methods raise GrammarError where the grammar asks for too much work."""

    def __init__(self, vocabulary: Vocabulary, grammar: Program) -> None:
        self._vocabulary = vocabulary
        self._endings = frozenset(vocabulary.ending_ids)
        self._matcher = Matcher(grammar)
        self._first_bytes = vocabulary.first_bytes  # made here, where nobody else waits for it

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
        # One entry more, the last, for tokens without bytes: their first byte is given as -1.
        allowed = np.array([most or allowed for allowed in self._matcher.first_bytes()] + [False])
        possible = allowed[self._first_bytes]
        possible[list(named)] = True
        possible[list(self._endings)] = endings and self._matcher.may_end
        logits[~possible] = -np.inf


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
        amount = min(self._amount, self._unseen.size)
        best = np.argpartition(self._unseen, self._unseen.size - amount)[-amount:]
        best = best[np.isfinite(self._unseen[best])]
        for token in best.tolist():
            if self._constraint.allows(token):
                self._allowed.add(token)
            else:
                self._logits[token] = -np.inf
        self._unseen[best] = -np.inf
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
