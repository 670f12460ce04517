"""The loaded model: weights, KV cache, threads, and one ``decode`` per batch. All of llama.cpp's context is here."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import llama_cpp
import numpy as np
from msgspec.structs import replace

from model_host import protocol
from model_host.batching.batches import Span
from model_host.batching.tiles import fitting
from model_host.engine.adapters import apply_adapter, load_adapter
from model_host.engine.cpu_contention import CpuContention
from model_host.engine.kv_state import KvState
from model_host.engine.sampling import SamplerChain
from model_host.engine.threads import Plan, Speeds, fastest, measure, nearest
from model_host.engine.weights import LoadError, Weights
from model_host.grammar.gbnf.program import Program
from model_host.snapshots.compression import compressed_share
from model_host.snapshots.snapshot_file import State

# Maximum size of a state with additional windows, relative to llama.cpp's own.
_MOST_BYTES = 1.5
_LOOK_SECONDS = 0.1  # for CPU contention, before the threads are measured
_FEWEST_IDLE_CELLS = 1024  # a conversation or two of a small model

DecodeResult = Literal["done", "aborted", "no_room"]


class Engine:
    """A model in memory with a unified KV cache of ``n_ctx`` cells for ``sequences`` sequences.

    Implements :class:`model_host.batching.slots.Memory`, :class:`model_host.snapshots.manager.SequenceStates` and
    :class:`model_host.loop.BatchModel`. Not thread-safe, except :meth:`abort` and ``vocabulary``. The number of threads
    never changes without :meth:`tune`.
    """

    def __init__(
        self,
        path: Path,
        *,
        context: int,
        sequences: int,
        outputs: int,
        chunk: int,
        threads: int,
        progress: Callable[[float], bool],
        adapters: Sequence[tuple[str, Path]] = (),
    ) -> None:
        weights = self.weights = Weights(path, progress)
        if weights.pools:
            raise LoadError(
                "model_unsupported",
                f"{path} is an embedding model, which cannot answer; choose a chat model",
            )
        self.threads = threads
        self._plan: Plan = {}
        self._measured: Speeds = {}
        self.vocabulary = weights.vocabulary
        self.piece, self.ends = weights.vocabulary.piece, weights.vocabulary.ends
        self.arm, self.abort = weights.abort.reset, weights.abort.throw
        self.adapters = {name: load_adapter(weights, file) for name, file in adapters}
        self._adapter = ""  # of the context now
        self._context = self._make_context(context, sequences + 1, outputs, chunk, threads)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self.chunk = int(llama_cpp.llama_n_batch(self._context))  # less than ``chunk`` in a small context
        self._batch = llama_cpp.llama_batch_init(self.chunk, 0, 1)
        self._scratch = sequences  # one sequence more than callers know of: states are saved from it
        self._heads = max(1, int(llama_cpp.llama_model_n_head(weights.handle)))
        self._window = int(llama_cpp.llama_model_n_swa(weights.handle))
        self.n_ctx = int(llama_cpp.llama_n_ctx(self._context))
        self.sequence_limit = min(self.n_ctx, weights.n_ctx_train)  # most tokens of one sequence

    # ------------------------------------------------------------------ decoding

    def decode(self, spans: Sequence[Span], adapter: str = "") -> tuple[DecodeResult, dict[int, int]]:
        """Run one batch with ``adapter``. Return the result and, by sequence, the first row of requested logits.

        After ``aborted`` or ``no_room`` the sequences are as they were before the call. Raises RuntimeError when
        llama.cpp fails.
        """
        if self._plan:
            self._contention.batch_begins()
            tokens = sum(len(span.tokens) for span in spans)
            self._use(min(self._contention.most_threads, nearest(self._plan, tokens)))
        if adapter != self._adapter:
            apply_adapter(self._context, self.adapters.get(adapter))
            self._adapter = adapter
        decoded = self._decode(spans)
        if self._plan:
            self._contention.batch_ended()
        return decoded

    def _decode(self, spans: Sequence[Span]) -> tuple[DecodeResult, dict[int, int]]:
        rows = self._fill(spans)
        status = llama_cpp.llama_decode(self._context, self._batch)
        if status == 0:
            return "done", rows
        for span in spans:
            self.trim(span.sequence, span.start)
        if status == 2:
            return "aborted", {}
        if status == 1:
            return "no_room", {}
        raise RuntimeError(f"llama_decode failed with status {status}: {self.weights.log.last()}")

    def sampler(
        self,
        settings: protocol.Sampling,
        *,
        grammar: Program | None = None,
        lazy: bool = False,
        ignore_eos: bool = False,
        closes: bool = False,
    ) -> SamplerChain:
        """Make a request's sampler; a ``lazy`` grammar applies from :meth:`~SamplerChain.constrain` on.

        ``closes``: near the limit of tokens, the text is ended as the grammar requires.
        """
        return SamplerChain(
            self._context,
            self.vocabulary,
            settings,
            grammar=grammar,
            lazy=lazy,
            ignore_eos=ignore_eos,
            closes=closes,
        )

    # ------------------------------------------------------------------ threads

    def tune(self, plan: Plan, limit: int) -> None:
        """Use the thread ``plan``; if it is empty, measure one on batches of up to ``limit`` tokens.

        Call it before the first request. Under CPU contention, batches use at most half of all threads, and nothing is
        measured, because one batch may take seconds; the plan is then all threads.
        """
        if self.threads == 1:
            return
        contention = self._contention = CpuContention(self.threads, self.abort)
        if not plan:
            time.sleep(_LOOK_SECONDS)
            if not contention.look():
                speeds = measure(self._try, self.threads, limit, time.perf_counter)
                self.trim(0, 0)
                self._measured = {} if contention.look() else speeds
        self._plan = plan or fastest(self._measured) or {1: self.threads}
        contention.watch()

    def thread_plan(self) -> Plan:
        """Return the current threads by batch size; empty when the number is fixed."""
        most = self._contention.most_threads if self._plan else 0
        return {size: min(most, threads) for size, threads in sorted(self._plan.items())}

    def _use(self, threads: int) -> None:
        llama_cpp.llama_set_n_threads(self._context, threads, threads)

    def _try(self, tokens: int, threads: int) -> None:
        """Decode a batch of dummy tokens."""
        self.trim(0, 0)
        self._use(threads)
        self._decode([Span(0, 0, [0] * tokens, 1)])

    # ------------------------------------------------------------------ the KV cache

    def copy(self, source: int, target: int, end: int) -> None:
        llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, end)

    def trim(self, sequence: int, start: int) -> None:
        llama_cpp.llama_memory_seq_rm(self._memory, sequence, start, -1)

    def length(self, sequence: int) -> int:
        return int(llama_cpp.llama_memory_seq_pos_max(self._memory, sequence)) + 1

    def reusable(self, sequence: int, length: int) -> bool:
        """Whether the sliding-window layers still have all cells that the token after ``length`` attends to.

        Even in a full-size cache llama.cpp may overwrite cells outside the window; the remaining ones are then
        contiguous from the sequence's smallest position.
        """
        if not self._window:
            return True
        first = int(llama_cpp.llama_memory_seq_pos_min(self._memory, sequence))
        return first <= max(0, length - self._window)

    @property
    def idle_cells(self) -> int:
        """Number of used cells that slows tokens of other sequences by a twentieth; large models hardly notice them.

        Measured on one core (`idle_cells.py` in commit 74249d7): a cell that the mask hides takes 1.1 ns per head and
        layer, a weight 0.023 ns.
        """
        model = self.weights.handle
        embedding = int(llama_cpp.llama_model_n_embd(model)) * self.vocabulary.size
        computed = int(llama_cpp.llama_model_n_params(model)) - embedding
        heads = self._heads * max(1, int(llama_cpp.llama_model_n_layer(model)))
        return max(_FEWEST_IDLE_CELLS, round(0.05 * computed * 0.023 / (heads * 1.1)))

    def step_size(self, budget: int) -> int:
        """The most efficient number of tokens near ``budget``: see :mod:`model_host.batching.tiles`."""
        return fitting(budget, self.chunk, self._heads, self.threads)

    # ------------------------------------------------------------------ snapshots.manager.SequenceStates

    def save(
        self, sequence: int, end: int, stops: Sequence[int], earlier: State | None
    ) -> tuple[State, list[tuple[int, int]]] | None:
        """See :class:`model_host.snapshots.manager.SequenceStates`."""
        if not self._window:
            return self._state(sequence, end), [(1, end)]
        before = KvState.parse(earlier) if earlier is not None else None
        if not self.reusable(sequence, end):
            parsed = before.until(end, self._window) if before is not None else None
            return (parsed.packed(), parsed.stretches(self._window)) if parsed is not None else None
        state = self._state(sequence, end)
        parsed = KvState.parse(state)
        if parsed is None or not parsed.stretches(self._window):  # such as attention in chunks
            return state, [(end, end)]
        room = int((_MOST_BYTES / compressed_share(state) - 1) * len(state)) // parsed.window_bytes
        have, windows = set(parsed.window), []
        for stop in stops:
            wanted = set(range(max(0, stop - self._window), stop)) - have
            # A part of the beginning is better than none.
            if len(wanted) > room >= stop // 2 and stop == stops[-1]:
                stop, wanted = room, set(range(room)) - have
            window = self._window_before(sequence, stop, before) if len(wanted) <= room else None
            if window is not None:
                windows.append(window)
                have |= wanted
                room -= len(wanted)
        parsed = parsed.with_windows(windows)
        return parsed.packed(), parsed.stretches(self._window)

    def _window_before(self, sequence: int, stop: int, before: KvState | None) -> KvState | None:
        """Return the window before ``stop``; for a restored sequence it may be only in its earlier state ``before``."""
        if self.reusable(sequence, stop):
            return KvState.parse(self._state(sequence, stop, llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY))
        return before.until(stop, self._window) if before is not None else None

    def load(self, sequence: int, state: State, length: int) -> bool:
        """See :class:`model_host.snapshots.manager.SequenceStates`."""
        parsed = KvState.parse(state) if self._window else None
        if parsed is not None:
            cut = parsed.until(length, self._window)
            state = cut.packed() if cut is not None else state
        source = np.frombuffer(state, np.uint8).ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        read = int(llama_cpp.llama_state_seq_set_data(self._context, source, len(state), sequence))
        self.trim(sequence, length)
        return read == len(state)

    def _state(self, sequence: int, end: int, flags: int = 0) -> bytearray:
        """Serialize the first ``end`` positions with llama.cpp."""
        self.copy(sequence, self._scratch, end)
        try:
            size = int(llama_cpp.llama_state_seq_get_size_ext(self._context, self._scratch, flags))
            state = bytearray(size)
            target = (ctypes.c_uint8 * size).from_buffer(state)
            written = int(
                llama_cpp.llama_state_seq_get_data_ext(self._context, target, size, self._scratch, flags)
            )
        finally:
            self.trim(self._scratch, 0)
        if written != size:
            raise RuntimeError(
                f"llama.cpp wrote {written} of {size} bytes of a state: {self.weights.log.last()}"
            )
        return state

    @property
    def state_keys(self) -> dict[str, str]:
        """Everything that a sequence saved under an adapter depends on, by the adapter's name; "" for none."""
        bare = f"{self.weights.fingerprint} {self.weights.build} f16 window-full"
        return {"": bare} | {name: f"{bare} lora {one.checksum}" for name, one in self.adapters.items()}

    def ready(self, *, pid: int, n_parallel: int) -> protocol.Ready:
        ready = self.weights.ready(
            pid=pid, n_ctx=self.sequence_limit, n_parallel=n_parallel, threads=self.threads
        )
        return replace(
            ready,
            thread_plan=self.thread_plan(),
            thread_speeds=self._measured,
            adapters={name: adapter.checksum for name, adapter in self.adapters.items()},
        )

    # ------------------------------------------------------------------ set-up

    def _make_context(self, context: int, sequences: int, outputs: int, chunk: int, threads: int) -> Any:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = context
        params.n_batch = params.n_ubatch = chunk
        params.n_seq_max = sequences
        params.n_outputs_max = max(outputs, sequences)  # llama.cpp wants at least one per sequence
        params.n_threads = params.n_threads_batch = threads
        # Full-size sliding-window cache: a prefix can be branched at any point, not only at its end.
        params.swa_full = True
        return self.weights.context(params, "model.context")

    def _fill(self, spans: Sequence[Span]) -> dict[int, int]:
        batch = self._batch
        row = 0
        rows: dict[int, int] = {}
        for span in spans:
            for offset, token in enumerate(span.tokens):
                batch.token[row] = token
                batch.pos[row] = span.start + offset
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = span.sequence
                batch.logits[row] = 0
                row += 1
            for wanted in range(row - span.logits, row):
                batch.logits[wanted] = 1
            if span.logits:
                rows[span.sequence] = row - span.logits
        batch.n_tokens = row
        return rows
