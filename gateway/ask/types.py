"""Inputs, events and results of a question's flow."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from gateway.inference.interface import KeepAlive
from model_host.protocol import Lane


class AskCall(Struct, frozen=True, kw_only=True):
    """A validated question. ``style`` None selects the configured one; ``owner`` isolates the model's KV cache.

    ``adapter`` is one of the model's, or "". ``user`` is the person the caller asks for, or ""; without ``store`` no
    record is written.
    """

    id: str
    question: str
    style: str | None = None
    adapter: str = ""
    priority: Lane = "interactive"
    keep_alive: KeepAlive = None
    owner: str = ""
    user: str = ""
    store: bool = True


class Citation(Struct, frozen=True):
    """A source behind the marker ``[n]`` of the answer."""

    n: int
    title: str
    section: str  # "" for the lead
    url: str  # with the section's fragment
    revision: int


class Skipped(Struct, frozen=True):
    """A page that was found but not used, or something that failed: a search, the record of the question."""

    title: str
    reason: str


class Budget(Struct, frozen=True):
    """Token accounting of the answer prompt; ``prompt_tokens`` are 0 if the model was not asked.

    ``reason`` says why ``prompt_limit`` is what it is. ``estimated_seconds`` is what the whole question was expected to
    take when its prompt was planned, loading aside; null while the model's speed is not known.
    """

    prompt_limit: int
    prompt_tokens: int
    cached_tokens: int
    answer_limit: int
    answer_tokens: int
    background_tokens: int
    reason: str = ""
    target_seconds: float = 0.0
    estimated_seconds: float | None = None


class AskResult(Struct, frozen=True, kw_only=True):
    """The reply to a question; ``timings`` are seconds by stage, with ``total``."""

    id: str
    answer: str
    citations: list[Citation]
    search_terms: list[str]
    skipped: list[Skipped]
    budget: Budget
    timings: dict[str, float]
    model: str
    notice: str | None = None  # the catalog's remark about the model


class Stage(Struct, frozen=True):
    """Progress: ``stage`` is queued, loading, terms, search, fetch, compact, answer, reading or check."""

    stage: str
    detail: dict[str, Any] = {}


class AnswerDelta(Struct, frozen=True):
    text: str


class AnswerDone(Struct, frozen=True):
    result: AskResult


AskEvent = Stage | AnswerDelta | AnswerDone
