"""An embedder for tests: texts that share words are near. It can be slow, fail, and change."""

from __future__ import annotations

import array
import asyncio
import math
import re
import zlib
from pathlib import Path

from gateway.base.errors import HearthError, PromptTooLongError
from gateway.inference.embedding import EmbedCall, Embedder, Embeddings
from gateway.models.catalog import ResolvedModel
from gateway.store.db import Database
from gateway.vectors.indexer import Indexer
from gateway.vectors.queries import Queries
from gateway.vectors.source import DocumentSource

WIDTH = 512
_WORD = re.compile(r"\w+")


def vector_of(text: str, width: int = WIDTH) -> bytes:
    """Words hashed into dimensions, of length 1."""
    counts = [0.0] * width
    for word in _WORD.findall(text.casefold()):
        counts[zlib.crc32(word.encode()) % width] += 1.0
    length = math.sqrt(sum(count * count for count in counts)) or 1.0
    return array.array("f", [count / length for count in counts]).tobytes()


class WordEmbedder(Embedder):
    """``most_words`` is its context; a text with ``poison`` has no vector; ``error`` is raised while it is set."""

    identity = "words.gguf"  # type: ignore[assignment]

    def __init__(self, *, most_words: int = 400, poison: str = "\0") -> None:
        self.name = "words"
        self.model = ResolvedModel(
            name="words", path=Path("words.gguf"), size_bytes=1, ram_bytes=1, context=1, kind="embedding"
        )
        self.space = "words:128"
        self.width = WIDTH
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.calls: list[EmbedCall] = []
        self._most_words = most_words
        self._poison = poison

    @property
    def embedded(self) -> list[str]:
        """Every text that was asked for."""
        return [text for call in self.calls for text in call.texts if isinstance(text, str)]

    async def embed(self, call: EmbedCall) -> Embeddings:
        plain = [text for text in call.texts if isinstance(text, str)]
        self.calls.append(call)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        titles = call.titles or [""] * len(plain)
        whole = [f"{title} {text}" for title, text in zip(titles, plain, strict=True)]
        for index, text in enumerate(whole):
            if self._poison in text:
                raise HearthError("the model made a vector without a direction")
            if (count := len(_WORD.findall(text))) > self._most_words:
                details: dict[str, int | float | str] = {
                    "index": index,
                    "tokens": count,
                    "limit": self._most_words,
                }
                raise PromptTooLongError(f"text {index} is too long", details=details)
        return Embeddings([vector_of(text, self.width) for text in whole], [1] * len(whole), self.space)


class WordSearch:
    """A database whose texts an indexer embeds, and the queries for them."""

    def __init__(self, database: Database, source: DocumentSource, *, poll_seconds: float = 0.02) -> None:
        self.database = database
        self.embedder = WordEmbedder()
        self.indexer = Indexer(database, self.embedder, [source], poll_seconds=poll_seconds)
        self.queries = Queries(
            self.embedder,
            dimensions=None,
            min_similarity=0.2,
            timeout_seconds=5,
            on_stale=lambda: self.indexer.wake(stale=True),
        )
