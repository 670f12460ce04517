"""Fixtures that several folders share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Gemma 3 GGUF of half a megabyte with random weights and a tokenizer trained on this project's text."""
    target = tmp_path_factory.mktemp("models") / "tiny.gguf"
    script = ROOT / "models" / "random_gemma.py"
    subprocess.run([sys.executable, str(script), str(target)], check=True, capture_output=True)
    return target
