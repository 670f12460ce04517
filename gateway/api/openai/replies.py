"""Shared by the replies of chat and text completions: token counts and chunks of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct

from gateway.api.generation import Choice, Rendering
from gateway.api.http.errors import envelope
from gateway.api.streaming.streams import sse
from gateway.base.errors import HearthError

_DONE = b"data: [DONE]\n\n"


class PromptDetails(Struct, frozen=True):
    """``cached_tokens`` of the prompt were in the KV cache before the request."""

    cached_tokens: int


class Usage(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class Completion(Struct, frozen=True, kw_only=True):
    """A whole reply. ``model`` is the configured name, whatever name the request used."""

    id: str
    created: int
    model: str
    usage: Usage


class CompletionRendering(Rendering):
    """Chunks, then with ``include_usage`` one with the token counts, then ``[DONE]``."""

    prefix: str  # of the id
    object: Literal["chat.completion.chunk", "text_completion"]

    def __init__(self, request_id: str, model: str, per_prompt: int, include_usage: bool) -> None:
        self._request_id = request_id
        self._per_prompt = per_prompt
        self._include_usage = include_usage
        self.head: dict[str, Any] = {
            "id": f"{self.prefix}-{request_id}",
            "created": int(time.time()),
            "model": model,
        }

    def chunk(self, choices: list[dict[str, Any]], **fields: Any) -> bytes:
        return sse({**self.head, "object": self.object, "choices": choices, **fields})

    def usage(self, choices: Sequence[Choice]) -> Usage:
        """The tokens of all choices. A prompt counts once, with the choices that follow each other for it."""
        ends = [choice.end for choice in choices]
        groups = [ends[start : start + self._per_prompt] for start in range(0, len(ends), self._per_prompt)]
        prompt = sum(group[0].prompt_tokens for group in groups)
        completion = sum(end.completion_tokens for end in ends)
        cached = sum(min(end.cached_tokens for end in group) for group in groups)
        return Usage(prompt, completion, prompt + completion, PromptDetails(cached))

    def closing(self, choices: Sequence[Choice]) -> Iterator[bytes]:
        if self._include_usage:
            yield self.chunk([], usage=self.usage(choices))
        yield _DONE

    def failed(self, choices: Sequence[Choice], error: HearthError) -> Iterable[bytes]:
        return sse(envelope(error, self._request_id)), _DONE
