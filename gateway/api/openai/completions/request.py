"""The body of POST /v1/completions: each field is honoured or refused by name."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from gateway.api.openai.bodies import ChoiceCount, PromptFields, choices_of, to_call
from gateway.api.openai.embeddings import TextOrTokens, as_list
from gateway.api.parsing.fields import Neutral, invalid, unsupported
from gateway.inference.interface import GenerateCall

# Generations of one request.
MAX_CHOICES = 32
_MAX_TOKENS = 16  # OpenAI's default


class CompletionRequest(PromptFields, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``prompt`` is a text, a list of texts, the tokens of a text, or a list of such lists, each completed separately.

    ``max_tokens`` defaults to 16; ``logprobs`` is the number of alternatives per token.
    """

    neutral: ClassVar[Neutral] = {**PromptFields.neutral, "suffix": ("",)}

    prompt: TextOrTokens
    best_of: ChoiceCount | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        n, prompts = self.n or 1, len(self.prompts)
        if self.best_of not in (None, n):
            raise unsupported("best_of", f", except as `n` ({n}): choices are not ranked")
        if self.echo and self.logprobs is not None:
            raise unsupported("echo", " with `logprobs`: there are none for the tokens of the prompt")
        if prompts * n > MAX_CHOICES:
            raise invalid(
                "prompt",
                f"its {prompts} texts and `n` make {prompts * n} choices; send at most {MAX_CHOICES} a request",
            )

    @property
    def prompts(self) -> list[str | list[int]]:
        return as_list(self.prompt, "prompt")


def completion_calls(
    body: CompletionRequest, prompts: list[str], request_id: str, owner: str
) -> list[GenerateCall]:
    """The generations in the order of the choices: all choices of the first prompt, then of the second."""
    return [
        call
        for prompt in prompts
        for call in choices_of(
            to_call(
                body,
                request_id,
                owner,
                prompt=prompt,
                max_tokens=body.max_tokens or _MAX_TOKENS,
                grammar=body.grammar,
                json_schema=body.json_schema,
                schema_field="response_format",
                ignore_eos=bool(body.ignore_eos),
                logprobs=body.logprobs,
            ),
            body.n or 1,
        )
    ]
