"""`hearth doctor`: what this machine has, and which models of the catalog it can run."""

from __future__ import annotations

import os
import platform
import shutil
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
import psutil
from msgspec import Struct

from gateway.base.cores import usable_cores
from gateway.base.errors import ConfigurationError
from gateway.base.private import exposed
from gateway.cli.common.options import LocalOptions, json_option, with_local
from gateway.cli.common.surroundings import EXIT_CONFIGURATION, EXIT_FAILED
from gateway.cli.common.text import say, size_text, table
from gateway.cli.doctor.connections import check_question, check_store, check_upstreams, check_wiki
from gateway.config.settings import Settings
from gateway.inference.process.memory import Memory, read_memory
from gateway.inference.process.snapshots import FOLDER, SnapshotSizes
from gateway.inference.process.thread_plans import ThreadPlan, ThreadPlans
from gateway.models.catalog import Catalog, ModelRow, models_beside
from gateway.models.gguf_header import estimate_ram
from gateway.server.consistency import problems

_PACKAGES = ("llama-cpp-python", "apsw", "sqlite-vec", "starlette", "uvicorn", "huggingface-hub")


class MachineReport(Struct, frozen=True, kw_only=True):
    """The resources for a model. ``memory_source`` names what limits memory."""

    cores: int  # available to this process
    cores_total: int
    memory_total: int
    memory_available: int
    memory_source: str
    disk_free: int  # on the data directory's disk
    snapshots: SnapshotSizes
    versions: dict[str, str]


class Fit(Struct, frozen=True, kw_only=True):
    """Whether a model can run here. ``verdict`` is yes, tight (other programs must end first) or no."""

    name: str
    verdict: str
    why: str
    installed: bool


@click.command()
@json_option
@click.option(
    "--systemd",
    is_flag=True,
    help="Check the installed systemd service instead; exit with 1 if it is broken.",
)
@with_local
def doctor(as_json: bool, systemd: bool, local: LocalOptions) -> int:
    """Check which models this machine can run, and whether the settings and the wiki work.

    Exits with 78 if a server with these settings would not start.
    """
    if systemd:
        return _service(as_json)
    settings = local.settings
    machine = examine(settings.data_dir)
    fits = [fit(row, machine, settings) for row in Catalog.load().rows]
    wiki = check_wiki(settings.wiki)
    store = check_store(settings)
    plans = ThreadPlans(settings.thread_plan_dir).all()
    question = check_question(settings, [each.name for each in fits if each.verdict != "no"])
    upstreams = check_upstreams(settings)
    wrong = problems(settings)
    if not os.access(_existing(settings.data_dir), os.W_OK | os.X_OK):
        wrong.append(
            f"data_dir is {settings.data_dir}, where this account cannot write. Choose another, or mend owner and mode."
        )
    startable = not wrong and (store is None or store.configured)
    status = 0 if startable else EXIT_CONFIGURATION
    if as_json:
        say(
            {
                "machine": machine,
                "data_dir": str(settings.data_dir),
                "models": fits,
                "problems": wrong,
                "data_dir_problem": exposed(settings.data_dir),
                "wiki": wiki,
                "store": store,
                "threads": plans,
                "question": question,
                "upstream": upstreams,
            }
        )
        return status
    say(_machine_text(machine, settings))
    if remedy := exposed(settings.data_dir):
        say(f"warning: {remedy}")
    for problem in wrong or ["ok"]:
        say(f"settings: {problem}")
    if question is not None:
        for line in filter(None, (question.text, question.biggest_text)):
            say(f"speed: {line}")
    for each in upstreams:
        say(f"upstream {each.url}: {'' if each.verdict == 'yes' else 'not usable: '}{each.found}")
    if store is not None:
        say(f"store: {'' if store.verdict == 'yes' else 'not usable: '}{store.found}")
    say(f"wiki: {'' if wiki.verdict == 'yes' else 'not usable: '}{wiki.found}")
    say()
    head = ["MODEL", "FITS", "HERE", "WHY"]
    say(
        table([head, *([f.name, f.verdict, "yes" if f.installed else "no", f.why] for f in fits)], prose=True)
    )
    if rows := [row for plan in plans for row in _threads(plan)]:
        say()
        head = ["MODEL", "BATCH", "THREADS", "TOKENS PER SECOND, MEASURED AT THE FIRST LOAD"]
        say(table([head, *rows]))
    return status


