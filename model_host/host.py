"""Model hosts: what all have in common, and the one that generates text."""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from model_host import protocol
from model_host.batching.request import SequenceState
from model_host.batching.scheduler import Scheduler
from model_host.batching.slots import SlotTable, common_prefix
from model_host.engine.engine import Engine
from model_host.engine.vocabulary import Vocabulary
from model_host.loop import BatchLoop
from model_host.options import HostOptions
from model_host.preparer import Preparer
from model_host.prompts.renderer import ChatTemplateError, TemplateWorker
from model_host.prompts.templates import PromptBuilder
from model_host.protocol import Message
from model_host.snapshots.folder import SnapshotFolder
from model_host.snapshots.manager import SnapshotManager
from model_host.snapshots.writer import SnapshotWriter
from model_host.wire.intake import Intake
from model_host.wire.output import Output

Work = TypeVar("Work")

LOADING_INTERVAL_SECONDS = 0.1  # between two reports of load progress


class Host(ABC, Generic[Work]):
    """The two descriptors of the protocol and the table of open requests."""

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
        """Abort the current batch if the request is in it, or if the id is ``""``. Called by the reader thread."""

    def fail(self, code: protocol.FailureCode, message: str) -> None:
        """Report why this host cannot serve."""
        self.output.emit(protocol.Failed(None, code, message))

    def start_reading(self) -> None:
        """Accept requests from now on; they wait until the model is loaded."""
        start_thread("reader", lambda: self.intake.read_from(self._read))

    def progress(self) -> Callable[[float], bool]:
        """A callback for the load: reports its progress, and returns False to end it after a shutdown."""
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
    """Generates text with one model."""

    def __init__(self, options: HostOptions, worker: TemplateWorker, *, read: int, write: int) -> None:
        super().__init__(options, read=read, write=write)
        self._worker = worker
        self._engine: Engine | None = None
        self._loop: BatchLoop | None = None

    def serve(self) -> None:
        self.start_reading()
        options = self.options
        # A step is never larger than the context, and every running sequence gets a token each step.
        chunk = max(min(options.chunk, options.context), options.parallel)
        engine = self._engine = Engine(
            options.model,
            context=max(options.context, chunk),
            sequences=2 * options.parallel,  # as many again keep finished prompts as cache
            outputs=options.parallel + options.drafts,
            chunk=chunk,
            threads=options.threads,
            progress=self.progress(),
            adapters=options.adapter,
        )
        slots = SlotTable(2 * options.parallel, engine.n_ctx, engine, idle=engine.idle_cells)
        scheduler = Scheduler(
            slots,
            parallel=options.parallel,
            max_waiting=options.max_waiting,
            sequence_limit=engine.sequence_limit,
            drafts=options.drafts,
        )
        prompts = PromptBuilder(engine.weights.template, engine.vocabulary, self._worker)
        self._loop = BatchLoop(
            engine,
            scheduler,
            self.intake,
            self.output,
            chunk=engine.chunk,
            snapshots=self._snapshots(engine, slots, prompts),
        )
        self._loop.meter.thread_plan = engine.thread_plan
        self.intake.on_ready = self._arrived
        preparer = Preparer(engine, prompts)
        start_thread("preparer", lambda: self.intake.prepare_with(preparer.prepare))
        # Only now, because the template worker's start would count as contention.
        if options.thread_plan is not None:
            engine.tune(options.thread_plan, min(engine.chunk, engine.n_ctx))
        self.output.emit(engine.ready(pid=os.getpid(), n_parallel=options.parallel))
        self._loop.run()

    def _arrived(self, sequence: SequenceState) -> None:
        """Abort a batch that prefills background requests only, when a foreground one arrives."""
        if sequence.lane != "background" and self._loop is not None and self._loop.yielding:
            assert self._engine is not None
            self._engine.abort()

    def _snapshots(self, engine: Engine, slots: SlotTable, prompts: PromptBuilder) -> SnapshotManager | None:
        options = self.options
        if options.snapshots is None:
            return None
        root = options.snapshots
        writer = SnapshotWriter(root, options.snapshot_bytes, options.shared_snapshot_bytes)
        folders = {name: SnapshotFolder(root, key, writer) for name, key in engine.state_keys.items()}
        try:
            for folder in folders.values():
                folder.scan()
        except OSError as error:
            print(f"no snapshots: {error}", file=sys.stderr, flush=True)  # noqa: T201
            return None
        boundary = partial(stable_prefix, engine.vocabulary, opening_of_replies(prompts))
        return SnapshotManager(slots, writer, folders, engine, boundary, quiet_seconds=options.snapshot_after)

    def cancelled(self, request_id: str) -> None:
        if self._loop is not None and (not request_id or request_id in self._loop.prefilling):
            assert self._engine is not None
            self._engine.abort()


def opening_of_replies(prompts: PromptBuilder) -> list[int]:
    """Tokens at the end of a chat's prompt that the next prompt does not have before that reply.

    Gemma 4's template, for one, opens a reply with an empty thought that it does not show of past replies.
    """
    asked = [Message("user", "a")]
    try:
        now = prompts.build(asked).tokens
        later = prompts.build([*asked, Message("assistant", "b"), Message("user", "c")]).tokens
    except ChatTemplateError:
        return []
    return now[common_prefix(now, later, len(now)) :]


def stable_prefix(vocabulary: Vocabulary, opening: list[int], tokens: Sequence[int], prompt: int) -> int:
    """Compute how many tokens of a sequence will be the same in the next prompt; the first ``prompt`` were its prompt.

    A reply comes back as text, which may be tokenized otherwise than it was generated.
    """
    start = prompt - len(opening)
    if opening and tokens[max(0, start) : prompt] == opening:
        return start
    reply = list(tokens[prompt:])
    text = b"".join(map(vocabulary.piece, reply)).decode("utf-8", "replace").strip()
    return prompt + common_prefix(reply, vocabulary.tokenize(text, special=False), len(reply))


def start_thread(name: str, body: Callable[[], None]) -> None:
    """Run ``body`` in a daemon thread; an exception in it ends the process."""
    threading.Thread(target=body, name=name, daemon=True).start()
