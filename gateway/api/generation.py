"""Replies of all generating endpoints: this module runs the generations, a dialect renders their steps."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from starlette.types import ASGIApp

from gateway.api.parsing.json_faults import json_object
from gateway.api.recording.requests import logged_generations
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import Relay, StreamReply, event_stream, known_error, until_disconnect
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, LoadProgress
from gateway.store.request_log import Kind
from model_host.protocol import Delta, Finished, PromptLogprobs, Started, Thought, TokenLogprob, ToolDelta

Status = Literal["in_progress", "completed", "incomplete"]
Numbered = tuple[int, GenerationEvent]  # an event and the index of its choice


class TopLogprobReply(Struct, frozen=True):
    token: str
    logprob: float
    bytes: list[int] | None


class LogprobReply(TopLogprobReply, frozen=True):
    top_logprobs: list[TopLogprobReply]


def logprobs_of(tokens: Sequence[TokenLogprob], no_bytes: list[int] | None = None) -> list[LogprobReply]:
    """Log-probabilities in the shape of OpenAI and Ollama; ``no_bytes`` replaces the bytes of control tokens."""
    return [
        LogprobReply(
            each.token,
            each.logprob,
            each.bytes or no_bytes,
            [TopLogprobReply(top.token, top.logprob, top.bytes or no_bytes) for top in each.top],
        )
        for each in tokens
    ]


@dataclass(slots=True)
class OutputBlock:
    """A run of text, a ``thought`` or, with ``call``, a tool call whose ``text`` is its JSON arguments."""

    index: int
    call: ToolDelta | None = None  # the call's first delta, which has its id and name
    thought: bool = False
    text: str = ""
    logprobs: list[TokenLogprob] = field(default_factory=list)
    status: Status = "in_progress"

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The parsed arguments; None if they were cut off or are nested too deeply."""
        return json_object(self.text or "{}")

    @property
    def as_text(self) -> str:
        """The block as text, also for a call whose arguments cannot be parsed."""
        return self.text if self.call is None else f"{self.call.name} {self.text}"


class Opened(NamedTuple):
    block: OutputBlock


class More(NamedTuple):
    block: OutputBlock
    delta: Delta | Thought | ToolDelta


class Closed(NamedTuple):
    block: OutputBlock


Step = Started | PromptLogprobs | Opened | More | Closed | Finished


class Choice:
    """One choice of a reply: a sequence of blocks, of which only the last one can grow. ``thoughts``: it has them."""

    def __init__(self, index: int, *, thoughts: bool = False) -> None:
        self.index = index
        self._thoughts = thoughts
        self.blocks: list[OutputBlock] = []
        self.prompt = PromptLogprobs("", [])  # of the whole prompt, as far as they are known
        self.started: Started | None = None
        self.started_at = 0.0  # monotonic
        self._end: Finished | None = None

    @property
    def end(self) -> Finished:
        """The end of the generation. Raises HearthError if there was none."""
        if self._end is None:
            raise HearthError("the generation ended without a result")
        return self._end

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if block.call is None and not block.thought)

    @property
    def thought(self) -> str:
        return "".join(block.text for block in self.blocks if block.thought)

    @property
    def logprobs(self) -> list[TokenLogprob]:
        return [token for block in self.blocks for token in block.logprobs]

    def add(self, event: GenerationEvent) -> list[Step]:
        """Take an event and return what changed. Raises HearthError if the model host cancelled the generation."""
        if isinstance(event, Started):
            self.started, self.started_at = event, time.monotonic()
            return [event]
        if isinstance(event, PromptLogprobs):
            known = self.prompt
            self.prompt = PromptLogprobs("", [*known.tokens, *event.tokens], known.first or event.first)
            return [event]
        if isinstance(event, Finished):
            if event.reason == "cancelled":
                raise HearthError(
                    "the generation was cut off; try again", code="cancelled", status=503, retry_after=1.0
                )
            self._end = event
            return [*self._close("incomplete" if event.reason == "length" else "completed"), event]
        if isinstance(event, ToolDelta):
            return self._grow(event, event.arguments, self._open(event))
        if isinstance(event, Thought) and self._thoughts:
            return self._grow(event, event.text, self._open(None, thought=True))
        if isinstance(event, Delta) and (event.text or event.logprobs):  # neither: tokens inside a character
            steps = self._grow(event, event.text, self._open(None))
            self.blocks[-1].logprobs += event.logprobs
            return steps
        return []

    def _grow(self, event: Delta | Thought | ToolDelta, text: str, opened: list[Step]) -> list[Step]:
        self.blocks[-1].text += text
        return [*opened, More(self.blocks[-1], event)]

    def _open(self, call: ToolDelta | None, *, thought: bool = False) -> list[Step]:
        """Continue the open block if it is of this call, or of such text without ``call``; otherwise start a block."""
        if self.blocks and self.blocks[-1].status == "in_progress":
            current = self.blocks[-1].call
            same = (current.index if current else None) == (call.index if call else None)
            if same and self.blocks[-1].thought == thought:
                return []
        closed = self._close("completed")
        self.blocks.append(OutputBlock(len(self.blocks), call, thought))
        return [*closed, Opened(self.blocks[-1])]

    def _close(self, status: Status) -> list[Step]:
        if not self.blocks or self.blocks[-1].status != "in_progress":
            return []
        self.blocks[-1].status = status
        return [Closed(self.blocks[-1])]


