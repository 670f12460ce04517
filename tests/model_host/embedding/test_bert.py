"""An encoder of the BERT family with real weights: all-MiniLM-L6-v2."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.model_host.driver import HostProcess
from tests.model_host.embedding.test_embedding import ask, vectors

Matrix = NDArray[np.float32]
LAYERS, HEADS = 6, 12


@pytest.fixture(scope="module")
def bert(minilm: Path) -> Iterator[HostProcess]:
    process = HostProcess(minilm, "--embedding")
    yield process
    assert process.stop() == 0


def reference(path: Path, words: list[str]) -> Matrix:
    """The normalized mean of the last layer, computed with numpy from the file's tensors."""
    reader = gguf.GGUFReader(path)
    weights: dict[str, Matrix] = {t.name: t.data.astype(np.float32) for t in reader.tensors}
    vocabulary = reader.fields["tokenizer.ggml.tokens"].contents()

    def norm(x: Matrix, name: str) -> Matrix:
        centered = x - x.mean(axis=1, keepdims=True)
        scaled = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-12)
        return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    def linear(x: Matrix, name: str) -> Matrix:
        return np.asarray(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"])

    def heads(x: Matrix) -> Matrix:
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    tokens = [vocabulary.index(word) for word in words]
    x = weights["token_embd.weight"][tokens] + weights["token_types.weight"][0]
    x = norm(x + weights["position_embd.weight"][: len(tokens)], "token_embd_norm")
    for layer in range(LAYERS):
        q, k, v = (heads(linear(x, f"blk.{layer}.attn_{name}")) for name in "qkv")
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1]))
        mixed = (scores / scores.sum(axis=-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(x), -1)
        x = norm(x + linear(mixed, f"blk.{layer}.attn_output"), f"blk.{layer}.attn_output_norm")
        up = linear(x, f"blk.{layer}.ffn_up")
        up = up * 0.5 * (1 + np.vectorize(math.erf)(up / math.sqrt(2)))
        x = norm(x + linear(up, f"blk.{layer}.ffn_down"), f"blk.{layer}.layer_output_norm")
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def test_vectors_are_those_of_the_weights(bert: HostProcess, minilm: Path) -> None:
    assert bert.ready is not None
    ready = bert.ready
    assert (ready["architecture"], ready["dimensions"], ready["n_ctx"]) == ("bert", 384, 512)
    event = ask(bert, texts=["The cat's NAÏVE sleep, embeddings!"])
    parts = ["the", "cat", "'", "s", "naive", "sleep", ",", "em", "##bed", "##ding", "##s", "!"]
    words = [part[2:] if part.startswith("##") else f"\u2581{part}" for part in parts]
    assert event["tokens"] == [len(parts) + 2]
    expected = reference(minilm, ["[CLS]", *words, "[SEP]"])
    assert float(vectors(event)[0] @ expected) > 0.999


def test_meaning_decides(bert: HostProcess) -> None:
    texts = ["The cat sleeps on the sofa.", "A kitten naps on a couch.", "Shares fell in early trading."]
    alike = (found := vectors(ask(bert, texts=texts))) @ found.T
    assert alike[0, 1] > 0.6 > 0.2 > max(alike[0, 2], alike[1, 2])


def test_texts_do_not_see_each_other(bert: HostProcess) -> None:
    texts = [f"Text {number} about {topic}." for number, topic in enumerate(("cats", "grids", "a " * 200))]
    alone = np.concatenate([vectors(ask(bert, texts=[text])) for text in texts])
    np.testing.assert_allclose(vectors(ask(bert, texts=texts)), alone, atol=2e-3)


@pytest.mark.parametrize("text", ["word " * 511, "[CLS] [SEP] [MASK]", ""])
def test_ends_of_texts(bert: HostProcess, text: str) -> None:
    """Control tokens in a text are just text, and what is too long is refused."""
    event: dict[str, Any] = ask(bert, texts=[text])
    if len(text) > 100:
        assert (event["event"], event["code"]) == ("failed", "prompt_too_long")
    else:
        assert event["event"] == "embedded"
        assert event["tokens"] == [2 if not text else 12]
