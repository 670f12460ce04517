"""POST /v1/completions: continues a prompt without a chat template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct
from starlette.requests import Request

from gateway.api.generation import Choice, MoreText, Step, answer
from gateway.api.http.endpoint import JSON, SSE, Endpoint
from gateway.api.openai.completions.request import CompletionRequest, completion_calls
from gateway.api.openai.models import check_model
from gateway.api.openai.replies import Completion, CompletionRendering
from gateway.api.parsing.fields import invalid, read_body
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import until_disconnect
from gateway.inference.interface import GenerateCall, Inference
from model_host.protocol import Finished, TokenLogprob


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
    """A whole reply."""

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


async def completions(request: Request) -> object:
    """Text that continues each prompt, without a chat template; whole or streamed."""
    services, request_id = services_of(request), request.state.request_id
    body = await read_body(request, CompletionRequest)
    check_model(services, body.model)
    prompts = await until_disconnect(request.receive, _texts(services.inference, body.prompts))
    calls: list[GenerateCall] = completion_calls(body, prompts, request_id, caller_of(request).owner)
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
