"""The loop of an embedding host: take in, plan one batch, compute, reply."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from model_host import protocol
from model_host.batching.meter import Meter
from model_host.embedding.queue import EmbedQueue, Job, Piece
from model_host.wire.intake import Intake
from model_host.wire.output import Output


class EmbeddingModel(Protocol):
    """The engine as the loop uses it."""

    def arm(self) -> None:
        """Clear an earlier abort; a later one stops the next :meth:`run`."""

    def run(self, pieces: Sequence[Piece]) -> list[bytes | None] | None:
        """See :meth:`model_host.embedding.engine.EmbeddingEngine.run`."""


class EmbedLoop:
    """Runs until the intake closes. Everything here happens in one thread."""

    def __init__(self, model: EmbeddingModel, queue: EmbedQueue, intake: Intake[Job], output: Output) -> None:
        self.computing: frozenset[str] = frozenset()  # ids in the current batch
        self._model = model
        self._queue = queue
        self._intake = intake
        self._output = output
        self.meter = Meter()

    def run(self) -> None:
        """Serve until shutdown or end of input; then end every open request."""
        while self._intake.closing is None:
            self.step()
        self._output.close(self._intake.closing)

    def step(self) -> None:
        """One turn of the loop. Blocks only when there is nothing to compute."""
        self._take_in()
        pieces = self._queue.plan(time.monotonic())
        vectors = self._compute(pieces)
        if vectors is not None:
            self._advance(pieces, vectors)
        for job in [job for job in self._queue.jobs if job.done]:
            counts = [len(tokens) for tokens in job.texts]
            self._end(job, protocol.Embedded(job.id, job.vectors, counts))

    def _take_in(self) -> None:
        for job in self._intake.take(wait=not self._queue.jobs):
            self._queue.add(job)
        for job in list(self._queue.jobs):
            if self._output.gone(job.id):
                self._end(job, protocol.Failed(job.id, "cancelled", "the request was cancelled"))
        while self._intake.stats_asked:
            request_id = self._intake.stats_asked.popleft()
            open_jobs = self._queue.jobs
            running = sum(1 for job in open_jobs if job.vectors)
            stats = self.meter.stats(request_id, waiting=len(open_jobs) - running, running=running)
            self._output.finish(request_id, stats)
        while self._intake.forget_asked:  # this host stores no text
            request_id = self._intake.forget_asked.popleft().id
            self._output.finish(request_id, protocol.Forgotten(request_id))

    def _advance(self, pieces: list[Piece], vectors: list[bytes | None]) -> None:
        """Add the vectors of a batch to its jobs; a job whose text has none fails."""
        for piece, vector in zip(pieces, vectors, strict=True):
            job = piece.job
            if job not in self._queue.jobs:
                continue  # an earlier text of it has failed
            if vector is not None:
                self._queue.advance(piece, vector)
            else:
                problem = "the model made a vector without a direction"
                self._end(job, protocol.Failed(job.id, "internal", problem))

    def _compute(self, pieces: list[Piece]) -> list[bytes | None] | None:
        """Compute a batch; None if there is nothing to do, after an abort, or after a failure, which is reported."""
        if not pieces:
            return None
        started = time.monotonic()
        self._model.arm()
        self.computing = frozenset(piece.job.id for piece in pieces)
        try:
            if self._intake.closing is not None or any(self._output.gone(piece.job.id) for piece in pieces):
                return None  # cancelled since the intake was read
            vectors = self._model.run(pieces)
        except Exception as error:
            for job in {piece.job.id: piece.job for piece in pieces}.values():
                self._end(job, protocol.Failed(job.id, "internal", f"embedding failed: {error}"[:500], True))
            return None
        finally:
            self.computing = frozenset()
        if vectors is not None:
            self.meter.count(sum(len(piece.tokens) for piece in pieces), 0, time.monotonic() - started)
        return vectors

    def _end(self, job: Job, event: protocol.Event) -> None:
        self._queue.remove(job)
        self.meter.requests += 1
        self._output.finish(job.id, event)
