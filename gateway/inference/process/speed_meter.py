"""Measures the speed of the loaded model on its requests, and stores it for the next start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gateway.inference.process.launch import LaunchPlan
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.inference.speed import Learned, Speed
from model_host.protocol import Finished, Lane


class SpeedMeter:
    """Stores measurements in ``kept``; ``threads`` is the setting of that name."""

    def __init__(self, kept: ThreadPlans | None, threads: int) -> None:
        self.foreground = 0  # generations in progress, background ones aside
        self._begun = 0
        self._kept = kept
        self._threads = threads
        self._plan: LaunchPlan | None = None
        self._learned = Learned(threads)
        self._stored = self._learned

    @contextmanager
    def running(self, lane: Lane) -> Iterator[Callable[[], bool]]:
        """Count a generation. The yielded function returns whether it has run alone so far, and so measures speed.

        Background generations yield to others, so they neither count nor measure.
        """
        if lane == "background":
            yield lambda: False
            return
        alone = self.foreground == 0
        self._begun += 1
        number = self._begun
        self.foreground += 1
        try:
            yield lambda: alone and self._begun == number
        finally:
            self.foreground -= 1

    def speed(self, plan: LaunchPlan) -> Speed | None:
        """Return the speed of the host that ``plan`` started, None if unknown."""
        self._load(plan)
        return self._learned.speed

    async def take(self, plan: LaunchPlan, end: Finished) -> None:
        """Add the measurement of a generation that ran alone."""
        self._load(plan)
        self._learned = self._learned.add(end)
        if self._kept is not None and self._learned.differs(self._stored):
            self._stored = self._learned
            await asyncio.to_thread(self._kept.update, plan.model.name, plan.file, learned=self._learned)

    def _load(self, plan: LaunchPlan) -> None:
        """After a start, load the stored speed of this model, or what its load has just measured."""
        if plan is self._plan:
            return
        same_file = self._plan is not None and plan.file == self._plan.file
        self._plan = plan
        if same_file and self._learned.speed is not None:
            return
        known = self._kept.get(plan.file) if self._kept is not None else None
        self._learned = Learned(self._threads) if known is None else known.known(self._threads)
        self._stored = self._learned
