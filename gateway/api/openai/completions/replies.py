"""Text completions in OpenAI's shapes, whole or in chunks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from gateway.api.openai.usage import Usage, usage_of
from gateway.inference.interface import GenerationEvent
from model_host.protocol import Delta, Finished, TokenLogprob

Reason = Literal["stop", "length"]


class CompletionLogprobs(Struct, frozen=True):
    """Of each token: its text, log-probability, alternatives with their own, and the characters before it."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoiceReply(Struct, frozen=True, kw_only=True):
    """A choice, or the next piece of it; only the last piece has a ``finish_reason``."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: Reason | None = None


class Completion(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="object", tag="text_completion"
):
    """A reply or a chunk of one. ``usage`` is in whole replies, and in a last chunk without choices if asked for."""

    id: str
    created: int
    model: str
    choices: list[CompletionChoiceReply]
    usage: Usage | None = None


class CompletionChoice:
    """One choice of a reply as it grows. ``opening`` is the text it begins with: the prompt, if it is echoed."""

    def __init__(self, index: int, opening: str) -> None:
        self.index = index
        self.end: Finished | None = None
        self._texts = [opening]
        self._logprobs: list[TokenLogprob] | None = None

    def add(self, event: GenerationEvent) -> None:
        """Take an event of the choice's generation."""
        if isinstance(event, Delta):
            self._texts.append(event.text)
            if event.logprobs:
                self._logprobs = [*(self._logprobs or []), *event.logprobs]
        elif isinstance(event, Finished):
            self.end = event

    def whole(self) -> CompletionChoiceReply:
        """The choice of a reply that is not streamed."""
        assert self.end is not None
        return CompletionChoiceReply(
            index=self.index,
            text="".join(self._texts),
            logprobs=_logprobs(self._logprobs, 0),
            finish_reason=_reason(self.end),
        )

    def first_piece(self) -> CompletionChoiceReply | None:
        """What there is before the generation, if anything."""
        return CompletionChoiceReply(index=self.index, text=self._texts[0]) if self._texts[0] else None

    def piece(self, event: Delta | Finished) -> CompletionChoiceReply:
        """The next piece; takes the event in."""
        before = sum(map(len, self._texts))
        self.add(event)
        if isinstance(event, Finished):
            return CompletionChoiceReply(index=self.index, text="", finish_reason=_reason(event))
        return CompletionChoiceReply(
            index=self.index, text=event.text, logprobs=_logprobs(event.logprobs or None, before)
        )


class CompletionReply:
    """The constant parts of one reply. ``model`` is the configured name, whatever name the request used."""

    def __init__(self, request_id: str, model: str, choices_a_prompt: int) -> None:
        self._id = f"cmpl-{request_id}"
        self._model = model
        self._created = int(time.time())
        self._choices_a_prompt = choices_a_prompt

    def whole(self, choices: Sequence[CompletionChoice]) -> Completion:
        """The reply."""
        return self._made([choice.whole() for choice in choices], self._usage(choices))

    def chunk(self, piece: CompletionChoiceReply) -> Completion:
        """A chunk of a stream."""
        return self._made([piece])

    def usage_chunk(self, choices: Sequence[CompletionChoice]) -> Completion:
        """The last chunk when ``stream_options.include_usage`` asks for it."""
        return self._made([], self._usage(choices))

    def _made(self, choices: list[CompletionChoiceReply], usage: Usage | None = None) -> Completion:
        return Completion(id=self._id, created=self._created, model=self._model, choices=choices, usage=usage)

    def _usage(self, choices: Sequence[CompletionChoice]) -> Usage:
        ends = [choice.end for choice in choices if choice.end is not None]
        return usage_of(ends, self._choices_a_prompt)


def _reason(end: Finished) -> Reason:
    return "length" if end.reason == "length" else "stop"


def _logprobs(tokens: Sequence[TokenLogprob] | None, before: int) -> CompletionLogprobs | None:
    """``before`` characters of the choice's text come before these tokens."""
    if tokens is None:
        return None
    offsets, sofar = [], bytearray()
    for token in tokens:
        offsets.append(before + len(sofar.decode("utf-8", "ignore")))
        sofar += bytes(token.bytes)
    return CompletionLogprobs(
        tokens=[token.token for token in tokens],
        token_logprobs=[token.logprob for token in tokens],
        top_logprobs=[_alternatives(token) for token in tokens],
        text_offset=offsets,
    )


def _alternatives(token: TokenLogprob) -> dict[str, float]:
    """The likeliest first, and the token itself. Of tokens that look alike the likeliest counts."""
    found: dict[str, float] = {}
    for one in token.top:
        found.setdefault(one.token, one.logprob)
    found.setdefault(token.token, token.logprob)
    return found
