"""The interface of an embedding model: texts in, vectors out."""

from __future__ import annotations

import array
import sys
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.inference.interface import HostHealth, KeepAlive
from gateway.models.catalog import ResolvedModel
from model_host.protocol import Lane

# The use of a text. For models trained with task prompts, the catalog's prompt for a query or a document is put around
# it; "plain" text is embedded as it is.
TextKind = Literal["plain", "query", "document"]

_OUTLINED = 6  # numbers of a vector in the request log


class Embeddings(Struct, frozen=True):
    """Vectors in the order of their texts, all of the same number of dimensions and of length 1.

    A vector is little-endian float32, as sqlite-vec and OpenAI's base64 need it. ``tokens`` counts those of each text,
    control tokens included. ``space`` identifies weights, dimensions and task prompts: only vectors of one space can be
    compared.
    """

    vectors: list[bytes]
    tokens: list[int]
    space: str

    def floats(self) -> list[list[float]]:
        return [to_floats(vector) for vector in self.vectors]


class OptionalHost:
    """The life of a host that an installation need not have. A host overrides all of it."""

    name: str | None = None  # of the configured model
    model: ResolvedModel | None = None

    @property
    def loaded(self) -> Sequence[ResolvedModel]:
        """The models that the host has in memory."""
        return ()

    def health(self) -> HostHealth | None:
        """The host's current state; does not wake it. None without a configured model."""
        return None

    async def check(self) -> None:
        """As :meth:`gateway.inference.interface.Inference.check`."""

    async def refresh_stats(self) -> None:
        """Ask a running host for its counters. Does not count as use."""

    async def warm(self) -> None:
        """Start the host and wait until it is ready."""

    async def unload(self) -> None:
        """Stop the host once its open requests have ended."""

    async def close(self) -> None:
        """Stop the host now."""


class Embedder(OptionalHost):
    """An embedding model. This class itself is what an installation without one has; a host overrides all of it.

    Errors are :class:`gateway.base.errors.HearthError` subclasses.
    """

    @property
    def identity(self) -> str:
        """A string that changes whenever vectors may change. Reads the model file's metadata; starts no host."""
        return ""

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

        A text may be given as token IDs, which are embedded as they are. Documents may have ``titles``, one for each
        text, "" for none. ``dimensions`` truncates the vectors to their first dimensions and normalizes them again, for
        models with Matryoshka training. Cancelling the caller cancels the work. Raises PromptTooLongError (a text
        exceeds the model's context; ``details`` has ``index``, ``tokens`` and ``limit``), InvalidRequestError
        (``dimensions``, an empty text), ModelUnavailableError, OverloadedError, and NotFoundError without a configured
        model.
        """
        raise NotFoundError(
            "no embedding model is configured: run `hearth pull embeddinggemma`, set `embedding.model` to "
            "embeddinggemma, and start again",
            code="embedding_not_configured",
            param="model",
        )


def outline(vectors: Sequence[Sequence[float]]) -> str:
    """Vectors for the request log, one per line: the number of dimensions and the first values.

    The last digit may differ between runs, because texts are batched with other requests.
    """
    return "\n".join(
        f"{len(vector)} numbers: {' '.join(f'{number:.2f}' for number in vector[:_OUTLINED])} …"
        for vector in vectors
    )


def to_floats(vector: bytes) -> list[float]:
    numbers = array.array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
