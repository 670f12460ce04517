"""POST /v1/completions: continues prompts without a chat template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gateway.api.generation import Choice, MoreText, Step, answer
from gateway.api.http.endpoint import JSON, SSE, Endpoint
from gateway.api.openai.bodies import ChoiceCount, PromptFields, choices_of, to_call
from gateway.api.openai.embeddings import TextOrTokens, as_list
from gateway.api.openai.models import check_model
from gateway.api.openai.replies import Completion, CompletionRendering
from gateway.api.parsing.fields import invalid, read_body, unsupported
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import until_disconnect
from gateway.inference.interface import GenerateCall, Inference
from model_host.protocol import Finished, TokenLogprob

# Generations of one request.
MAX_CHOICES = 32
_MAX_TOKENS = 16  # OpenAI's default


class CompletionRequest(PromptFields, frozen=True, kw_only=True):
    """``prompt`` is a text, a list of texts, the tokens of a text, or a list of such lists, each completed separately.

    ``max_tokens`` defaults to 16; ``logprobs`` is the number of alternatives per token.
    """

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


class CompletionLogprobs(Struct, frozen=True):
    """For each token: text, log-probability, alternatives, and the offset in the choice's text in characters."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoiceReply(Struct, frozen=True, kw_only=True):
    """A choice, or the next piece of it; only the last piece has a ``finish_reason``."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: Literal["stop", "length"] | None = None


class TextCompletion(Completion, frozen=True, kw_only=True, tag_field="object", tag="text_completion"):
    choices: list[CompletionChoiceReply]


class _TextRendering(CompletionRendering):
    """``echo`` has the prompt of each choice, or ``""``."""

    prefix = "cmpl"
    object = "text_completion"

    def __init__(self, echo: Sequence[str], *args: Any) -> None:
        super().__init__(*args)
        self._echo = echo

    def opening(self, choices: Sequence[Choice]) -> Iterator[bytes]:
        for choice in choices:
            if self._echo[choice.index]:
                yield self._chunk(choice, self._echo[choice.index])

    def chunks(self, choice: Choice, step: Step) -> Iterator[bytes]:
        if isinstance(step, Finished):
            yield self._chunk(choice, "", finish_reason=_reason(step))
        elif isinstance(step, MoreText):
            before = len(step.block.text) - len(step.delta.text)
            yield self._chunk(choice, step.delta.text, logprobs=_logprobs(step.delta.logprobs, before))

    def _chunk(self, choice: Choice, text: str, **fields: Any) -> bytes:
        return self.chunk(
            [{"index": choice.index, "text": text, "logprobs": None, "finish_reason": None} | fields]
        )

    def whole(self, choices: Sequence[Choice]) -> TextCompletion:
        replies = [
            CompletionChoiceReply(
                index=choice.index,
                text=self._echo[choice.index] + choice.text,
                logprobs=_logprobs(choice.logprobs, 0),
                finish_reason=_reason(choice.end),
            )
            for choice in choices
        ]
        return TextCompletion(**self.head, choices=replies, usage=self.usage(choices))


def _reason(end: Finished) -> Literal["stop", "length"]:
    return "length" if end.reason == "length" else "stop"


def _logprobs(tokens: Sequence[TokenLogprob], before: int) -> CompletionLogprobs | None:
    """None without tokens; ``before`` characters of the choice's text precede them."""
    if not tokens:
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
    """The likeliest first, and the token itself. Of tokens with the same text the likeliest counts."""
    found: dict[str, float] = {}
    for one in token.top:
        found.setdefault(one.token, one.logprob)
    found.setdefault(token.token, token.logprob)
    return found


async def completions(request: ApiRequest) -> object:
    """Text that continues each prompt, without a chat template; whole or streamed."""
    services, request_id = request.services, request.id
    body = await read_body(request, CompletionRequest)
    check_model(services, body.model)
    prompts = await until_disconnect(request.receive, _texts(services.inference, body.prompts))
    calls: list[GenerateCall] = completion_calls(body, prompts, request_id, request.owner)
    rendering = _TextRendering(
        [(call.prompt or "") if body.echo else "" for call in calls],
        request_id,
        services.model.name,
        body.n or 1,
        body.include_usage,
    )
    return await answer(request, calls, rendering, stream=bool(body.stream), user=body.user, kind="generate")


async def _texts(inference: Inference, prompts: list[str | list[int]]) -> list[str]:
    """The prompts as text. Raises InvalidRequestError for tokens that their text would not be tokenized to."""
    texts: list[str] = []
    for prompt in prompts:
        if isinstance(prompt, str):
            texts.append(prompt)
            continue
        text = await inference.detokenize(prompt)
        if await inference.tokenize(text) != prompt:
            raise invalid(
                "prompt",
                "the text of these tokens is tokenized differently, for example because of control tokens, which "
                "cannot be sent; send the text, or tokens from POST /tokenize",
            )
        texts.append(text)
    return texts


ENDPOINTS = (
    Endpoint("POST", "/v1/completions", completions, "user", (JSON,), CompletionRequest, TextCompletion, SSE),
)
