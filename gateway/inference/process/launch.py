"""The command that starts a host for the configured model, decided at each start."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import structlog

from gateway.base.cores import usable_cores
from gateway.base.errors import ModelUnavailableError
from gateway.config.settings import ModelSettings
from gateway.inference.process.failures import fresh
from gateway.inference.process.memory import fit_memory
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.models.catalog import ResolvedModel
from gateway.models.gguf_header import GGUF_MAGIC
from model_host import protocol

log = structlog.get_logger(__name__)

# The environment that the child inherits: paths, locale, libraries, use of memory and cores.
_PASSED = frozenset(
    {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "GLIBC_TUNABLES"}
)
_PASSED_PREFIXES = ("OMP_", "GOMP_", "HEARTH_HOST_")

# A model file that could not be loaded is not tried again for this long, unless it changes.
REMEMBER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One start of a host."""

    command: tuple[str, ...]
    environment: dict[str, str]
    model: ResolvedModel
    file: tuple[str, int, int]  # path, mtime in ns, size


@dataclass(eq=False)
class Launcher:
    """Makes launch plans and remembers which file could not be loaded.

    ``beside`` returns the models that other hosts have loaded.
    """

    model: ResolvedModel | Callable[[], ResolvedModel]
    settings: ModelSettings
    command: Sequence[str] | None = None
    _: KW_ONLY
    snapshots: Path | None = None
    beside: Callable[[], Sequence[ResolvedModel]] = tuple
    thread_plans: ThreadPlans | None = None
    clock: Callable[[], float] = time.monotonic
    _failed: tuple[list[object], float, ModelUnavailableError] | None = field(default=None, init=False)

    def plan(self) -> LaunchPlan:
        """Resolve the model and check file and memory. Blocks on the file system.

        Raises HearthError: no file, not a model, too little memory, or a file that just failed to load.
        """
        model, file = self._resolved()
        if self._failed is not None and self._failed[0] == _files(model) and self.clock() < self._failed[1]:
            raise fresh(self._failed[2])
        fitting = fit_memory(model, self.settings.memory_headroom_bytes, beside=self.beside())
        if fitting.context < model.context:
            log.warning("kv_cache_reduced", cells=fitting.context, why=fitting.cache_reason)
        known = self.thread_plans.get(file) if self.thread_plans is not None else None
        threads = known.plan if known is not None else None
        command = self.command or host_command(fitting, self.settings, self.snapshots, threads)
        return LaunchPlan(tuple(command), child_environment(os.environ), fitting, file)

    def check(self, *, in_memory: bool = False) -> None:
        """Raise the error that a start would fail with, as far as known without one. Blocks on the file system.

        Raises as :meth:`plan`, and the error of the last load of the same file, however long ago. A model that is
        ``in_memory`` needs no free memory.
        """
        model, _ = self._resolved()
        # Memory may have been freed, and a service that is not ready gets no requests that would try again.
        failed = self._failed
        if failed is not None and failed[0] == _files(model) and failed[2].code != "out_of_memory":
            raise fresh(failed[2])
        if not in_memory:
            fit_memory(model, self.settings.memory_headroom_bytes, beside=self.beside())

    def fits_in_full(self) -> bool:
        """Whether memory holds the model with all its cells beside what is loaded. Blocks on the file system.

        Raises ModelUnavailableError if it never can, or if the file is no model.
        """
        model, _ = self._resolved()
        try:
            fitting = fit_memory(model, self.settings.memory_headroom_bytes, beside=self.beside())
        except ModelUnavailableError as error:
            if error.retry_after is None:
                raise
            return False
        return fitting.context == model.context

    def _resolved(self) -> tuple[ResolvedModel, tuple[str, int, int]]:
        model = self.model() if callable(self.model) else self.model
        return model, _identity(model)

    def remember(self, plan: LaunchPlan, error: ModelUnavailableError) -> None:
        """Remember that the host could not load the files of ``plan``."""
        self._failed = (_files(plan.model), self.clock() + REMEMBER_SECONDS, error)

    def loaded(self, plan: LaunchPlan, ready: protocol.Ready) -> None:
        """Store the numbers of threads that the ready host of ``plan`` has measured, if any, for the next one."""
        self._failed = None
        if self.thread_plans is not None and ready.thread_speeds:
            measured = {"plan": ready.thread_plan, "speeds": ready.thread_speeds, "measured_at": time.time()}
            self.thread_plans.update(plan.model.name, plan.file, **measured)


def host_command(
    model: ResolvedModel,
    settings: ModelSettings,
    snapshots: Path | None = None,
    thread_plan: Mapping[int, int] | None = None,
) -> tuple[str, ...]:
    """The command line of a model host; ``snapshots`` is the folder for KV sequences.

    ``thread_plan`` has the fastest number of threads by batch size; without it the host measures them, unless
    ``settings`` fix the number.
    """
    options: dict[str, object] = {
        "--model": model.path.absolute(),
        "--context": model.context,
        "--parallel": settings.parallel,
        "--chunk": settings.chunk,
        "--drafts": settings.drafts,
        "--threads": settings.threads,
        "--cores": usable_cores(),
        "--max-waiting": settings.max_waiting,
        "--parent": os.getpid(),  # the host ends when this process dies
    }
    if thread_plan and not settings.threads:
        options["--thread-plan"] = ",".join(f"{size}:{threads}" for size, threads in thread_plan.items())
    if snapshots is not None and (settings.snapshot_bytes or settings.shared_snapshot_bytes):
        options["--snapshots"] = snapshots
        options["--snapshot-bytes"] = settings.snapshot_bytes
        options["--shared-snapshot-bytes"] = settings.shared_snapshot_bytes
        options["--snapshot-after"] = settings.snapshot_after_seconds
    flags = [str(word) for option in options.items() for word in option]
    kind = [] if model.kind == "chat" else [f"--{model.kind}"]
    adapters = [word for name, path in model.adapters.items() for word in ("--adapter", f"{name}={path}")]
    return (sys.executable, "-m", "model_host", *flags, *kind, *adapters)


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of ``environment`` that a child inherits, and the path of the ``model_host`` package.

    A host needs no secrets and gets none, so that its core dumps and logs contain none.
    """
    passed = {
        name: value
        for name, value in environment.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }
    # `-m` would search the current directory first, which may belong to another user.
    passed["PYTHONSAFEPATH"] = "1"
    passed["PYTHONPATH"] = str(Path(protocol.__file__).resolve().parents[2])
    return passed


def _files(model: ResolvedModel) -> list[object]:
    """Changes whenever the file of the model or of an adapter does."""
    found: list[object] = []
    for path in (model.path, *model.adapters.values()):
        try:
            status = path.stat()
        except OSError:
            status = None
        found += [path, status and (status.st_mtime_ns, status.st_size)]
    return found


def _identity(model: ResolvedModel) -> tuple[str, int, int]:
    """Raises ModelUnavailableError for a file that cannot be read or is not GGUF."""
    try:
        status = model.path.stat()
        with model.path.open("rb") as file:
            magic = file.read(len(GGUF_MAGIC))
    except OSError as error:
        raise ModelUnavailableError(
            f"the model file {model.path} cannot be read ({error.strerror}); fetch it with "
            f"`hearth pull {model.name}`, or correct `{model.name_setting}`",
            code="model_missing",
        ) from None
    if magic != GGUF_MAGIC:
        raise ModelUnavailableError(
            f"{model.path} is not a GGUF file; correct `{model.name_setting}`, or fetch the model with `hearth pull`",
            code="model_corrupt",
        )
    return str(model.path), status.st_mtime_ns, status.st_size
