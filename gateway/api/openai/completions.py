"""POST /v1/completions: continues prompts without a chat template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from gateway.api.generation import Choice, More, Step, answer
from gateway.api.http.endpoint import SSE, Endpoint
from gateway.api.openai.bodies import ChoiceCount, PromptFields, choices_of, to_call
from gateway.api.openai.models import check_model
from gateway.api.openai.replies import Completion, CompletionRendering
from gateway.api.parsing.fields import invalid, unsupported
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import until_disconnect
from gateway.inference.interface import GenerateCall, Inference
from model_host.protocol import Delta, Finished, PromptLogprobs, TokenId, TokenLogprob

# Generations of one request.
MAX_CHOICES = 32
_MAX_TOKENS = 16  # OpenAI's default

Pieces = list[str | int]
Prompt = str | Pieces


class CompletionRequest(PromptFields, frozen=True, kw_only=True):
    """``prompt`` is a text, a list of tokens and texts that make one prompt, or a list of prompts.

    ``max_tokens`` defaults to 16; ``logprobs`` is the number of alternatives per token, with ``echo`` also of the
    prompt's. A ``suffix`` needs a model with fill-in tokens.
    """

    prompt: (
        str
        | Annotated[
            list[str | TokenId | Annotated[list[str | TokenId], Meta(min_length=1)]], Meta(min_length=1)
        ]
    )
    max_tokens: Annotated[int, Meta(ge=0, le=1_048_576)] | None = None
    suffix: str | None = None
    best_of: ChoiceCount | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=5)] | None = None
    aliases: ClassVar[dict[str, str]] = {"max_completion_tokens": "max_tokens"}

    def __post_init__(self) -> None:
        super().__post_init__()
        n, prompts = self.n or 1, len(self.prompts)
        if self.best_of not in (None, n):
            raise unsupported("best_of", f", except as `n` ({n}): choices are not ranked")
        if self.echo and self.suffix:
            raise unsupported("echo", " with `suffix`")
        if prompts * n > MAX_CHOICES:
            raise invalid(
                "prompt",
                f"its {prompts} texts and `n` make {prompts * n} choices; send at most {MAX_CHOICES} a request",
            )

    @property
    def prompts(self) -> list[Prompt]:
        if isinstance(self.prompt, str):
            return [self.prompt]
        pieces = [item for item in self.prompt if not isinstance(item, list)]
        if not any(isinstance(item, int) for item in pieces):
            return [*self.prompt]  # type: ignore[list-item]
        if len(pieces) < len(self.prompt):
            raise invalid("prompt", "send tokens and texts of one prompt, or a list of prompts")
        return [pieces]


def completion_calls(body: CompletionRequest, request_id: str, owner: str) -> list[GenerateCall]:
    """The generations in the order of the choices: all choices of the first prompt, then of the second."""
    return [
        call
        for prompt in body.prompts
        for call in choices_of(
            to_call(
                body,
                request_id,
                owner,
                prompt=prompt,
                max_tokens=_MAX_TOKENS if body.max_tokens is None else body.max_tokens,
                grammar=body.grammar,
                json_schema=body.json_schema,
                schema_field="response_format",
                ignore_eos=bool(body.ignore_eos),
                logprobs=body.logprobs,
                suffix=body.suffix or None,
                prompt_logprobs=bool(body.echo) and body.logprobs is not None,
            ),
            body.n or 1,
        )
    ]


class CompletionLogprobs(Struct, frozen=True):
    """For each token: text, log-probability, alternatives, and the offset in the choice's text in characters.

    The first token of a prompt has neither log-probability nor alternatives if the model begins prompts without BOS.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
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
    """``echo`` has the prompt of each choice, or ``""``. A stream has it with its log-probabilities, if asked for."""

    prefix = "cmpl"
    object = "text_completion"

    def __init__(self, echo: Sequence[str], with_logprobs: bool, *args: Any) -> None:
        super().__init__(*args)
        self._echo = echo
        self._held = dict(enumerate(echo)) if with_logprobs else {}  # what is still to be streamed of each

    def opening(self, choices: Sequence[Choice]) -> Iterator[bytes]:
        for choice in choices:
            if self._echo[choice.index] and choice.index not in self._held:
                yield self._chunk(choice, self._echo[choice.index])

    def chunks(self, choice: Choice, step: Step) -> Iterator[bytes]:
        if isinstance(step, PromptLogprobs):
            before = self._start(choice) + len(_text(choice.prompt.tokens[: -len(step.tokens)]))
            end = self._start(choice) + len(_text(choice.prompt.tokens))
            echo, held = self._echo[choice.index], self._held[choice.index]
            self._held[choice.index] = echo[end:]
            text = held.removesuffix(echo[end:])
            yield self._chunk(choice, text, logprobs=_logprobs(step.tokens, before, first=step.first))
            return
        if isinstance(step, More | Finished) and (held := self._held.pop(choice.index, "")):
            yield self._chunk(choice, held)
        if isinstance(step, Finished):
            yield self._chunk(choice, "", finish_reason=_reason(step))
        elif isinstance(step, More) and isinstance(step.delta, Delta):
            before = len(self._echo[choice.index]) + len(step.block.text) - len(step.delta.text)
            yield self._chunk(choice, step.delta.text, logprobs=_logprobs(step.delta.logprobs, before))

    def _chunk(self, choice: Choice, text: str, **fields: Any) -> bytes:
        return self.chunk(
            [{"index": choice.index, "text": text, "logprobs": None, "finish_reason": None} | fields]
        )

    def _start(self, choice: Choice) -> int:
        """Where the choice's first token begins: some tokenizers put a space before a prompt."""
        spaced = choice.prompt.tokens[:1] and choice.prompt.tokens[0].token.startswith(" ")
        return -1 if spaced and not self._echo[choice.index].startswith(" ") else 0

    def whole(self, choices: Sequence[Choice]) -> TextCompletion:
        replies = [
            CompletionChoiceReply(
                index=choice.index,
                text=self._echo[choice.index] + choice.text,
                logprobs=_logprobs(
                    [*choice.prompt.tokens, *choice.logprobs], self._start(choice), first=choice.prompt.first
                ),
                finish_reason=_reason(choice.end),
            )
            for choice in choices
        ]
        return TextCompletion(**self.head, choices=replies, usage=self.usage(choices))


