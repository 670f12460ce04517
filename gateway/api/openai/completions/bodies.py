"""The body of POST /v1/completions: every field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from gateway.api.openai.generation import (
    ChoiceCount,
    GenerationFields,
    Grammar,
    MaxTokens,
    ResponseFormat,
    StreamOptions,
    check_format,
)
from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.neutral import without_neutral, without_neutral_in
from gateway.base.errors import InvalidRequestError
from model_host.protocol import TokenId

# One prompt: text, or the ids of its tokens.
Prompt = str | list[int]

# Generations of one request. They share the model's queue with everybody else's.
MAX_CHOICES = 32


class CompletionRequest(GenerationFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``prompt`` is text, a list of texts, the tokens of one text, or a list of such lists; each is answered by itself.

    ``max_tokens`` is 16 unless given, as with OpenAI. ``logprobs`` is how many alternatives of each token to tell.
    """

    prompt: (
        str
        | Annotated[list[str | TokenId | Annotated[list[TokenId], Meta(min_length=1)]], Meta(min_length=1)]
    )
    max_tokens: MaxTokens | None = None
    n: ChoiceCount | None = None
    best_of: ChoiceCount | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None
    stream_options: StreamOptions | None = None
    # Ours.
    response_format: ResponseFormat | None = None  # as for chats
    grammar: Grammar | None = None
    ignore_eos: bool | None = None

    @property
    def prompts(self) -> list[Prompt]:
        """The prompts in their order. Raises InvalidRequestError for a list of several kinds of things."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        texts = [item for item in self.prompt if isinstance(item, str)]
        tokens = [item for item in self.prompt if isinstance(item, int)]
        lists = [item for item in self.prompt if isinstance(item, list)]
        if len(texts) == len(self.prompt):
            return list(texts)
        if len(tokens) == len(self.prompt):
            return [tokens]
        if len(lists) == len(self.prompt):
            return list(lists)
        raise InvalidRequestError(
            "`prompt`: a list has texts alone, tokens alone, or lists of tokens alone", param="prompt"
        )


# OpenAI's fields that we do not have, with the values that ask for nothing. null always asks for nothing.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {"suffix": ("",), "logit_bias": ({},)}
_UNSUPPORTED_STREAM_OPTIONS: dict[str, tuple[Any, ...]] = {"include_obfuscation": (False,)}


def parse_completion(body: bytes) -> CompletionRequest:
    """The request in ``body``. Raises InvalidRequestError naming the field at fault."""
    fields = without_neutral(decode_object(body), _UNSUPPORTED)
    if "stream_options" in fields:
        fields["stream_options"] = without_neutral_in(
            fields["stream_options"], _UNSUPPORTED_STREAM_OPTIONS, "stream_options."
        )
    request = convert(fields, CompletionRequest)
    _check(request)
    return request


def _check(request: CompletionRequest) -> None:
    """Rules over several fields."""
    n = request.n or 1
    check_format(request.response_format, request.grammar)
    if request.stream_options is not None and not request.stream:
        raise InvalidRequestError("`stream_options` needs `stream: true`", param="stream_options")
    if request.best_of not in (None, n):
        raise InvalidRequestError(
            f"`best_of` is not supported, except as `n` ({n}): choices are not ranked",
            param="best_of",
            code="unsupported_field",
        )
    if request.echo and request.logprobs is not None:
        raise InvalidRequestError(
            "`echo` cannot be combined with `logprobs`: the prompt's tokens have no log-probabilities here",
            param="echo",
            code="unsupported_field",
        )
    choices = len(request.prompts) * n
    if choices > MAX_CHOICES:
        raise InvalidRequestError(
            f"`prompt`: its {len(request.prompts)} texts and `n` make {choices} choices; "
            f"at most {MAX_CHOICES} fit one request",
            param="prompt",
        )
