"""Embed the passages of a few documents, isolating the texts that the model cannot embed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from gateway.base.errors import HearthError, InvalidRequestError, ModelUnavailableError, PromptTooLongError
from gateway.inference.embedding import Embeddings
from gateway.vectors.source import Document, EmbeddedText, Vectors

_PARTS_AT_ONCE = 16

Embed = Callable[[list[EmbeddedText]], Awaitable[Embeddings]]
_Part = tuple[int, EmbeddedText]  # index of the document, and one of its texts


class Group:
    """The vectors of ``documents``. ``space`` is None when no text was embedded."""

    def __init__(self, documents: Sequence[Document], embed: Embed) -> None:
        self._documents = documents
        self._embed = embed
        self._reset()

    def _reset(self) -> None:
        self.space: str | None = None
        self.dimensions = 0
        self._vectors: list[list[tuple[int, bytes]]] = [[] for _ in self._documents]
        self._problems: dict[int, str] = {}

    async def run(self) -> list[tuple[Document, Vectors]]:
        """Embed every text and start over when the model changes meanwhile.

        A text that is too long is split; a document with a text that cannot be embedded gets no vectors. Raises
        HearthError when the model cannot run or the settings are wrong.
        """
        parts = [(index, part) for index, document in enumerate(self._documents) for part in document.parts]
        at = 0
        while at < len(parts):
            if await self._run(parts[at : at + _PARTS_AT_ONCE]):
                at += _PARTS_AT_ONCE
            else:
                self._reset()
                at = 0
        return [(document, self._result(index)) for index, document in enumerate(self._documents)]

    async def _run(self, parts: list[_Part]) -> bool:
        """Whether the vectors are in the same space as those before them."""
        parts = [part for part in parts if part[0] not in self._problems]
        if not parts:
            return True
        try:
            embeddings = await self._embed([part for _, part in parts])
        except PromptTooLongError as error:
            at = int(error.details.get("index", 0))
            index, part = parts[at]
            halves = [(index, half) for half in part.halves()]
            if len(halves) < 2:
                self._problems[index] = error.message
            return all([await self._run(some) for some in (parts[:at], halves, parts[at + 1 :])])
        except HearthError as error:
            if not _is_fault_of_text(error):
                raise
            if len(parts) == 1:
                self._problems[parts[0][0]] = error.message
                return True
            return all([await self._run([part]) for part in parts])
        if self.space not in (None, embeddings.space):
            return False
        self.space = embeddings.space
        for (index, part), vector in zip(parts, embeddings.vectors, strict=True):
            self.dimensions = len(vector) // 4
            self._vectors[index].append((part.mark, vector))
        return True

    def _result(self, index: int) -> Vectors:
        if index in self._problems:
            return Vectors([], [], self._problems[index])
        return Vectors(
            [mark for mark, _ in self._vectors[index]], [vector for _, vector in self._vectors[index]]
        )


def _is_fault_of_text(error: HearthError) -> bool:
    """Whether another text may succeed: not when the model cannot run or the settings are wrong."""
    if isinstance(error, InvalidRequestError):
        return error.param != "dimensions"
    return not isinstance(error, ModelUnavailableError) and error.status == 500