class Rendering(ABC):
    """A dialect's reply: :meth:`whole`, or a stream of the chunks that the other methods return."""

    thoughts = False  # whether it shows the model's

    def opening(self, choices: Sequence[Choice]) -> Iterable[bytes]:
        return ()

    @abstractmethod
    def chunks(self, choice: Choice, step: Step) -> Iterable[bytes]: ...

    def closing(self, choices: Sequence[Choice]) -> Iterable[bytes]:
        return ()

    @abstractmethod
    def failed(self, choices: Sequence[Choice], error: HearthError) -> Iterable[bytes]:
        """The last chunks of a stream that fails after its start."""

    @abstractmethod
    def whole(self, choices: Sequence[Choice]) -> Struct: ...

    def response(self, body: AsyncIterator[bytes]) -> ASGIApp:
        return event_stream(body)


async def answer(
    request: ApiRequest,
    calls: Sequence[GenerateCall],
    rendering: Rendering,
    *,
    stream: bool,
    user: str | None = None,
    kind: Kind = "chat",
    keep: bool = True,
    store: Callable[[Struct], Awaitable[None]] | None = None,
) -> Struct | StreamReply[Numbered]:
    """Run the generations of one request and render them; with ``keep`` the request log records them.

    ``store`` gets the whole reply before the client has all of it.

    A stream starts when the model is loaded: earlier failures are plain HTTP errors.
    """
    services = request.services
    relay: Relay[Numbered] = Relay(
        logged_generations(services, calls, user, kind=kind, keep=keep), services.drain
    )
    choices = [Choice(index, thoughts=rendering.thoughts) for index in range(len(calls))]
    if not stream:
        await until_disconnect(request.receive, _collect(relay, choices))
        reply = rendering.whole(choices)
        if store is not None:
            await store(reply)
        return reply
    return StreamReply(
        relay,
        lambda items: _stream(items, choices, rendering, store),
        hold=lambda item: not isinstance(item[1], LoadProgress),
        response=rendering.response,
    )


async def _collect(relay: Relay[Numbered], choices: Sequence[Choice]) -> None:
    async with relay:
        async for index, event in relay:
            choices[index].add(event)


async def _stream(
    relay: Relay[Numbered],
    choices: Sequence[Choice],
    rendering: Rendering,
    store: Callable[[Struct], Awaitable[None]] | None,
) -> AsyncIterator[bytes]:
    try:
        for chunk in rendering.opening(choices):
            yield chunk
        async for index, event in relay:
            for step in choices[index].add(event):
                for chunk in rendering.chunks(choices[index], step):
                    yield chunk
        if store is not None:
            await store(rendering.whole(choices))
        for chunk in rendering.closing(choices):
            yield chunk
    except Exception as error:
        for chunk in rendering.failed(choices, known_error(error)):
            yield chunk
