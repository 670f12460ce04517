"""How many threads are fastest for a model on this machine, as its host measured: one small file a model."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

import msgspec
import structlog
from msgspec import Struct

from gateway.errors import ConfigurationError
from gateway.private import make_private

log = structlog.get_logger(__name__)

_BUSY = 0.5  # of the cores
_BUSY_SECONDS = 3600.0

File = tuple[str, int, int]  # path, mtime in ns, size


class ThreadPlan(Struct, frozen=True, kw_only=True):
    """Threads by size of batch in tokens, and the speeds that made the plan, in tokens a second."""

    model: str
    file: File
    cores: int  # that could be used
    measured_at: float  # Unix time
    load: float  # of the machine, then: processes that wanted a core
    plan: dict[int, int]
    speeds: dict[int, dict[int, float]]


_PLAN = msgspec.json.Decoder(
    ThreadPlan
)  # made here: threads use it (docs/decisions/0010-first-conversion.md)


class ThreadPlans:
    """The plans in a folder.

    A plan holds for one state of the model's file and one number of cores; one that was measured while the machine
    was busy with other things holds for an hour.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, file: File, cores: int) -> ThreadPlan | None:
        """The plan for a model's file, None when there is none that holds."""
        plan = _read(self._path(file))
        if plan is None or (plan.file, plan.cores) != (file, cores):
            return None
        busy = plan.load > cores * _BUSY
        return None if busy and time.time() - plan.measured_at > _BUSY_SECONDS else plan

    def put(self, plan: ThreadPlan) -> None:
        """Keep a plan; what cannot be written is measured again at the next start."""
        try:
            make_private(self._folder)
            target = self._path(plan.file)
            with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as partial:
                partial.write(msgspec.json.encode(plan))
            os.replace(partial.name, target)  # noqa: PTH105 - the name is a string
        except (OSError, ConfigurationError) as error:
            log.warning("thread_plan_not_kept", problem=str(error))

    def all(self) -> list[ThreadPlan]:
        """Every plan, by model."""
        plans = [_read(path) for path in self._folder.glob("*.json")]
        return sorted((plan for plan in plans if plan is not None), key=lambda plan: plan.model)

    def _path(self, file: File) -> Path:
        return self._folder / f"{hashlib.blake2b(file[0].encode(), digest_size=12).hexdigest()}.json"


def _read(path: Path) -> ThreadPlan | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return _PLAN.decode(path.read_bytes())
    return None
