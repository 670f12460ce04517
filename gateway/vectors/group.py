"""Some documents on their way to their vectors. Values in, values out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from gateway.base.errors import HearthError, InvalidRequestError, ModelUnavailableError, PromptTooLongError
from gateway.inference.embedding import Embeddings
from gateway.vectors.source import Document, EmbeddedText, Vectors

_PARTS_AT_ONCE = 16


class Group:
    """Ask :meth:`next` for texts until there are none; answer each time by :meth:`made` or :meth:`failed`."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._restart()

    def _restart(self) -> None:
        self.space: str | None = None  # of the vectors so far
        self.dimensions = 0
        self._waiting = deque(
            (index, part) for index, document in enumerate(self._documents) for part in document.parts
        )
        self._asked: list[tuple[int, EmbeddedText]] = []
        self._alone = 0  # so many parts are asked for one by one, to find the one at fault
        self._made: list[list[tuple[int, bytes]]] = [[] for _ in self._documents]
        self._problems: dict[int, str] = {}

    def next(self) -> list[EmbeddedText]:
        """The next texts to embed; none when all is done."""
        self._asked = []
        most = 1 if self._alone else _PARTS_AT_ONCE
        while self._waiting and len(self._asked) < most:
            index, part = self._waiting.popleft()
            self._alone = max(0, self._alone - 1)
            if index not in self._problems:
                self._asked.append((index, part))
        return [part for _, part in self._asked]

    def made(self, embeddings: Embeddings) -> None:
        """The vectors of the texts asked for last. If the model is another one meanwhile, all begins anew."""
        if self.space not in (None, embeddings.space):
            self._restart()
            return
        self.space = embeddings.space
        for (index, part), vector in zip(self._asked, embeddings.vectors, strict=True):
            self.dimensions = len(vector) // 4
            self._made[index].append((part.mark, vector))

    def failed(self, error: HearthError) -> bool:
        """Whether the group can go on: a text that is too long is cut, one that has no vector is left out."""
        if isinstance(error, PromptTooLongError):
            at = int(error.details.get("index", 0))
            index, part = self._asked[at]
            halves = list(part.halves())
            if len(halves) < 2:
                self._problems[index] = error.message
            self._put_back([*self._asked[:at], *((index, half) for half in halves), *self._asked[at + 1 :]])
            return True
        if not _fault_of_a_text(error):
            return False
        if len(self._asked) > 1:
            self._put_back(self._asked)
            self._alone = len(self._asked)
        else:
            self._problems[self._asked[0][0]] = error.message
        return True

    def results(self) -> list[tuple[Document, Vectors]]:
        """What became of each document."""
        return [
            (document, self._result(index, made))
            for index, (document, made) in enumerate(zip(self._documents, self._made, strict=True))
        ]

    def _result(self, index: int, made: list[tuple[int, bytes]]) -> Vectors:
        if index in self._problems:
            return Vectors([], [], self._problems[index])
        return Vectors([mark for mark, _ in made], [vector for _, vector in made])

    def _put_back(self, parts: Sequence[tuple[int, EmbeddedText]]) -> None:
        self._waiting.extendleft(reversed(parts))


def _fault_of_a_text(error: HearthError) -> bool:
    """Whether another text may well succeed: not when the model cannot run or the settings are wrong."""
    if isinstance(error, InvalidRequestError):
        return error.param != "dimensions"
    return not isinstance(error, ModelUnavailableError) and error.status == 500
