"""Builds for any processor: which library loads the plug-ins, and how often."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from model_host.engine.load import _load_cpu_code

# Stands in for a llama.cpp built with plug-ins, which takes a quarter of an hour to make.
LIBRARY = r"""
#include <stddef.h>
#include <string.h>
static char from[4096];
static int loads;
size_t ggml_backend_dev_count(void) { return loads; }
void ggml_backend_load_all_from_path(const char *path) { strncpy(from, path, sizeof from - 1); loads++; }
const char *told_path(void) { return from; }
int told_loads(void) { return loads; }
"""


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (Debian package `gcc`)")
    (tmp_path / "library.c").write_text(LIBRARY)
    command = [compiler, "-shared", "-fPIC", "-o", str(tmp_path / "libllama.so"), str(tmp_path / "library.c")]
    subprocess.run(command, check=True)
    return tmp_path


def told(libraries: Path) -> tuple[bytes, int]:
    library = ctypes.CDLL(str(libraries / "libllama.so"))
    library.told_path.restype = ctypes.c_char_p
    return library.told_path(), library.told_loads()


def test_the_usual_build_is_left_alone(libraries: Path) -> None:
    (libraries / "libggml-cpu.so").touch()
    _load_cpu_code(libraries)
    assert told(libraries) == (b"", 0)


def test_plug_ins_are_loaded_once_and_from_their_own_folder(libraries: Path) -> None:
    for kind in ("x64", "haswell"):
        (libraries / f"libggml-cpu-{kind}.so").touch()
    _load_cpu_code(libraries)
    _load_cpu_code(libraries)
    assert told(libraries) == (str(libraries).encode(), 1)
