"""Fixtures: hosts that serve the tiny model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import llama_cpp
import pytest

from tests.model_host.driver import HostProcess

StartHost = Callable[..., HostProcess]


@pytest.fixture(scope="module")
def host(tiny_model: Path) -> Iterator[HostProcess]:
    """One host for a whole module; use fresh ids."""
    process = HostProcess(tiny_model)
    yield process
    assert process.stop() == 0


@pytest.fixture(scope="module")
def embedder(tiny_embedding_model: Path) -> Iterator[HostProcess]:
    """One embedding host for a whole module; use fresh ids."""
    process = HostProcess(tiny_embedding_model, "--embedding", "--context", "256", "--chunk", "64")
    yield process
    assert process.stop() == 0


@pytest.fixture
def start_host(tiny_model: Path) -> Iterator[StartHost]:
    """Start hosts for one test; those it leaves running are killed at its end."""
    started: list[HostProcess] = []

    def start(
        *flags: str, model: Path | None = None, wait_ready: bool = True, code: str | None = None
    ) -> HostProcess:
        process = HostProcess(model or tiny_model, *flags, wait_ready=wait_ready, code=code)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()


def control_tokens(model: Path) -> dict[int, str]:
    """Ids and spellings of tokens that user text must not become."""
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    handle = llama_cpp.llama_model_load_from_file(str(model).encode(), params)
    vocab = llama_cpp.llama_model_get_vocab(handle)
    found = {
        token: (llama_cpp.llama_vocab_get_text(vocab, token) or b"").decode()
        for token in range(llama_cpp.llama_vocab_n_tokens(vocab))
        if llama_cpp.llama_vocab_is_control(vocab, token) or llama_cpp.llama_vocab_is_eog(vocab, token)
    }
    llama_cpp.llama_model_free(handle)
    return found
