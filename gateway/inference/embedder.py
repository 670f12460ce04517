"""Embeddings from a local child process."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence

from gateway.base.errors import ConfigurationError, PromptTooLongError
from gateway.config.settings import EmbeddingSettings, ModelSettings, RerankSettings, Settings
from gateway.inference.client import HostClient, wrong_reply
from gateway.inference.counts import batches
from gateway.inference.embedding import Embedder, Embeddings, TextKind
from gateway.inference.interface import KeepAlive
from gateway.inference.process.keepalive import Use
from gateway.inference.process.link import HostLink
from gateway.models.catalog import ResolvedModel, TaskPrompts
from model_host.protocol import MAX_LINE_BYTES, MAX_TEXTS, Embed, Embedded, Lane

_BESIDES = 512  # upper bound of a reply's bytes without its vectors
_SLOT = re.compile(r"\{(title|text)\}")

OnEmbedded = Callable[[Lane, float, Embeddings], None]


class HostEmbedder(HostClient, Embedder):
    """:class:`gateway.inference.embedding.Embedder` on a model host with an embedding model.

    ``resolve`` returns the configured model; it is called again at each start. ``on_embedded`` gets the lane, the
    seconds and the result of each successful call.
    """

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
        self.model = resolve()
        self.name = self.model.name

    @property
    def identity(self) -> str:
        try:
            model = self._resolve()
            status = model.path.stat()
        except (ConfigurationError, OSError):
            return ""  # the file is gone: its vectors stay valid until there is another one
        file = f"{model.path}\0{status.st_size}\0{status.st_mtime_ns}"
        return digest(f"{file}\0{model.dimensions}\0{model.prompts}")

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
        started = time.monotonic()
        with self._idle.begin(keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            prompts, ready = link.plan.model.prompts, link.ready.result()
            titled = zip(texts, titles or [""] * len(texts), strict=True)
            made_up = [prompted(prompts, kind, text, title) for text, title in titled]
            width = dimensions or ready.dimensions
            vectors: list[bytes] = []
            tokens: list[int] = []
            most = max(1, min(MAX_TEXTS, MAX_LINE_BYTES // (width * 4 * 4 // 3 + _BESIDES) - 1))
            for batch in batches(made_up, most):
                message = Embed(
                    id=self.wire_id(request_id),
                    texts=[each for each in batch if isinstance(each, str)],
                    tokens=[each for each in batch if not isinstance(each, str)],
                    lane=lane,
                    owner=owner,
                    dimensions=dimensions,
                )
                answer = await self._embedded(link, message, len(vectors), len(batch), use)
                vectors += answer.embeddings
                tokens += answer.tokens
        made = Embeddings(vectors, tokens, f"{ready.fingerprint}:{width}:{digest(str(prompts))[:8]}")
        self._on_embedded(lane, time.monotonic() - started, made)
        return made

    async def _embedded(
        self, link: HostLink, message: Embed, first: int, expected: int, use: Use
    ) -> Embedded:
        """Embed one batch; ``first`` is the index of its first text in the call."""
        try:
            event = await self.answer(link, message, Embedded, use)
        except PromptTooLongError as error:
            index = int(error.details.get("index", 0)) + first
            raise PromptTooLongError(
                f"text {index} has {error.details.get('tokens')} tokens; the embedding model takes "
                f"{error.details.get('limit')}: send it in parts",
                param="input",
                details={**error.details, "index": index},
            ) from None
        if len(event.embeddings) != expected:
            raise wrong_reply(event)
        return event


def host_settings(settings: Settings, section: EmbeddingSettings | RerankSettings) -> ModelSettings:
    """Convert a section of ``settings`` for :class:`HostClient`."""
    shared = set(ModelSettings.__struct_fields__) & set(section.__struct_fields__)
    return ModelSettings(
        name=section.model,
        memory_headroom_bytes=settings.model.memory_headroom_bytes,
        **{name: getattr(section, name) for name in shared},
    )


def prompted(prompts: TaskPrompts, kind: TextKind, text: str | list[int], title: str) -> str | list[int]:
    """Insert the text into its task's prompt. Braces in text and title are not placeholders."""
    if kind == "plain" or not isinstance(text, str):
        return text
    values = {"text": text, "title": title or prompts.untitled}
    pattern = prompts.query if kind == "query" else prompts.document
    return _SLOT.sub(lambda slot: values[slot[1]], pattern).strip()


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
