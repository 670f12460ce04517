"""What others see of an embedding model: texts in, vectors out.

``services.embedding`` is always there. Without a configured model it is :class:`NoEmbedder`, whose ``embed`` says
what to configure.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from gateway.base.errors import HearthError, NotFoundError
from gateway.inference.interface import HostHealth, KeepAlive
from gateway.models.catalog import ResolvedModel
from model_host.protocol import Lane

# What a text is for. Models that were trained with task prompts get a query's or a document's put around it, as the
# catalog says; "plain" is embedded as it is.
TextKind = Literal["plain", "query", "document"]


_OUTLINED = 6


class Embeddings(Struct, frozen=True):
    """The vectors of some texts, in their order; all have the same number of dimensions and length 1.

    A vector is little-endian float32, as sqlite-vec and OpenAI's base64 want it. ``tokens`` counts each text's,
    control tokens included. ``space`` names weights, dimensions and task prompts: vectors of different ones cannot be
    compared.
    """

    vectors: list[bytes]
    tokens: list[int]
    space: str

    def floats(self) -> list[list[float]]:
        """The vectors as numbers."""
        return [to_floats(vector) for vector in self.vectors]


class Embedder(Protocol):
    """An embedding model. Errors are :class:`gateway.base.errors.HearthError` subclasses."""

    @property
    def name(self) -> str | None:
        """The configured model's name; None when there is none."""
        ...

    async def embed(
        self,
        texts: Sequence[str | list[int]],
        *,
        kind: TextKind = "plain",
        titles: Sequence[str] = (),
        owner: str = "",
        lane: Lane = "interactive",
        dimensions: int | None = None,
        keep_alive: KeepAlive = None,
        request_id: str = "embed",
    ) -> Embeddings:
        """The vectors of ``texts``, any number of them; starts the host when needed.

        All may be given as token ids instead; these are embedded as they are. Documents may have ``titles``, one a
        text, "" for none. ``dimensions`` keeps that many leading ones and normalizes again, which models with
        Matryoshka training are made for. Cancelling the caller cancels the work. Raises PromptTooLongError (a text is
        longer than the model's context; ``details`` has ``index``, ``tokens`` and ``limit``), InvalidRequestError
        (``dimensions``, an empty text), ModelUnavailableError, OverloadedError; NotFoundError when no embedding model
        is configured.
        """
        ...

    def health(self) -> HostHealth | None:
        """The state of the host right now, without waking it; None when no model is configured."""
        ...

    async def check(self) -> None:
        """As :meth:`gateway.inference.interface.Inference.check`; nothing when no model is configured."""
        ...

    @property
    def model(self) -> ResolvedModel | None:
        """The configured model; None when there is none."""
        ...

    @property
    def loaded(self) -> Sequence[ResolvedModel]:
        """What its host has in memory."""
        ...

    @property
    def identity(self) -> str:
        """Changes whenever vectors may change; costs a look at the model's file and starts nothing."""
        ...

    async def refresh_stats(self) -> None:
        """Ask a running host for its counters. Does not count as use."""
        ...

    async def warm(self) -> None:
        """Start the host and wait until it is ready; nothing when no model is configured."""
        ...

    async def unload(self) -> None:
        """Let the host go once open requests have ended."""
        ...

    async def close(self) -> None:
        """Stop the host now."""
        ...


class NoEmbedder:
    """The :class:`Embedder` of an installation without an embedding model."""

    name = None
    model = None
    loaded: Sequence[ResolvedModel] = ()
    identity = ""

    async def embed(
        self,
        texts: Sequence[str | list[int]],
        *,
        kind: TextKind = "plain",
        titles: Sequence[str] = (),
        owner: str = "",
        lane: Lane = "interactive",
        dimensions: int | None = None,
        keep_alive: KeepAlive = None,
        request_id: str = "embed",
    ) -> Embeddings:
        """Raises NotFoundError with the remedy."""
        raise not_configured()

    def health(self) -> None:
        """There is nothing to report."""

    async def check(self) -> None:
        """There is nothing that could fail."""

    async def refresh_stats(self) -> None:
        """There is nothing to ask."""

    async def warm(self) -> None:
        """There is nothing to start."""

    async def unload(self) -> None:
        """There is nothing to let go."""

    async def close(self) -> None:
        """There is nothing to stop."""


def not_configured() -> HearthError:
    """What whoever wants a vector is told when there is no model for it."""
    return NotFoundError(
        "no embedding model is configured: run `hearth pull embeddinggemma`, set `embedding.model` to "
        "embeddinggemma, and start again",
        code="embedding_not_configured",
        param="model",
    )


def outline(vectors: Sequence[Sequence[float]]) -> str:
    """Vectors for the request log, a line each: how many numbers, and the first ones. Two runs may differ in the last
    digit, because texts are computed together with whatever else waits."""
    return "\n".join(
        f"{len(vector)} numbers: {' '.join(f'{number:.2f}' for number in vector[:_OUTLINED])} …"
        for vector in vectors
    )


def to_floats(vector: bytes) -> list[float]:
    """Little-endian float32 as numbers."""
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
