"""The models that tests run, the marker of the tests that run one, and where temporary files are."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Every test that runs a real model gets it from one of these, directly or through other fixtures.
MODELS = frozenset(
    {
        "demo_model",
        "tiny_model",
        "wide_model",
        "tiny_embedding_model",
        "tiny_bert",
        "tiny_reranker",
        "tiny_xlm_reranker",
        "tool_models",
        "smollm2",
        "standard_model",
        "minilm",
    }
)

_MEMORY = Path("/dev/shm")
_MEMORY_BYTES = 2 * 1024**3


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs a model as ``model``."""
    for item in items:
        if MODELS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("model")


def pytest_collection_finish() -> None:
    """The garbage collector rests while tests are collected, and never looks at what stays to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure() -> None:
    """What makes tests quick, and independent of how busy the machine is."""
    gc.disable()
    # Hundreds of databases would wait for a disk at every write.
    if _memory_has_room():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    # The programs that tests start hundreds of times are compiled once, even where Python is told to keep nothing: that
    # is most of their time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # structlog's own choice, where rich is installed, draws a traceback with all variables: a second of work.
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
        ]
    )
    # How long an example takes says how busy the machine is.
    settings.register_profile("hearth", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("hearth")


def _memory_has_room() -> bool:
    try:
        disk = os.statvfs(_MEMORY)
    except OSError:
        return False
    # In containers it often has 64 MiB, and runs no programs.
    return disk.f_bavail * disk.f_frsize >= _MEMORY_BYTES and not disk.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session")
def demo_model() -> str:
    """Name of the built-in model."""
    return "hearth-demo"


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """SmolLM2-135M-Instruct: real weights of 98 MB, downloaded once (``models/weights.py``)."""
    return _weights("smollm2")


@pytest.fixture(scope="session")
def standard_model() -> Path:
    """The model of `make run`: SmolLM2 with its adapter, made once (``models/weights.py``)."""
    return _weights("standard")


@pytest.fixture(scope="session")
def minilm() -> Path:
    """all-MiniLM-L6-v2: real weights of 46 MB, downloaded and converted once (``models/weights.py``)."""
    return _weights("minilm")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Gemma 3 GGUF of half a megabyte with random weights and a tokenizer trained on this project's text."""
    return _random("random_gemma.py", tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="session")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Gemma 3 GGUF of 50 MB with random weights: a step of 2,048 tokens takes well over 100 ms."""
    return _random("random_gemma.py", tmp_path_factory.mktemp("models") / "wide.gguf", "--shape", "wide")


@pytest.fixture(scope="session")
def tiny_embedding_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An EmbeddingGemma GGUF of half a megabyte with random weights; its vectors have 64 dimensions."""
    return _random("random_embedding.py", tmp_path_factory.mktemp("models") / "tiny-embedding.gguf")


@pytest.fixture(scope="session")
def tiny_reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT cross encoder of 0.1 megabytes with random weights, which reads 512 tokens."""
    return _random("random_bert.py", tmp_path_factory.mktemp("models") / "tiny-reranker.gguf")


@pytest.fixture(scope="session")
def tiny_xlm_reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``tiny_reranker``, with the kind of vocabulary that XLM-RoBERTa has."""
    return _random("random_bert.py", tmp_path_factory.mktemp("models") / "tiny-xlm.gguf", "--pieces")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT sentence encoder of 0.1 megabytes with random weights, whose vector is that of the first token."""
    return _random("random_bert.py", tmp_path_factory.mktemp("models") / "tiny-bert.gguf", "--pooling", "cls")


@pytest.fixture(scope="session")
def tool_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tiny random models whose chat templates have tools, by the form in which they write calls."""
    folder = tmp_path_factory.mktemp("tool-models")
    # Few tokens, so that chance hits one of the few control tokens now and then.
    return {
        chat: _random("random_gemma.py", folder / f"{chat}.gguf", "--chat", chat, "--vocabulary-size", "512")
        for chat in ("hermes", "gemma", "tagged")
    }


def _weights(name: str) -> Path:
    command = [sys.executable, str(ROOT / "models" / "weights.py"), name]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def _random(script: str, target: Path, *flags: str) -> Path:
    command = [sys.executable, str(ROOT / "models" / script), str(target), *flags]
    subprocess.run(command, check=True, capture_output=True)
    return target
