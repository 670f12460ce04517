"""The engine with as many threads for each batch as have been fastest for batches of its size."""

from __future__ import annotations

import time
from collections.abc import Sequence

import llama_cpp
from msgspec.structs import replace

from model_host import protocol
from model_host.engine.contention import CpuContention
from model_host.engine.engine import DecodeResult, Engine, Span
from model_host.engine.thread_speeds import Speeds, measure
from model_host.engine.threads import ThreadTuner

_PAUSE_SECONDS = 0.02  # after which others may have come or gone


class TunedEngine(Engine):
    """Call :meth:`tune` before the first batch of somebody's; without it the number of threads never changes."""

    _tuner: ThreadTuner | None = None
    _measured: Speeds = {}
    _ended = 0.0  # when the last batch was done

    def tune(self, speeds: Speeds, limit: int) -> None:
        """Begin with what was fastest; without ``speeds`` they are measured now, on batches up to ``limit``."""
        if self.threads == 1:
            return
        if not speeds:
            self._measured = measure(self._try, self.threads, limit, time.perf_counter)
            self.trim(0, 0)
        self._tuner = ThreadTuner(self.threads, speeds or self._measured, CpuContention())

    def decode(self, spans: Sequence[Span]) -> tuple[DecodeResult, dict[int, int]]:
        """See :meth:`Engine.decode`."""
        if self._tuner is None:
            return super().decode(spans)
        tokens = sum(len(span.tokens) for span in spans)
        if time.perf_counter() - self._ended > _PAUSE_SECONDS:
            self._tuner.resume()
        self._use(self._tuner.choose(tokens))
        begun = time.perf_counter()
        result, rows = super().decode(spans)
        self._ended = time.perf_counter()
        if result == "done":
            self._tuner.note(tokens, self._ended - begun)
        return result, rows

    def ready(self, *, pid: int, n_parallel: int, tools: bool) -> protocol.Ready:
        """See :meth:`Engine.ready`."""
        ready = super().ready(pid=pid, n_parallel=n_parallel, tools=tools)
        return replace(ready, thread_plan=self.thread_plan(), thread_speeds=self._measured)

    def thread_plan(self) -> dict[int, int]:
        """Threads by size of batch, as things stand; empty when the number is fixed."""
        return self._tuner.chosen() if self._tuner is not None else {}

    def _use(self, threads: int) -> None:
        llama_cpp.llama_set_n_threads(self._context, threads, threads)

    def _try(self, tokens: int, threads: int) -> None:
        """Compute a batch that nobody asked for."""
        self.trim(0, 0)
        self._use(threads)
        super().decode([Span(0, 0, [0] * tokens, 1)])