def _reason(end: Finished) -> Literal["stop", "length"]:
    return "length" if end.reason == "length" else "stop"


def _text(tokens: Sequence[TokenLogprob]) -> str:
    return b"".join(bytes(token.bytes) for token in tokens).decode("utf-8", "ignore")


def _logprobs(
    tokens: Sequence[TokenLogprob], before: int, *, first: bool = False
) -> CompletionLogprobs | None:
    """None without tokens; ``before`` characters of the choice's text precede them.

    ``first``: the probability of the first one is unknown.
    """
    if not tokens:
        return None
    offsets, sofar = [], bytearray()
    for token in tokens:
        offsets.append(max(0, before + len(sofar.decode("utf-8", "ignore"))))
        sofar += bytes(token.bytes)
    return CompletionLogprobs(
        tokens=[token.token for token in tokens],
        token_logprobs=[None if first and not at else token.logprob for at, token in enumerate(tokens)],
        top_logprobs=[None if first and not at else _alternatives(token) for at, token in enumerate(tokens)],
        text_offset=offsets,
    )


def _alternatives(token: TokenLogprob) -> dict[str, float]:
    """The likeliest first, and the token itself. Of tokens with the same text the likeliest counts."""
    found: dict[str, float] = {}
    for one in token.top:
        found.setdefault(one.token, one.logprob)
    found.setdefault(token.token, token.logprob)
    return found


async def completions(request: ApiRequest, body: CompletionRequest) -> object:
    """Text that continues each prompt, without a chat template; whole or streamed."""
    services, request_id = request.services, request.id
    adapter = check_model(services, body.model)
    calls = [replace(call, adapter=adapter) for call in completion_calls(body, request_id, request.owner)]
    texts = _texts(services.inference, body.prompts if body.echo else [])
    echo = await until_disconnect(request.receive, texts) or [""] * len(body.prompts)
    rendering = _TextRendering(
        [text for text in echo for _ in range(body.n or 1)],
        bool(body.echo) and body.logprobs is not None,
        request_id,
        services.model.named(adapter),
        body.n or 1,
        body.include_usage,
    )
    return await answer(request, calls, rendering, stream=bool(body.stream), user=body.user, kind="generate")


async def _texts(inference: Inference, prompts: Sequence[Prompt]) -> list[str]:
    """The prompts as text; control tokens add nothing to it."""
    texts = []
    for prompt in prompts:
        text = ""
        for kind, pieces in groupby([prompt] if isinstance(prompt, str) else prompt, type):
            run: list[Any] = [*pieces]
            text += await inference.detokenize(run) if kind is int else "".join(run)
        texts.append(text)
    return texts


ENDPOINTS = (Endpoint("POST", "/v1/completions", completions, CompletionRequest, TextCompletion, SSE),)
