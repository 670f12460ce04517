"""The header that the installer puts before llama.cpp's files; docs/decisions/0009-amx-tiles.md tells why."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Fills a tile configuration on the stack as llama.cpp does, loads it, and asks the processor what it has taken.
PROGRAM = """
#include <cstdint>
#include <cstring>
#include <immintrin.h>
struct alignas(64) Tiles { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; };
__attribute__((noinline)) static void dirty() { volatile unsigned char c[4096]; for (auto & x : c) x = 0xa5; }
__attribute__((noinline)) static void load() {
    Tiles t = {};
    t.palette = 1;
    t.rows[0] = 8;  t.bytes[0] = 64;
    t.rows[1] = 16; t.bytes[1] = 32;
    t.rows[7] = 16; t.bytes[7] = 64;
    _tile_loadconfig(&t);
}
int main() {
    Tiles had;
    dirty();
    load();
    _tile_storeconfig(&had);
    return !(had.rows[0] == 8 && had.bytes[0] == 64 && had.rows[1] == 16 && had.bytes[1] == 32 && had.rows[7] == 16);
}
"""


def build_options(monkeypatch: pytest.MonkeyPatch, root: Path) -> dict[str, str]:
    """What the installer of a checkout in `root` gives to pip's environment."""
    spec = importlib.util.spec_from_file_location("hearth_install", root / "deploy" / "install.py")
    assert spec and spec.loader
    install: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    given: list[dict[str, str]] = []
    monkeypatch.setattr(install, "output_of", lambda command, environment: given.append(environment) or [])
    monkeypatch.setattr(install, "LOG", root / "install.log")
    install.install_one(Path("python"), ROOT / "requirements.lock", install.COMPILED)
    [options] = given
    return options


def test_llama_cpp_is_built_with_a_whole_tile_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if platform.machine() != "x86_64" or shutil.which("g++") is None:
        pytest.skip("needs x86-64 and the Debian package g++")
    root = tmp_path / "a path with blanks"
    (root / "deploy").mkdir(parents=True)
    for name in ("install.py", "amx_tiles.h"):
        shutil.copy(ROOT / "deploy" / name, root / "deploy")
    monkeypatch.setenv("CXXFLAGS", "-Wall")
    flags = build_options(monkeypatch, root)["CXXFLAGS"]
    assert flags.startswith("-Wall ")
    source, program = tmp_path / "tiles.cpp", tmp_path / "tiles"
    source.write_text(PROGRAM)
    command = f'g++ {flags} -O3 -mamx-tile "$SOURCE" -o "$PROGRAM"'  # as a build tool's shell reads them
    environment = {**os.environ, "SOURCE": str(source), "PROGRAM": str(program)}
    subprocess.run(["sh", "-c", command], check=True, env=environment)
    if "amx_tile" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AMX: the program was compiled, not run")
    assert subprocess.run([program], check=False).returncode == 0
