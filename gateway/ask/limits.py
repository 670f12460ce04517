"""Effective limits of a question: settings override the catalog, which overrides what the context allows."""

from __future__ import annotations

from msgspec import Struct

from gateway.base.errors import ConfigurationError
from gateway.config.settings import AskSettings
from gateway.models.catalog import FlowDefaults

_PAGES = 5
_PASSAGE_TOKENS = 120
_MOST_ANSWER_TOKENS = 1024
# No useful answer is possible below these.
_LEAST_PROMPT_TOKENS = 64
_LEAST_ANSWER_TOKENS = 16


class Limits(Struct, frozen=True, kw_only=True):
    """Limits in tokens, except ``pages`` (in all) and ``compaction_words`` (0: no cap).

    ``reason`` says where ``prompt`` is from. Time lowers ``prompt`` and ``answer``, unless the settings fix them.
    """

    context: int
    prompt: int
    answer: int
    passage: int
    min_space: int
    pages: int
    compaction_words: int
    reason: str
    prompt_fixed: bool
    answer_fixed: bool


def effective_limits(settings: AskSettings, defaults: FlowDefaults, context: int) -> Limits:
    """Compute limits whose prompt and answer together fit ``context`` tokens.

    A value from the settings is used as it is; one from the catalog or the context shrinks to fit. Raises
    ConfigurationError if the settings do not fit the context.
    """
    prompt, answer = _prompt_and_answer(settings, defaults, context)
    if prompt < _LEAST_PROMPT_TOKENS or answer < _LEAST_ANSWER_TOKENS or prompt + answer > context:
        raise ConfigurationError(
            f"ask.prompt_tokens is {_shown(settings.prompt_tokens)} and ask.answer_tokens is "
            f"{_shown(settings.answer_tokens)}, but the context holds {context} tokens; a prompt needs at least "
            f"{_LEAST_PROMPT_TOKENS} and an answer {_LEAST_ANSWER_TOKENS}. Change them, or raise model.context",
            details={"prompt_tokens": prompt, "answer_tokens": answer, "context": context},
        )
    if prompt - settings.min_space_tokens < _LEAST_PROMPT_TOKENS:
        raise ConfigurationError(
            f"ask.min_space_tokens is {settings.min_space_tokens}, but ask.prompt_tokens is {prompt}, of which the "
            f"question needs at least {_LEAST_PROMPT_TOKENS}. Lower ask.min_space_tokens or raise ask.prompt_tokens",
            details={"min_space_tokens": settings.min_space_tokens, "prompt_tokens": prompt},
        )
    return Limits(
        context=context,
        prompt=prompt,
        answer=answer,
        passage=settings.passage_tokens or defaults.passage_tokens or _PASSAGE_TOKENS,
        min_space=settings.min_space_tokens,
        pages=settings.pages or defaults.pages or _PAGES,
        compaction_words=defaults.compaction_words,
        reason=_reason(settings, defaults, prompt),
        prompt_fixed=settings.prompt_tokens > 0,
        answer_fixed=settings.answer_tokens > 0,
    )


def _reason(settings: AskSettings, defaults: FlowDefaults, prompt: int) -> str:
    if settings.prompt_tokens:
        return f"ask.prompt_tokens is {settings.prompt_tokens}"
    if prompt == defaults.prompt_tokens:
        return "the catalog's limit for this model"
    return "what the model's context allows"


def _shown(setting: int) -> str:
    return str(setting) if setting else "0 (the default)"


def _prompt_and_answer(settings: AskSettings, defaults: FlowDefaults, context: int) -> tuple[int, int]:
    prompt = settings.prompt_tokens or defaults.prompt_tokens or context * 3 // 4
    answer = settings.answer_tokens or defaults.answer_tokens or min(_MOST_ANSWER_TOKENS, context // 4)
    if prompt + answer <= context:
        return prompt, answer
    if settings.prompt_tokens:
        return prompt, answer if settings.answer_tokens else context - prompt
    if settings.answer_tokens:
        return context - answer, answer
    # The catalog row was made for a larger context.
    answer = min(answer, context // 4)
    return min(prompt, context - answer), answer
