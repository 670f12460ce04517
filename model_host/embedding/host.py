"""The embedding host: engine, queue, intake and loop for one model file."""

from __future__ import annotations

import os

from model_host import protocol
from model_host.embedding.engine import EmbeddingEngine
from model_host.embedding.loop import EmbedLoop
from model_host.embedding.queue import EmbedQueue, Job
from model_host.host import Host, start_thread
from model_host.options import HostOptions
from model_host.wire.output import Ticket

# Bytes of a line in addition to the base64 of vectors: for the id, and per text for its count and quotes.
_BESIDES = 256
_ONLY_VECTORS = "this host only makes vectors; it was started with --embedding"
_ONLY_SCORES = "this host only scores texts for a query; it was started with --rerank"


class EmbeddingHost(Host[Job]):
    """Makes vectors with one model. ``options.chunk`` is the token budget of a batch."""

    def __init__(self, options: HostOptions, *, read: int, write: int) -> None:
        super().__init__(options, read=read, write=write)
        self._engine: EmbeddingEngine | None = None
        self._loop: EmbedLoop | None = None

    def serve(self) -> None:
        """See :meth:`Host.serve`."""
        self.start_reading()
        options = self.options
        engine = self._engine = EmbeddingEngine(
            options.model,
            context=options.context,
            sequences=options.parallel,
            threads=options.threads,
            progress=self.progress(),
            fixed_threads=options.thread_plan is None,
            rerank=options.rerank,
        )
        queue = EmbedQueue(budget=min(options.chunk, engine.n_ctx), sequences=options.parallel)
        self._loop = EmbedLoop(engine, queue, self.intake, self.output)
        self._loop.meter.thread_plan = engine.thread_plan
        start_thread("preparer", lambda: self.intake.prepare_with(JobMaker(engine).prepare))
        self.output.emit(engine.ready(pid=os.getpid(), n_parallel=options.parallel))
        self._loop.run()

    def cancelled(self, request_id: str) -> None:
        """Abort the current batch if it has a text of this request, or on shutdown."""
        if (
            self._engine is not None
            and self._loop is not None
            and (not request_id or request_id in self._loop.computing)
        ):
            self._engine.abort()


class JobMaker:
    """Turns accepted requests into jobs, or into failures."""

    def __init__(self, engine: EmbeddingEngine) -> None:
        self._engine = engine

    def prepare(self, ticket: Ticket) -> Job | protocol.Event:
        """See :class:`model_host.wire.intake.Intake`. Texts that are too long are rejected, never cut."""
        request = ticket.request
        rerank = self._engine.rerank
        if not isinstance(request, protocol.Embed) or (request.query is not None) != rerank:
            return protocol.Failed(request.id, "wrong_host", _ONLY_SCORES if rerank else _ONLY_VECTORS)
        wanted = request.dimensions or self._engine.dimensions
        if failure := self._too_much(request, wanted):
            return failure
        query = (
            None if request.query is None else self._engine.vocabulary.tokenize(request.query, special=False)
        )
        texts = []
        given: list[str | list[int]] = [*request.texts, *request.tokens]
        for index, text in enumerate(given):
            if ticket.cancelled:
                return protocol.Failed(request.id, "cancelled", "the request was cancelled")
            try:
                tokens = self._tokens(text, query, request.max_tokens)
            except ValueError as error:
                return _bad(request.id, f"text {index}: {error}", "tokens", index=index)
            if failure := self._refusal(request.id, index, len(tokens)):
                return failure
            texts.append(tokens)
        return Job(request.id, request.lane, request.owner, texts, request.normalize, wanted, ticket.arrived)

    def _tokens(self, text: str | list[int], query: list[int] | None, most: int | None) -> list[int]:
        vocabulary = self._engine.vocabulary
        if not isinstance(text, str):
            return vocabulary.whole(text)
        if query is not None:
            return self._engine.pair(query, vocabulary.tokenize(text, special=False)[:most])
        return vocabulary.tokenize_whole(text)

    def _too_much(self, request: protocol.Embed, wanted: int) -> protocol.Failed | None:
        """Return the failure if the reply could not be sent."""
        most = self._engine.dimensions
        if wanted > most:
            text = f"`dimensions` is {wanted}; the model's vectors have {most}"
            return _bad(request.id, text, "dimensions")
        count = len(request.texts or request.tokens)
        if count * (wanted * 4 * 4 // 3 + _BESIDES) > protocol.MAX_LINE_BYTES - _BESIDES:
            text = f"{count} vectors of {wanted} dimensions do not fit a line; send fewer texts"
            return _bad(request.id, text, "texts" if request.texts else "tokens")
        return None

    def _refusal(self, request_id: str, index: int, tokens: int) -> protocol.Failed | None:
        limit = self._engine.n_ctx
        if tokens > limit:
            return protocol.Failed(
                request_id,
                "prompt_too_long",
                f"text {index} has {tokens} tokens; the embedding model takes {limit}",
                details={"index": index, "tokens": tokens, "limit": limit},
            )
        if not tokens:
            return _bad(request_id, f"text {index} is empty", "texts", index=index)
        return None


def _bad(request_id: str, message: str, field: str, **details: int) -> protocol.Failed:
    return protocol.Failed(request_id, "bad_request", message, details={"field": field, **details})