def _service(as_json: bool) -> int:
    """Print the checks of the installed service and return the exit status."""
    # Late, because most calls do not need these imports.
    from gateway.cli.doctor.services import check_installation

    checks = check_installation()
    if as_json:
        say({"checks": checks})
    else:
        say(table([["CHECK", "STATE", "WHY"], *([c.name, c.verdict, c.why] for c in checks)]))
    return EXIT_FAILED if any(check.verdict == "fail" for check in checks) else 0


def examine(data_dir: Path) -> MachineReport:
    """Examine this machine without loading a model library."""
    memory: Memory = read_memory()
    return MachineReport(
        cores=usable_cores(),
        cores_total=psutil.cpu_count() or 1,
        memory_total=memory.total,
        memory_available=memory.available,
        memory_source=memory.source,
        disk_free=shutil.disk_usage(_existing(data_dir)).free,
        snapshots=SnapshotSizes.of(data_dir / FOLDER),
        versions={"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES},
    )


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder


def fit(row: ModelRow, machine: MachineReport, settings: Settings) -> Fit:
    """Judge one model by memory, and by disk if it is not installed."""
    path = row.path(settings.data_dir)
    installed = path.is_file()
    verdict, why = _judge(row, machine, settings, path if installed else None)
    return Fit(name=row.name, verdict=verdict, why=why, installed=installed)


def _judge(row: ModelRow, machine: MachineReport, settings: Settings, path: Path | None) -> tuple[str, str]:
    if path is None and row.repo is None:
        return "no", "it is not part of this installation"
    ram = row.ram_bytes
    if ram is None:
        assert path is not None, "a catalog row of the hub says how much memory it needs"
        ram = estimate_ram(path, path.stat().st_size, row.context)
    needed = ram + settings.model.memory_headroom_bytes
    spare = f"{size_text(settings.model.memory_headroom_bytes)} to spare"
    wants = f"needs {size_text(ram)} of memory and {spare}"
    if row.kind == "chat" and (beside := _ram_beside(settings)):
        needed += beside
        wants = f"needs {size_text(ram + beside)} of memory together with the other configured models, and {spare}"
    if needed > machine.memory_total:
        return "no", f"{wants}; the limit is {size_text(machine.memory_total)} ({machine.memory_source})"
    if path is None and row.size_bytes is not None and row.size_bytes > machine.disk_free:
        return (
            "no",
            f"needs {size_text(row.size_bytes)} of disk space; {size_text(machine.disk_free)} is free",
        )
    if needed > machine.memory_available:
        return (
            "tight",
            f"{wants}; only {size_text(machine.memory_available)} is free now: close other programs",
        )
    return "yes", f"{wants}; {size_text(machine.memory_available)} is free"


def _ram_beside(settings: Settings) -> int:
    """Return the memory that the configured embedding model and reranker need, as far as they are installed."""
    needed = 0
    for resolve in models_beside(settings):
        with suppress(ConfigurationError):
            needed += resolve(settings).ram_bytes
    return needed


def _machine_text(machine: MachineReport, settings: Settings) -> str:
    saved = machine.snapshots
    rows: list[list[str]] = [
        ["cores", f"{machine.cores} usable of {machine.cores_total}"],
        [
            "memory",
            f"{size_text(machine.memory_available)} free of {size_text(machine.memory_total)} "
            f"(limit: {machine.memory_source})",
        ],
        ["disk", f"{size_text(machine.disk_free)} free at {settings.data_dir}"],
        [
            "snapshots",
            f"{size_text(saved.own)} of {size_text(settings.model.snapshot_bytes)} for conversations, "
            f"{size_text(saved.shared)} of {size_text(settings.model.shared_snapshot_bytes)} for shared text",
        ],
        *([name, number] for name, number in machine.versions.items()),
    ]
    return table(rows)


def _threads(plan: ThreadPlan) -> list[list[str]]:
    """Make a row per measured batch size."""
    rows = []
    for size, speeds in sorted(plan.speeds.items()):
        shown = ", ".join(f"{speed:,.0f} with {threads}" for threads, speed in sorted(speeds.items()))
        rows.append([plan.model, str(size), f"{plan.plan.get(size, '?')} of {plan.cores}", shown])
    return rows


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
