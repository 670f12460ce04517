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


@pytest.fixture(scope="session")
def tiny_embedding_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An EmbeddingGemma GGUF of half a megabyte with random weights; its vectors have 64 dimensions."""
    target = tmp_path_factory.mktemp("models") / "tiny-embedding.gguf"
    script = ROOT / "models" / "random_embedding.py"
    subprocess.run([sys.executable, str(script), str(target)], check=True, capture_output=True)
    return target


@pytest.fixture(scope="session")
def tool_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny random models whose chat templates have tools, by the form in which they write calls."""
    folder = tmp_path_factory.mktemp("tool-models")
    made = {chat: folder / f"{chat}.gguf" for chat in ("hermes", "gemma")}
    script = ROOT / "models" / "random_gemma.py"
    for chat, target in made.items():
        # Few tokens, so that chance hits one of the few control tokens now and then.
        command = [sys.executable, str(script), str(target), "--chat", chat, "--vocabulary-size", "512"]
        subprocess.run(command, check=True, capture_output=True)
    return made
