"""Token counts in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from model_host.protocol import Finished


class PromptDetails(Struct, frozen=True):
    """``cached_tokens`` of the prompt were in the KV cache before the request."""

    cached_tokens: int


class Usage(Struct, frozen=True):
    """Tokens of one request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


def usage_of(ends: Sequence[Finished], choices_a_prompt: int) -> Usage:
    """The counts of all choices, those of one prompt in a row: a prompt counts once, however many choices it has."""
    groups = [ends[start : start + choices_a_prompt] for start in range(0, len(ends), choices_a_prompt)]
    prompt = sum(group[0].prompt_tokens for group in groups)
    completion = sum(end.completion_tokens for end in ends)
    cached = sum(min(end.cached_tokens for end in group) for group in groups)
    return Usage(prompt, completion, prompt + completion, PromptDetails(cached))
