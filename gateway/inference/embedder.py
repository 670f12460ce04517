"""Embeddings and scores from local child processes."""

from __future__ import annotations

import hashlib
import math
import re
import struct
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from gateway.base.errors import ConfigurationError, PromptTooLongError
from gateway.config.settings import EmbeddingSettings, ModelSettings, RerankSettings, Settings
from gateway.inference.client import HostClient, wrong_reply
from gateway.inference.counts import batches
from gateway.inference.embedding import (
    EmbedCall,
    Embedder,
    Embeddings,
    OptionalHost,
    RerankCall,
    Reranker,
    Scores,
)
from gateway.inference.process.keepalive import Use
from gateway.inference.process.link import HostLink
from gateway.models.catalog import ResolvedModel, TaskPrompts
from model_host.protocol import MAX_LINE_BYTES, MAX_TEXTS, Embed, Embedded, Lane

_BESIDES = 512  # upper bound of a reply's bytes without its vectors
_SLOT = re.compile(r"\{(title|text)\}")

OnEmbedded = Callable[[Lane, float, Embeddings], None]


class VectorHost(HostClient, OptionalHost):
    """A model host whose model makes vectors of texts, or scores. ``resolve`` is called again at each start.

    ``param`` and ``too_long`` make the error for a text that is too long, from its ``index`` in the call.
    """

    param: ClassVar[str]
    too_long: ClassVar[str]

    def __init__(
        self,
        resolve: Callable[[], ResolvedModel],
        settings: ModelSettings,
        *,
        beside: Callable[[], Sequence[ResolvedModel]] = tuple,
    ) -> None:
        super().__init__(resolve, settings, beside=beside)
        self.model = resolve()
        self.name = self.model.name

    async def embedded(self, link: HostLink, message: Embed, first: int, use: Use) -> Embedded:
        """Embed one batch; ``first`` is the index of its first text in the call."""
        try:
            event = await self.answer(link, message, Embedded, use)
        except PromptTooLongError as error:
            details = {**error.details, "index": int(error.details.get("index", 0)) + first}
            raise PromptTooLongError(
                self.too_long.format(**details), param=self.param.format(**details), details=details
            ) from None
        if len(event.embeddings) != len(message.texts) + len(message.tokens):
            raise wrong_reply(event)
        return event


class HostEmbedder(VectorHost, Embedder):
    """:class:`gateway.inference.embedding.Embedder` on a model host with an embedding model.

    ``on_embedded`` gets the lane, the seconds and the result of each successful call.
    """

    param = "input"
    too_long = "text {index} has {tokens} tokens; the embedding model takes {limit}: send it in parts"

    def __init__(
        self,
        resolve: Callable[[], ResolvedModel],
        settings: ModelSettings,
        *,
        beside: Callable[[], Sequence[ResolvedModel]] = tuple,
        on_embedded: OnEmbedded = lambda *_: None,
    ) -> None:
        super().__init__(resolve, settings, beside=beside)
        self._resolve = resolve
        self._on_embedded = on_embedded

    @property
    def identity(self) -> str:
        try:
            model = self._resolve()
            status = model.path.stat()
        except (ConfigurationError, OSError):
            return ""  # the file is gone: its vectors stay valid until there is another one
        file = f"{model.path}\0{status.st_size}\0{status.st_mtime_ns}"
        return digest(f"{file}\0{model.dimensions}\0{model.prompts}")

    async def embed(self, call: EmbedCall) -> Embeddings:
        started = time.monotonic()
        with self._idle.begin(call.keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            prompts, ready = link.plan.model.prompts, link.ready.result()
            width = call.dimensions or ready.dimensions
            vectors: list[bytes] = []
            tokens: list[int] = []
            most = max(1, min(MAX_TEXTS, MAX_LINE_BYTES // (width * 4 * 4 // 3 + _BESIDES) - 1))
            for batch in batches(prompted(prompts, call), most):
                message = Embed(
                    id=self.wire_id(call.request_id),
                    texts=[each for each in batch if isinstance(each, str)],
                    tokens=[each for each in batch if not isinstance(each, str)],
                    lane=call.lane,
                    owner=call.owner,
                    dimensions=call.dimensions,
                )
                answer = await self.embedded(link, message, len(vectors), use)
                vectors += answer.embeddings
                tokens += answer.tokens
        made = Embeddings(vectors, tokens, f"{ready.fingerprint}:{width}:{digest(str(prompts))[:8]}")
        self._on_embedded(call.lane, time.monotonic() - started, made)
        return made


class HostReranker(VectorHost, Reranker):
    """:class:`Reranker` on a model host with a cross encoder."""

    param = "documents[{index}]"
    too_long = (
        "`documents[{index}]` and `query` have {tokens} tokens; the reranker takes {limit}: send shorter ones, or set "
        "`max_tokens_per_doc`"
    )

    async def rerank(self, call: RerankCall) -> Scores:
        scores: list[float] = []
        tokens: list[int] = []
        with self._idle.begin(call.keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            for batch in batches(call.documents, MAX_TEXTS):
                message = Embed(
                    id=self.wire_id(call.request_id),
                    texts=batch,
                    query=call.query,
                    max_tokens=call.max_tokens,
                    lane=call.lane,
                    owner=call.owner,
                )
                answer = await self.embedded(link, message, len(scores), use)
                scores += [
                    logistic(number) for each in answer.embeddings for number in struct.unpack("<f", each)
                ]
                tokens += answer.tokens
        return Scores(scores, tokens)


def host_settings(settings: Settings, section: EmbeddingSettings | RerankSettings) -> ModelSettings:
    """Convert a section of ``settings`` for :class:`HostClient`."""
    shared = set(ModelSettings.__struct_fields__) & set(section.__struct_fields__)
    return ModelSettings(
        name=section.model,
        memory_headroom_bytes=settings.model.memory_headroom_bytes,
        **{name: getattr(section, name) for name in shared},
    )


def prompted(prompts: TaskPrompts, call: EmbedCall) -> list[str | list[int]]:
    """Insert each text into its task's prompt. Braces in texts and titles are not placeholders."""
    if call.kind == "plain":
        return [*call.texts]
    pattern = prompts.query if call.kind == "query" else prompts.document

    def filled(text: str | list[int], title: str) -> str | list[int]:
        values = {"text": text, "title": title or prompts.untitled}
        return (
            _SLOT.sub(lambda slot: str(values[slot[1]]), pattern).strip() if isinstance(text, str) else text
        )

    titles = call.titles or [""] * len(call.texts)
    return [filled(text, title) for text, title in zip(call.texts, titles, strict=True)]


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def logistic(number: float) -> float:
    """The logistic function, in a form that does not overflow."""
    return 0.5 * (1.0 + math.tanh(number / 2.0))
