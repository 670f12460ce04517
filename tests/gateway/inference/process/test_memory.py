"""Memory limits of the machine and of control groups, and what is said when a model does not fit."""

from __future__ import annotations

from pathlib import Path

import msgspec
import psutil
import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.inference.process.memory import Memory, fit_memory, read_memory
from gateway.models.catalog import ResolvedModel

MIB = 2**20


def read_within(folder: Path, groups: str) -> Memory:
    """What is read by a process in these control groups, which are mounted in the folder."""
    (folder / "cgroup").write_text(groups)
    return read_memory(proc=folder / "cgroup", mount=folder)


def write_group(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def model_of(ram_bytes: int) -> ResolvedModel:
    return ResolvedModel(name="big", path=Path("/none"), size_bytes=1, ram_bytes=ram_bytes, context=8)


def test_without_control_groups_the_machine_decides(tmp_path: Path) -> None:
    memory = read_memory(proc=tmp_path / "none", mount=tmp_path)
    assert memory.source == "this machine"
    assert memory.total == psutil.virtual_memory().total
    assert 0 < memory.available <= memory.total


def test_version_2_the_tightest_group_above_counts_without_page_cache(tmp_path: Path) -> None:
    write_group(tmp_path / "box/app", memory__max="max", memory__current=5 * MIB)
    write_group(
        tmp_path / "box",
        memory__max=64 * MIB,
        memory__current=40 * MIB,
        memory__stat=f"anon 1\ninactive_file {10 * MIB}\nfile 3",
    )
    memory = read_within(tmp_path, "0::/box/app\n")
    assert memory == Memory(34 * MIB, 64 * MIB, str(tmp_path / "box"))


def test_version_1_and_a_path_that_is_not_visible_in_the_container(tmp_path: Path) -> None:
    write_group(
        tmp_path / "memory",
        memory__limit_in_bytes=32 * MIB,
        memory__usage_in_bytes=30 * MIB,
        memory__stat=f"total_inactive_file {MIB}",
    )
    memory = read_within(tmp_path, "4:cpu,cpuacct:/x\n9:memory:/docker/0123/../x\n0::/\n")
    assert memory == Memory(3 * MIB, 32 * MIB, str(tmp_path / "memory"))


def test_version_1_without_limit_is_no_limit(tmp_path: Path) -> None:
    write_group(tmp_path / "memory", memory__limit_in_bytes=2**63 - 4096, memory__usage_in_bytes=MIB)
    assert read_within(tmp_path, "9:memory:/\n").source == "this machine"


def test_a_model_that_does_not_fit_is_refused_with_numbers_and_remedy() -> None:
    memory = Memory(512 * MIB, 4096 * MIB, "/sys/fs/cgroup/box")
    fit_memory(model_of(256 * MIB), 256 * MIB, memory)
    with pytest.raises(ModelUnavailableError) as caught:
        fit_memory(model_of(1024 * MIB), 256 * MIB, memory)
    error = caught.value
    for part in ("1.00 GiB", "0.25 GiB", "0.50 GiB of 4.00 GiB", "/sys/fs/cgroup/box", "hearth doctor"):
        assert part in error.message
    assert error.code == "out_of_memory"
    assert error.retry_after == 30
    assert error.details["needed_bytes"] == 1280 * MIB


def test_a_model_that_can_never_fit_is_not_worth_a_retry() -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        fit_memory(model_of(8192 * MIB), 0, Memory(512 * MIB, 4096 * MIB, "this machine"))
    assert caught.value.retry_after is None


def test_a_cache_shrinks_to_the_memory_there_is() -> None:
    model = ResolvedModel(
        name="m", path=Path("/none"), size_bytes=1, ram_bytes=1000 * MIB, context=8192, cell_bytes=MIB // 16
    )
    memory = Memory(900 * MIB, 4096 * MIB, "/box")
    fitting = fit_memory(model, 100 * MIB, memory)
    assert fitting.context == 4864, "8192 less the 200 MiB that are missing, in steps of 256"
    assert fitting.ram_bytes == 1000 * MIB - (8192 - 4864) * MIB // 16
    assert "8192 were planned, but only 0.88 GiB of memory is free (limit: /box)" in fitting.cache_reason
    assert fit_memory(model, 100 * MIB, Memory(1100 * MIB, 4096 * MIB, "/box")) is model
    given = msgspec.structs.replace(model, context_given=True)
    for refused, free in (
        (given, 900),
        (model, 600),
    ):  # what was asked for is kept to; too few cells help nobody
        with pytest.raises(ModelUnavailableError):
            fit_memory(refused, 100 * MIB, Memory(free * MIB, 4096 * MIB, "/box"))
