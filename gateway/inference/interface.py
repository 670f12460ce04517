"""The interface between the flows and a model. Flows use :class:`Inference` alone, never its implementation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
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
    PromptLogprobs,
    Queued,
    Sampling,
    Started,
    Thought,
    Tool,
    ToolDelta,
)

# Time from the last request until the model is unloaded: seconds, negative = never, None = the setting.
KeepAlive = float | None
# Fields that shape the output besides prompt, sampling and tools.
_SHAPING = (
    *("json_schema", "grammar", "stop", "ignore_eos", "continue_final", "suffix"),
    *("template_variables", "thought_tokens", "adapter"),
)

HostState = Literal["stopped", "starting", "ready", "stopping", "broken"]


class GenerateCall(Struct, frozen=True, kw_only=True):
    """One generation; fields as in ``model_host.protocol.Generate``. ``id`` is derived from the HTTP request's.

    ``schema_field`` is the name of ``json_schema`` in the caller's API, for errors.
    """

    id: str
    messages: list[Message] | None = None
    prompt: str | list[str | int] | None = None
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
    continue_final: bool = False
    suffix: str | None = None
    prompt_logprobs: bool = False
    template_variables: dict[str, Any] = {}
    thought_tokens: int | None = None
    adapter: str = ""
    keep_alive: KeepAlive = None

    @property
    def prompt_text(self) -> str:
        """For the log: the ``prompt``, as JSON if it has token ids."""
        prompt = self.prompt or ""
        return prompt if isinstance(prompt, str) else msgspec.json.encode(prompt).decode()

    @property
    def obeyed(self) -> dict[str, Any]:
        """For the log: what shapes the output besides prompt and sampling, omitting defaults."""
        plain = GenerateCall(id="")
        given = {
            name: getattr(self, name) for name in _SHAPING if getattr(self, name) != getattr(plain, name)
        }
        if self.tools:
            given |= {"tools": msgspec.to_builtins(self.tools), "tool_choice": self.tool_choice}
            given["parallel_tool_calls"] = self.parallel_tool_calls
        return given


class LoadProgress(Struct, frozen=True):
    """The host is starting for this call; ``fraction`` of the load is done (0 to 1)."""

    state: HostState
    fraction: float


GenerationEvent = (
    LoadProgress | Queued | Started | Prefill | PromptLogprobs | Delta | Thought | ToolDelta | Finished
)


class ModelInfo(Struct, frozen=True, kw_only=True):
    """The loaded model."""

    name: str
    n_ctx: int
    n_ctx_train: int
    architecture: str = ""
    description: str = ""
    fingerprint: str = ""
    dimensions: int = 0  # of an embedding model's vectors
    adapters: dict[str, str] = {}  # checksums of the loaded LoRA adapters, by name

    @property
    def context(self) -> int:
        """Maximum tokens of one prompt and its reply together."""
        return min(self.n_ctx, self.n_ctx_train or self.n_ctx)


class ReplicaHealth(Struct, frozen=True, kw_only=True):
    """State of one upstream server; ``abilities`` are those of its last probe, empty while it is away."""

    url: str
    state: HostState
    problem: str | None
    open_requests: int
    served: int  # requests that it finished
    failures: int  # requests that it lost
    retry_after: float | None  # while the circuit breaker is open: seconds until it is probed again
    abilities: dict[str, int | str | bool]


class HostHealth(Struct, frozen=True, kw_only=True):
    """State of a model host."""

    state: HostState
    pid: int | None = None
    rss_bytes: int | None = None
    uptime_seconds: float | None = None
    idle_seconds_left: float | None = None  # None: in use, not running, or never unloaded
    open_requests: int = 0
    waiting: int = 0
    running: int = 0
    restarts: int = 0  # crashes, hangs and kills since the gateway started
    problem: str | None = None  # why the last start or run failed
    retry_after: float | None = None  # while broken: seconds until a start is tried again
    load_progress: float | None = None  # while starting
    model: ModelInfo | None = None  # of the running host
    cell_bytes: int = 0  # of one KV cell of the running host; 0: unknown
    cache_reason: str | None = None  # for the size of the running host's cache
    threads: dict[int, int] = {}  # by batch size in tokens; empty: not running, or a fixed number
    speed: Speed | None = None  # of a request that has the running host to itself; None: unknown
    foreground: int = 0  # generations in progress, background ones aside
    # The last counters from the host: kv_used, decode_tokens_per_second, …
    stats: dict[str, int | float] = {}
    replicas: list[ReplicaHealth] = []  # upstream servers, in place of a local host

    def reading_seconds(self, progress: Prefill) -> float | None:
        """Estimate the seconds of prefill that a running request still needs; None if the speed is not known."""
        if self.speed is None:
            return None
        shared = self.speed.shared(max(1, self.foreground))
        return round(shared.seconds(progress.total - progress.done, 0, cached=progress.done), 1)


class Inference(Protocol):
    """A served model. Errors are :class:`gateway.base.errors.HearthError` subclasses."""

    def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        """Stream one generation; the last event is ``Finished``.

        Starts the host when needed. Closing the generator (``aclose``), or cancelling the task that reads it,
        cancels the generation. Raises ModelUnavailableError (the host died or cannot start), PromptTooLongError,
        InvalidRequestError (grammar), OverloadedError.
        """

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        """Tokens of each text as plain text."""

    async def count_prompt(self, messages: list[Message], *, tools: Sequence[Tool] = ()) -> int:
        """Tokens of a whole chat prompt, template and tools included."""

    async def tokenize(self, text: str, *, ends: bool = False) -> list[int]:
        """Token IDs of ``text`` as plain text; with ``ends`` between the special tokens that the model wants."""

    async def detokenize(self, tokens: list[int]) -> str:
        """The text of token IDs. Raises InvalidRequestError for an ID outside the vocabulary."""

    async def token_bytes(self, tokens: list[int]) -> list[bytes]:
        """The bytes that each token adds to a text. Raises as :meth:`detokenize`."""

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        """The served model; starts the host when needed."""

    def health(self) -> HostHealth:
        """The current state. Never blocks, never starts the host, does not count as use."""

    async def check(self) -> None:
        """Raise the HearthError that a request would fail with now, as far as known without starting the host.

        For example, the host hangs or keeps crashing, or the model cannot be loaded.
        """

    async def refresh_stats(self) -> None:
        """Get new counters from a running host; a no-op when none runs. Does not count as use."""

    async def forget(self, owner: str) -> None:
        """Delete an owner's text from KV cache and snapshots. Does not start the host."""

    async def warm(self) -> None:
        """Start the host and wait until it is ready."""

    async def unload(self) -> None:
        """Stop the host once its open requests have ended."""

    async def close(self) -> None:
        """Stop the host now; open requests fail."""
