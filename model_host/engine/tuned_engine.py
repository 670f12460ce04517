"""The engine with the fastest number of threads for each batch size, and at most half of all under CPU contention."""

from __future__ import annotations

import time
from collections.abc import Sequence

import llama_cpp
from msgspec.structs import replace

from model_host import protocol
from model_host.batching.batches import Span
from model_host.engine.cpu_contention import SHORTEST_SECONDS, CpuContention
from model_host.engine.engine import DecodeResult, Engine
from model_host.engine.threads import Plan, Speeds, fastest, measure, nearest


class TunedEngine(Engine):
    """Call :meth:`tune` before the first request; without it the number of threads never changes."""

    _plan: Plan = {}
    _measured: Speeds = {}

    def tune(self, plan: Plan, limit: int) -> None:
        """Follow ``plan``; if it is empty, measure one on batches of up to ``limit`` tokens.

        Nothing is measured under contention, where one batch may take seconds; the plan is then all threads.
        """
        if self.threads == 1:
            return
        contention = self._contention = CpuContention(self.threads)
        if not plan:
            time.sleep(SHORTEST_SECONDS)
            if not contention.look():
                speeds = measure(self._try, self.threads, limit, time.perf_counter)
                self.trim(0, 0)
                self._measured = {} if contention.look() else speeds
        self._plan = plan or fastest(self._measured) or {1: self.threads}
        contention.watch()

    def decode(self, spans: Sequence[Span]) -> tuple[DecodeResult, dict[int, int]]:
        if self._plan:
            self._use(self._threads_for(sum(len(span.tokens) for span in spans)))
        return super().decode(spans)

    def ready(self, *, pid: int, n_parallel: int, tools: bool) -> protocol.Ready:
        ready = super().ready(pid=pid, n_parallel=n_parallel, tools=tools)
        return replace(ready, thread_plan=self.thread_plan(), thread_speeds=self._measured)

    def thread_plan(self) -> Plan:
        """Threads by batch size, now; empty when the number is fixed."""
        return {size: self._threads_for(size) for size in sorted(self._plan)}

    def _threads_for(self, tokens: int) -> int:
        return min(self._contention.most_threads, nearest(self._plan, tokens))

    def _use(self, threads: int) -> None:
        llama_cpp.llama_set_n_threads(self._context, threads, threads)

    def _try(self, tokens: int, threads: int) -> None:
        """Decode a batch of dummy tokens."""
        self.trim(0, 0)
        self._use(threads)
        super().decode([Span(0, 0, [0] * tokens, 1)])
