"""How much a question may read and write to be answered within ``ask.target_seconds``.

A question's time begins when the model is loaded. The functions are pure; :class:`QuestionClock` has the time.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from statistics import median

from msgspec import Struct

from gateway.ask.limits import Limits
from gateway.inference.interface import HostHealth
from gateway.inference.speed import Speed

# A cited answer needs about this many tokens of pages: with question and instruction a prompt of 400.
LEAST_PAGE_TOKENS = 300
# Of a prompt with a short question and no pages.
_BARE_TOKENS = 100
# Of the request for search terms, and of an answer of one to three sentences until this server has written some.
EXPECTED_TERMS_TOKENS = 24
EXPECTED_ANSWER_TOKENS = 60
# Prompts are planned for this share of the target, because estimates are as often too low as too high.
_PLANNED = 0.9
# An answer ends when the question is estimated to have taken this many times the target, but not before it has the
# least tokens.
_LATE = 1.25
_LEAST_ANSWER_TOKENS = 64
_ANSWERS = 15  # whose length is remembered


class PromptPlan(Struct, frozen=True):
    """Tokens of the whole answer prompt, the reason for their number, and when the answer should be complete.

    ``seconds`` count from the load of the model; None if its speed is not known.
    """

    tokens: int
    reason: str
    seconds: float | None = None


class AnswerLength:
    """The median length of this server's last answers, in tokens. The mean would follow those that run on."""

    def __init__(self) -> None:
        self._last = deque([EXPECTED_ANSWER_TOKENS], maxlen=_ANSWERS)

    def add(self, tokens: int) -> None:
        self._last.append(tokens)

    def expected(self, limits: Limits) -> int:
        return min(round(median(self._last)), limits.answer)


def plan_prompt(
    limits: Limits, bare: int, speed: Speed | None, *, target: float, spent: float, answer: int
) -> PromptPlan:
    """Fit a prompt and an answer of ``answer`` tokens into what is left of ``target`` seconds after ``spent`` ones.

    ``bare`` tokens are the prompt without pages. Never less than a cited answer needs, nor more than ``limits``.
    """
    if speed is None:
        reason = "" if limits.prompt_fixed else "; the model's speed here is not known yet"
        return PromptPlan(limits.prompt, limits.reason + reason)

    def seconds(tokens: int) -> float:
        return spent + speed.seconds(tokens, answer)

    def planned(tokens: int, reason: str) -> PromptPlan:
        return PromptPlan(tokens, reason, round(seconds(tokens), 1))

    if limits.prompt_fixed:
        return planned(limits.prompt, limits.reason)
    if not target:
        return planned(limits.prompt, f"{limits.reason}; ask.target_seconds is 0, so time sets no limit")
    fitting = speed.readable(_PLANNED * target - spent, answer, limits.prompt)
    if fitting >= limits.prompt:
        return planned(limits.prompt, limits.reason)
    pace = f"at {speed.reading:,.0f} tokens/s read and {speed.writing:,.0f} written"
    least = min(limits.prompt, bare + max(LEAST_PAGE_TOKENS, limits.min_space))
    if fitting >= least:
        return planned(fitting, f"what is answered within ask.target_seconds ({target:g} s) {pace}")
    return planned(
        least,
        f"the least for a cited answer: {pace} it takes about {seconds(least):.0f} s "
        f"(ask.target_seconds is {target:g})",
    )


def answer_limit(limits: Limits, prompt: int, speed: Speed | None, *, target: float, spent: float) -> int:
    """Tokens that are written before the question has taken 1.25 times its target."""
    if limits.answer_fixed or not target or speed is None:
        return limits.answer
    latest = _LATE * target - spent
    fitting = bisect_right(range(limits.answer + 1), latest, key=lambda tokens: speed.seconds(prompt, tokens))
    return max(fitting - 1, min(_LEAST_ANSWER_TOKENS, limits.answer))


def typical_question(limits: Limits, speed: Speed, target: float) -> PromptPlan:
    """Plan a short question with a request for search terms, as far as that is known without asking it."""
    asking = speed.seconds(_BARE_TOKENS, EXPECTED_TERMS_TOKENS)
    answer = min(EXPECTED_ANSWER_TOKENS, limits.answer)
    return plan_prompt(limits, _BARE_TOKENS, speed, target=target, spent=asking, answer=answer)


class QuestionClock:
    """The time of one question. ``health`` is the host's; :meth:`start` is called once the model is loaded."""

    def __init__(
        self, target: float, health: Callable[[], HostHealth], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.target = target
        self._health = health
        self._clock = clock
        self._start = clock()
        self._speed: Speed | None = None  # as last looked at, with none of the question's requests running
        self._reserved = 0.0  # seconds of the answer, and of summaries that were begun

    def start(self) -> None:
        self._start = self._clock()
        self._look()

    @property
    def spent(self) -> float:
        """Seconds since the model was loaded."""
        return self._clock() - self._start

    def plan(self, limits: Limits, bare: int, answer: int) -> PromptPlan:
        """Plan a prompt that has ``bare`` tokens without pages. Sets the answer's time aside."""
        self._look()
        planned = plan_prompt(limits, bare, self._speed, target=self.target, spent=self.spent, answer=answer)
        self.reserve(planned.tokens, answer)
        return planned

    def reserve(self, read: int, written: int) -> None:
        """Set the time of the answer aside, and of nothing else."""
        self._reserved = self.seconds(read, written) or 0.0

    def answer_limit(self, limits: Limits, prompt: int) -> int:
        """See :func:`answer_limit`; for an answer that begins now."""
        self._look()
        return answer_limit(limits, prompt, self._speed, target=self.target, spent=self.spent)

    def seconds(self, read: int, written: int) -> float | None:
        """How long a request takes; None if the speed is not known."""
        return None if self._speed is None else self._speed.seconds(read, written)

    def refusal(self, read: int, written: int) -> str:
        """Why a request is not begun: it would not end in time. Empty if it may begin; its time is set aside."""
        seconds = self.seconds(read, written)
        if not self.target or seconds is None:
            return ""
        left = max(0.0, self.target - self.spent - self._reserved)
        if seconds <= left:
            self._reserved += seconds
            return ""
        return (
            f"it would take about {seconds:.0f} s, and {left:.0f} s of ask.target_seconds "
            f"({self.target:g} s) are left"
        )

    def _look(self) -> None:
        health = self._health()
        self._speed = health.speed and health.speed.shared(1 + health.foreground)
