"""What a flow sees of a model: generate, count, and the state of whoever serves it.

Flows are written against :class:`Inference` alone and never know whether a local child process or a remote
server answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from gateway.inference.speed import Speed
from model_host.protocol import (
    Delta,
    Finished,
    Lane,
    Message,
    Prefill,
    Queued,
    Sampling,
    Started,
    Tool,
    ToolDelta,
)

# Duration after the last request until the host may be let go: seconds, negative = never, None = the setting.
KeepAlive = float | None

HostState = Literal["stopped", "starting", "ready", "stopping", "broken"]


class GenerateCall(Struct, frozen=True, kw_only=True):
    """One generation; fields as in ``model_host.protocol.Generate``. ``id`` is the HTTP request's or made from it.

    ``schema_field`` is what the caller's API calls ``json_schema``, for errors.
    """

    id: str
    messages: list[Message] | None = None
    prompt: str | None = None
    max_tokens: int | None = None
    sampling: Sampling = Sampling()
    stop: list[str] = []
    grammar: str | None = None
    json_schema: dict[str, Any] | bool | None = None
    schema_field: str = "json_schema"
    lane: Lane = "interactive"
    owner: str = ""
    ignore_eos: bool = False
    tools: list[Tool] = []
    tool_choice: str = "auto"
    parallel_tool_calls: bool = True
    logprobs: int | None = None
    keep_alive: KeepAlive = None

    @property
    def obeyed(self) -> dict[str, Any]:
        """What shapes the output besides the prompt and the sampling, for the log; without what is as always."""
        given: dict[str, Any] = {"json_schema": self.json_schema, "grammar": self.grammar}
        given |= {"stop": self.stop or None, "ignore_eos": self.ignore_eos or None}
        if self.tools:
            given |= {"tools": msgspec.to_builtins(self.tools), "tool_choice": self.tool_choice}
            given["parallel_tool_calls"] = self.parallel_tool_calls
        return {name: value for name, value in given.items() if value is not None}


class LoadProgress(Struct, frozen=True):
    """The model is being started for this call; ``fraction`` of the load is done (0 to 1)."""

    state: HostState
    fraction: float


GenerationEvent = LoadProgress | Queued | Started | Prefill | Delta | ToolDelta | Finished


class ModelInfo(Struct, frozen=True, kw_only=True):
    """The loaded model, as flows need it."""

    name: str
    n_ctx: int
    n_ctx_train: int
    architecture: str = ""
    description: str = ""
    fingerprint: str = ""
    tools: bool = False  # the chat template takes tools
    dimensions: int = 0  # of an embedding model's vectors

    @property
    def context(self) -> int:
        """The most tokens that one prompt and its reply may have together."""
        return min(self.n_ctx, self.n_ctx_train or self.n_ctx)


class HostHealth(Struct, frozen=True, kw_only=True):
    """State of the model host. Reading it neither starts the host nor counts as use."""

    state: HostState
    pid: int | None = None
    rss_bytes: int | None = None
    uptime_seconds: float | None = None
    idle_seconds_left: float | None = None  # None: not idle, not running, or kept forever
    open_requests: int = 0
    waiting: int = 0
    running: int = 0
    restarts: int = 0  # crashes, hangs and kills since the gateway started
    problem: str | None = None  # why the last start or run failed
    retry_after: float | None = None  # while broken: seconds until a start is tried again
    load_progress: float | None = None  # while starting
    model: ModelInfo | None = None  # of the running host
    cell_bytes: int = 0  # of one KV cell of the running host; 0: not known
    cache_reason: str | None = None  # why the running host's cache has its size
    threads: dict[int, int] = {}  # by size of batch in tokens; empty: not running, or a fixed number
    speed: Speed | None = None  # of a request that has the running host to itself; None: not known
    foreground: int = 0  # generations in progress, background ones aside
    stats: dict[
        str, int | float
    ] = {}  # last counters reported by the host: kv_used, decode_tokens_per_second, …

    def reading_seconds(self, progress: Prefill) -> float | None:
        """Estimate how long a running request still reads its prompt; None if the speed is not known."""
        if self.speed is None:
            return None
        shared = self.speed.shared(max(1, self.foreground))
        return round(shared.seconds(progress.total - progress.done, 0, cached=progress.done), 1)


class Inference(Protocol):
    """A served model. Errors are :class:`gateway.base.errors.HearthError` subclasses."""

    def generate(self, call: GenerateCall) -> AsyncIterator[GenerationEvent]:
        """Stream one generation; the last event is ``Finished``.

        Starts the host when needed. Closing the iterator (``aclose``), or cancelling the task that reads it,
        cancels the generation. Raises ModelUnavailableError (host died or cannot start), PromptTooLongError,
        InvalidRequestError (grammar), OverloadedError.
        """
        ...

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        """Tokens of each text as plain text, by the model's own tokenizer."""
        ...

    async def count_prompt(
        self, messages: list[Message], *, tools: Sequence[Tool] = (), keep_alive: KeepAlive = None
    ) -> int:
        """Tokens of a whole chat prompt, template and tools included."""
        ...

    async def tokenize(self, text: str, *, keep_alive: KeepAlive = None) -> list[int]:
        """Token ids of ``text`` as plain text: never a control token."""
        ...

    async def detokenize(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> str:
        """The text of token ids. Raises InvalidRequestError for an id outside the vocabulary."""
        ...

    async def token_bytes(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> list[bytes]:
        """What each token adds to a text. Raises as :meth:`detokenize` does."""
        ...

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        """The served model; starts the host when needed."""
        ...

    def health(self) -> HostHealth:
        """The state right now. Never blocks, never wakes the model."""
        ...

    async def check(self) -> None:
        """Raise the HearthError that a request would fail with now, as far as that is known without waking the model.

        The host may hang or crash again and again, or the model cannot be loaded.
        """
        ...

    async def refresh_stats(self) -> None:
        """Ask a running host for its counters; a no-op when none runs. Does not count as use."""
        ...

    async def forget(self, owner: str) -> None:
        """Drop what is kept of an owner's text, in memory and on disk. Does not start the host."""
        ...

    async def warm(self) -> None:
        """Start the host and wait until it is ready."""
        ...

    async def unload(self) -> None:
        """Let the host go once open requests have ended."""
        ...

    async def close(self) -> None:
        """Stop the host now: cancel what is open, TERM, grace, KILL, reap."""
        ...
