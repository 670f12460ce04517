"""A model host put together: engine, scheduler, intake and loop around one model file."""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from model_host import protocol
from model_host.batching.request import SequenceState
from model_host.batching.scheduler import Feed, Scheduler
from model_host.batching.slots import SlotTable
from model_host.engine.engine import Engine, Span
from model_host.engine.threads import Plan
from model_host.engine.tuned_engine import TunedEngine
from model_host.loop import BatchLoop
from model_host.preparer import Preparer
from model_host.prompts.renderer import TemplateWorker
from model_host.prompts.templates import PromptBuilder
from model_host.snapshots.boundary import Boundary, opening_of_replies
from model_host.snapshots.folder import SnapshotFolder
from model_host.snapshots.manager import SnapshotManager
from model_host.wire.intake import Intake
from model_host.wire.output import Output

Work = TypeVar("Work")

LOADING_INTERVAL_SECONDS = 0.1  # between two reports of load progress


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The command line of a model host."""

    model: Path
    context: int
    parallel: int
    chunk: int
    threads: int
    max_waiting: int
    thread_plan: Plan | None = None  # as measured before; empty: measure now; None: ``threads``
    drafts: int = 0  # guessed tokens in a step at most; 0: no guessing
    snapshots: Path | None = None  # where KV sequences are saved
    snapshot_bytes: int = 0  # all files together at most
    quiet_seconds: float = 0.0  # idle time before they are saved


class Host(ABC, Generic[Work]):
    """What every host has: a pair of descriptors, the table of open requests, threads."""

    def __init__(self, options: HostOptions, *, read: int, write: int) -> None:
        self.options = options
        self.output = Output(write)
        self.intake: Intake[Work] = Intake(
            self.output, max_waiting=options.max_waiting + options.parallel, on_cancel=self.cancelled
        )
        self._read = read

    @abstractmethod
    def serve(self) -> None:
        """Load the model, then work until shutdown or end of input. Raises LoadError."""

    @abstractmethod
    def cancelled(self, request_id: str) -> None:
        """From the reader thread: an open request was cancelled; ``""``: the host is to end."""

    def fail(self, code: protocol.FailureCode, message: str) -> None:
        """Tell why there will be no service."""
        self.output.emit(protocol.Failed(None, code, message))

    def start_reading(self) -> None:
        """Requests are taken in from now on; they wait until the model is loaded."""
        start_thread("reader", lambda: self.intake.read_from(self._read))

    def progress(self) -> Callable[[float], bool]:
        """Reports the load; a shutdown ends it."""
        due = 0.0

        def report(fraction: float) -> bool:
            nonlocal due
            now = time.monotonic()
            if now >= due:
                due = now + LOADING_INTERVAL_SECONDS
                self.output.emit(protocol.Loading(round(min(1.0, max(0.0, fraction)), 3)))
            return self.intake.closing is None

        return report


class ModelHost(Host[SequenceState]):
    """Generates text with one model. ``worker`` may have been started before."""

    def __init__(self, options: HostOptions, worker: TemplateWorker, *, read: int, write: int) -> None:
        super().__init__(options, read=read, write=write)
        self._worker = worker
        self._engine: Engine | None = None
        self._loop: BatchLoop | None = None

    def serve(self) -> None:
        """See :meth:`Host.serve`."""
        self.start_reading()
        self._worker.start()  # its start-up overlaps the load
        options = self.options
        # A step is never larger than the context, and every running sequence gets a token each step.
        chunk = max(min(options.chunk, options.context), options.parallel)
        engine = self._engine = TunedEngine(
            options.model,
            context=max(options.context, chunk),
            sequences=2 * options.parallel,  # as many again keep finished prompts as cache
            outputs=options.parallel + options.drafts,
            chunk=chunk,
            threads=options.threads,
            progress=self.progress(),
        )
        slots = SlotTable(2 * options.parallel, engine.n_ctx, engine, idle=engine.idle_cells)
        scheduler = Scheduler(
            slots,
            parallel=options.parallel,
            max_waiting=options.max_waiting,
            sequence_limit=engine.sequence_limit,
            drafts=options.drafts,
        )
        vocabulary = engine.vocabulary
        prompts = PromptBuilder(
            engine.template, vocabulary, self._worker, vocabulary.bos, vocabulary.eos, engine.name
        )
        keeper = self._keeper(engine, slots, prompts)
        if keeper is not None:
            scheduler.restore = keeper.restore
        self._loop = BatchLoop(
            _LoopModel(engine), scheduler, self.intake, self.output, chunk=engine.chunk, keeper=keeper
        )
        self._loop.meter.thread_plan = engine.thread_plan
        self.intake.on_ready = self._arrived
        preparer = Preparer(engine, prompts, engine.sequence_limit)
        start_thread("preparer", lambda: self.intake.prepare_with(preparer.prepare))
        if options.thread_plan is not None:  # after the template worker's start, which would be contention
            engine.tune(options.thread_plan, min(engine.chunk, engine.n_ctx))
        self.output.emit(
            engine.ready(pid=os.getpid(), n_parallel=options.parallel, tools=prompts.form is not None)
        )
        self._loop.run()

    def _arrived(self, sequence: SequenceState) -> None:
        """Somebody waits for an answer: what is just being read for a background request is read again later."""
        if sequence.lane != "background" and self._loop is not None and self._loop.yielding:
            assert self._engine is not None
            self._engine.abort()

    def _keeper(self, engine: Engine, slots: SlotTable, prompts: PromptBuilder) -> SnapshotManager | None:
        options = self.options
        if options.snapshots is None:
            return None
        folder = SnapshotFolder(options.snapshots, engine.state_key, limit=options.snapshot_bytes)
        try:
            folder.scan()
        except OSError as error:
            print(f"no snapshots: {error}", file=sys.stderr, flush=True)  # noqa: T201
            return None
        opening = opening_of_replies(prompts)
        return SnapshotManager(
            slots, folder, engine, Boundary(engine.vocabulary, opening), quiet_seconds=options.quiet_seconds
        )

    def cancelled(self, request_id: str) -> None:
        """Stop the present step if it reads this request's prompt, or on shutdown."""
        if (
            self._engine is not None
            and self._loop is not None
            and (not request_id or request_id in self._loop.batched)
        ):
            self._engine.abort()


class _LoopModel:
    """The engine as the batch loop sees it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.arm = engine.arm
        self.step_size = engine.step_size
        self.piece = engine.vocabulary.piece
        self.text = engine.vocabulary.text
        self.ends = engine.vocabulary.ends

    def run(self, feeds: Sequence[Feed]) -> tuple[str, dict[int, int]]:
        """See :class:`model_host.loop.BatchModel`."""
        spans = []
        for feed in feeds:
            sequence = feed.sequence
            assert sequence.slot is not None
            tokens = [*sequence.tokens[sequence.done : sequence.done + feed.count], *feed.draft]
            logits = 1 + len(feed.draft) if feed.last else 0
            spans.append(Span(sequence.slot.id, sequence.done, tokens, logits))
        return self._engine.decode(spans)


def start_thread(name: str, body: Callable[[], None]) -> None:
    """Run ``body`` beside the loop; what it raises ends the host."""
    threading.Thread(target=body, name=name, daemon=True).start()
