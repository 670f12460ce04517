"""Measured thread plans and speeds of models on this machine, one small file per model."""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from gateway.base.cores import usable_cores
from gateway.base.errors import ConfigurationError
from gateway.base.private import make_private
from gateway.inference.speed import Learned

log = structlog.get_logger(__name__)

File = tuple[str, int, int]  # path, mtime in ns, size


class ThreadPlan(Struct, frozen=True, kw_only=True):
    """Threads by batch size in tokens, and the measured speeds in tokens per second.

    Both are empty if the number of threads is fixed or could not be measured. ``learned`` is updated by requests.
    """

    model: str
    file: File
    cores: int  # usable ones
    measured_at: float  # Unix time
    plan: dict[int, int]
    speeds: dict[int, dict[int, float]]
    learned: Learned | None = None

    def known(self, threads: int) -> Learned:
        """Return the known speed with the setting ``threads`` (0: the plan)."""
        if self.learned is not None and self.learned.threads == threads:
            return self.learned
        return Learned(threads) if threads else Learned.first(self.speeds)


# Created at import, because threads use it (docs/decisions/0010-first-conversion.md).
_PLAN = msgspec.json.Decoder(ThreadPlan)


class ThreadPlans:
    """The plans in a folder. A plan is valid for one version of the model's file and the present number of cores."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, file: File) -> ThreadPlan | None:
        plan = _read(self._path(file))
        return plan if plan is not None and (plan.file, plan.cores) == (file, usable_cores()) else None

    def update(self, model: str, file: File, **changes: Any) -> None:
        """Change fields of the valid plan for a model's file, or of a new one."""
        new = ThreadPlan(
            model=model, file=file, cores=usable_cores(), measured_at=time.time(), plan={}, speeds={}
        )
        self.put(msgspec.structs.replace(self.get(file) or new, **changes))

    def put(self, plan: ThreadPlan) -> None:
        """Store a plan. If it cannot be written, the next load measures again."""
        try:
            make_private(self._folder)
            partial = self._path(plan.file).with_suffix(".partial")
            partial.write_bytes(msgspec.json.encode(plan))
            partial.replace(self._path(plan.file))
        except (OSError, ConfigurationError) as error:
            log.warning("thread_plan_not_kept", problem=str(error))

    def all(self) -> list[ThreadPlan]:
        plans = [_read(path) for path in self._folder.glob("*.json")]
        return sorted((plan for plan in plans if plan is not None), key=lambda plan: plan.model)

    def _path(self, file: File) -> Path:
        return self._folder / f"{hashlib.blake2b(file[0].encode(), digest_size=12).hexdigest()}.json"


def _read(path: Path) -> ThreadPlan | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return _PLAN.decode(path.read_bytes())
    return None
