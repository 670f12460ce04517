"""A cache of token counts, because the same pages and blocks are counted repeatedly; batches of texts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

MAX_ENTRIES = 4096
MAX_CHARACTERS = 8_000_000  # of all keys together: 8 to 32 MB

# Text in one message. JSON escaping makes at most 6 bytes of one, so it fits a line.
BATCH_BYTES = 1024 * 1024
BATCH_TEXTS = 4096
_TOKEN_BYTES = 11  # of an ID in JSON, its comma included

T = TypeVar("T", str, str | list[int])


class CountCache:
    """Token counts by text for one model; evicts the least recently used. Texts over an eighth of the limit are not
    cached."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_characters: int = MAX_CHARACTERS) -> None:
        self._max_entries = max_entries
        self._max_characters = max_characters
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._characters = 0
        self._fingerprint = ""

    def use_model(self, fingerprint: str) -> None:
        """Clear the cache if the model has changed."""
        if fingerprint != self._fingerprint:
            self._fingerprint = fingerprint
            self._counts.clear()
            self._characters = 0

    async def counted(
        self, texts: Sequence[str], count: Callable[[list[str]], Awaitable[Sequence[int]]]
    ) -> list[int]:
        """The count of each text; ``count`` counts those that are not known."""
        distinct = dict.fromkeys(texts)
        counts = {text: known for text in distinct if (known := self.get(text)) is not None}
        unknown = [text for text in distinct if text not in counts]
        for text, made in zip(unknown, await count(unknown), strict=True):
            counts[text] = made
            self.put(text, made)
        return [counts[text] for text in texts]

    def get(self, text: str) -> int | None:
        count = self._counts.get(text)
        if count is not None:
            self._counts.move_to_end(text)
        return count

    def put(self, text: str, count: int) -> None:
        if len(text) > self._max_characters // 8 or text in self._counts:
            return
        self._counts[text] = count
        self._characters += len(text)
        while len(self._counts) > self._max_entries or self._characters > self._max_characters:
            oldest, _ = self._counts.popitem(last=False)
            self._characters -= len(oldest)


def batches(texts: Sequence[T], most: int = BATCH_TEXTS) -> Iterator[list[T]]:
    """``texts`` in order, as strings or token IDs, in lists of at most ``most`` that fit a protocol line each.

    A single huge text may still not fit.
    """
    batch: list[T] = []
    size = 0
    for text in texts:
        length = _TOKEN_BYTES * len(text)
        if isinstance(text, str):
            length = len(text.encode("utf-8", "surrogatepass"))
        if batch and (size + length > BATCH_BYTES or len(batch) == most):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch
